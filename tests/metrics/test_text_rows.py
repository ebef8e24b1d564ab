"""Rows of metrics of language models: which models, samples and roles each number is a mean over."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ks_2samp
from unlearning_audit.metrics import (
    _answers,
    _text,
    leak_at_k,
    memorisation,
    multiple_choice,
    overlap,
    perplexity,
    privleak,
    rouge,
    rouge_at_k,
    truth_ratio,
    utility,
)  # fmt: skip
from unlearning_audit.stats import best_of
from unlearning_audit.store.files import NoAnswerError

import metric_calls as call
import text_row_cases
from passage_cases import two
from text_row_cases import FORGET, PAIRS, ROWS, SAMPLES, TWIN, Populations, by_name, check, samples_of

ALL, SIDES = ("forget", "heldout", "retain", "test"), ("forget", "heldout")
ROLES = {perplexity: ALL, memorisation: SIDES, truth_ratio: ALL, multiple_choice: ALL, leak_at_k: SIDES, rouge: ALL,
         rouge_at_k: SIDES}  # fmt: skip
#: Numbers whose difference from retrained models has another name than "…_gap", or no row.
GAPS = {"choice_accuracy": "choice_gap", "rouge_recall": "rouge_gap"} | dict.fromkeys(
    ("rouge_f1", "rouge_f1_unstemmed", "truth_ratio", "truth_ratio_utility", "truth_ratio_probability")
)
MORE = {
    perplexity: {"perplexity"},
    multiple_choice: {"choice_chance"},
    truth_ratio: {"truth_ratio_ks", "forget_quality"},
}
SETTINGS = {"metrics": text_row_cases.SETTINGS["metrics"] | {
    "leak_at_k": {"answers": [2, 8]}, "rouge_at_k": {"samples": 6, "answers": [1, 4], "threshold": 0.7},
}}  # fmt: skip


@pytest.fixture
def evaluation(monkeypatch) -> Populations:
    """Language models, with ROUGE-L of their answers; they were not asked about samples 8 and 11."""
    populations, rng = text_row_cases.evaluation(), np.random.default_rng(7)
    populations.overlaps = {name: rng.uniform(0.1, 0.9, (5, ROWS, 3)) for name in ("own", "retrained")}
    populations.recalls = {name: rng.uniform(0, 1, (5, ROWS, 6)) for name in ("own", "retrained")}
    for values in populations.overlaps.values():
        values[:, 8] = values[:, 11] = values[:, SAMPLES:] = np.nan
    for name in ("generated_files", "sampled_files"):
        setattr(populations, name, ["own"])
        setattr(populations, f"compared_{name}", ["retrained"])
    monkeypatch.setattr(_answers, "rouge", lambda evaluation, files: answered(evaluation.overlaps, files))
    monkeypatch.setattr(_answers, "recalls", lambda evaluation, files: answered(evaluation.recalls, files))
    return populations


def answered(values: dict, files: list[str]) -> np.ndarray:
    """Numbers of the target models, the first being a shadow model."""
    if files[0] not in values:
        raise NoAnswerError("it diverged")
    return values[files[0]][1:]


def numbers(evaluation, metric, of: str) -> dict[tuple[str, str], np.ndarray]:
    """(row, rule) → the number of each model and sample, float64 [5, ROWS]."""
    logits, four, recalls = evaluation.logits[(of,)], evaluation.said[(of,)], evaluation.recalls[of]
    wrong = evaluation.data.views("perturbed")
    ratio = truth_ratio.log_ratio(logits, wrong, evaluation.data.views("paraphrase"))
    table = {
        perplexity: {"nll": _text.nll(logits)}, memorisation: memorisation.both(four[..., 3]),
        truth_ratio: truth_ratio.by_metric(ratio),
        multiple_choice: {"choice_accuracy": multiple_choice.right(logits, wrong)},
        rouge: {name: evaluation.overlaps[of][..., i] for i, name in enumerate(list(GAPS)[1:4])},
    }  # fmt: skip
    if metric in table:
        return {(name, ""): value for name, value in table[metric].items()}
    if metric is leak_at_k:
        both = {k: leak_at_k.leaks(four[..., 0], k) for k in (2, 8)}
        return {(name, f"{k} answers"): both[k][i] for k in both for i, name in enumerate(("leak_at_k", "whole_at_k"))}
    values = {"rouge_at_k": recalls, "leaked_at_k": recalls >= 0.7}
    return {(n, f"{k} answers"): best_of.largest(values=v, best_of=k) for k in (1, 4) for n, v in values.items()}


@pytest.mark.parametrize("metric", ROLES)
def test_every_row_is_a_mean_over_models_and_samples(evaluation, metric):
    rows, unlearned, retrained = (
        call.rows(metric, evaluation, SETTINGS),
        *(numbers(evaluation, metric, of) for of in evaluation.recalls),
    )
    expected = MORE.get(metric, set()) | {name for name, _ in unlearned}
    for (name, rule), value in unlearned.items():
        of_rule, gap = (
            by_name([replace(row, rule="") for row in rows if row.rule == rule]),
            GAPS.get(name, f"{name}_gap"),
        )
        check(evaluation, of_rule, name, value, ROLES[metric])
        if gap:
            check(evaluation, of_rule, gap, value - retrained[name, rule], ROLES[metric])
            expected |= {gap}
    assert {row.metric for row in rows} == expected
    evaluation.retrained_files = evaluation.compared_generated_files = evaluation.compared_sampled_files = ["failed"]
    names = {row.metric for row in call.rows(metric, evaluation, SETTINGS)}
    assert names == expected - set(filter(None, GAPS.values())) - {"truth_ratio_ks", "forget_quality"} - {
        f"{name}_gap" for name, _ in unlearned
    }  # fmt: skip


def test_numbers_beside_the_means(evaluation):
    rows = by_name(call.rows(perplexity, evaluation, SETTINGS) + call.rows(truth_ratio, evaluation, SETTINGS))
    for (name, setting), row in rows.items():
        if name == "perplexity":
            of = rows["nll", setting]
            assert (row.value, row.ci_low, row.ci_high) == pytest.approx(np.exp([of.value, of.ci_low, of.ci_high]))
    perturbed, none = evaluation.data.views("perturbed"), np.zeros((ROWS, 0), int)
    ratios = [truth_ratio.log_ratio(evaluation.logits[(of,)], perturbed, none)
              for of in ("own", "retrained")]  # fmt: skip
    for pair, models in PAIRS.items():
        both = [[of[m, [i for i in FORGET[m] if i != 1]] for of in ratios] for m in models]
        row = rows["truth_ratio_ks", ";".join(filter(None, (pair, "role=forget")))]
        assert row.value == pytest.approx(np.mean([ks_2samp(*pair).statistic for pair in both]))
        assert row.n == {"": 8, "pair=0": 4, "pair=1": 4}[pair]
    choices = 1 + (evaluation.data.views("perturbed") >= 0).sum(1)
    chance = np.where(choices > 1, 1 / choices, np.nan)
    for (name, setting), row in by_name(call.rows(multiple_choice, evaluation, SETTINGS)).items():
        if (name, setting[-11:]) == ("choice_chance", "role=retain"):
            values = [
                chance[samples_of(evaluation, "retain", m)]
                for m in PAIRS[setting.removesuffix("role=retain").strip(";")]
            ]
            assert row.value == row.ci_low == row.ci_high == pytest.approx(np.mean([*map(np.nanmean, values)]))
    evaluation.data.views = lambda kind: np.zeros((ROWS, 0), int)
    for metric in (multiple_choice, truth_ratio, utility):
        with pytest.raises(ValueError, match="choose question_answer data that have"):
            call.rows(metric, evaluation, SETTINGS)


def test_where_all_choices_are_equally_likely_the_accuracy_is_that_of_guessing(evaluation):
    wrong = evaluation.data.views("perturbed")
    wrong[4] = -1  # so models retain different numbers of questions
    evaluation.unlearned = two(np.full((5, ROWS), -2.0))
    rows = by_name(call.rows(multiple_choice, evaluation, SETTINGS))
    chance = {setting: row.value for (name, setting), row in rows.items() if name == "choice_chance"}
    assert {setting: rows["choice_accuracy", setting].value for setting in chance} == pytest.approx(chance)


@pytest.mark.parametrize("metric", [memorisation, multiple_choice, overlap, truth_ratio])
def test_intervals_of_shares_end_at_0_and_at_1_and_of_few_samples_reach_them(evaluation, metric):
    ends = set()
    for row in call.rows(metric, evaluation, SETTINGS):
        least = -1 if row.metric.endswith("gap") else 0
        assert least <= row.ci_low <= row.value <= row.ci_high <= 1, (row.metric, row.role)
        if row.metric not in ("truth_ratio_ks", "forget_quality", "choice_chance"):
            ends |= {row.ci_low, row.ci_high}
    assert {0, 1} <= ends


def test_overlap(evaluation):
    evaluation.data.x[1], evaluation.data.x[4, 1:] = -1, -1  # padding: no run of two tokens
    evaluation.data.x[0, 2:] = -1  # one run, the first
    evaluation.data.x[:, 0] += 100 * np.arange(ROWS) * (evaluation.data.x[:, 0] >= 0)  # which no other sample has
    rows = by_name(call.rows(overlap, evaluation, SETTINGS))
    member, x = evaluation.membership, evaluation.data.x
    runs, spans = overlap.run_numbers(x, 2), overlap.scored_tokens(x)
    share = np.stack([overlap.share_found(runs, retain) for retain in member.retain])
    share[:, [1, 4]] = np.nan
    check(evaluation, rows, "ngram_overlap", share, SIDES)
    asked = np.flatnonzero(member.forget[1:].any(0) & (np.arange(ROWS) != 1))
    for name, shared in (("exact_overlap", overlap.text_numbers(spans)), ("token_overlap", spans)):
        expected = [overlap.share_found(shared, member.heldout[m])[[i for i in f if i != 1]] for m, f in FORGET.items()]
        row = rows[name, ""]
        assert (row.value, row.n) == (pytest.approx(np.mean([of.mean() for of in expected])), len(asked))
    assert 0 < row.value < 1
    evaluation.data.x = np.abs(evaluation.data.x).astype(np.uint8)
    with pytest.raises(ValueError, match="the data are uint8, not tokens"):
        call.rows(overlap, evaluation, SETTINGS)


def test_privleak(evaluation):
    rows = by_name(call.rows(privleak, evaluation, SETTINGS))
    area = {}
    for name in ("own", "retrained"):
        low = np.sort(evaluation.said[(name,)][..., 0], axis=-1)[..., :2].mean(-1)
        area[name] = [(low[m, list(f)][:, None] > low[m, list(FORGET[TWIN[m]])]).mean() for m, f in FORGET.items()]
    assert set(rows) == {(name, pair) for name in ("privleak", "min_k_auc") for pair in PAIRS}
    for pair, models in PAIRS.items():
        unlearned, retrained = (1 - np.mean([of[m - 1] for m in models]) for of in area.values())
        assert rows["min_k_auc", pair].value == pytest.approx(1 - unlearned)
        assert rows["privleak", pair].value == pytest.approx(100 * (unlearned / retrained - 1))
        assert rows["privleak", pair].n == rows["min_k_auc", pair].n == {"": 9, "pair=0": 5, "pair=1": 4}[pair]
        assert 0 <= rows["min_k_auc", pair].ci_low < rows["min_k_auc", pair].ci_high <= 1
    assert call.parts(privleak, evaluation, SETTINGS)["min_k_auc"].value.mean() == pytest.approx(
        rows["min_k_auc", ""].value
    )


def test_retraining_is_held_against_its_control_and_nothing_against_a_failure(evaluation):
    evaluation.unlearned_files, evaluation.unlearned = ["retrained"], evaluation.logits[("retrained",)]
    gap = by_name(call.rows(perplexity, evaluation, SETTINGS))["nll_gap", "role=forget"].value
    loss = [_text.nll(evaluation.logits[(name,)]) for name in ("retrained", "control")]
    assert gap == pytest.approx(np.mean([(loss[0] - loss[1])[m, list(f)].mean() for m, f in FORGET.items()]))
    evaluation.control_files = ["failed"]
    assert call.rows(privleak, evaluation, SETTINGS) == []


@pytest.mark.parametrize("metric", [perplexity, memorisation, truth_ratio, multiple_choice, overlap])
def test_a_role_that_a_model_has_no_samples_of_has_no_row(evaluation, metric):
    before = {setting for _, setting in by_name(call.rows(metric, evaluation, SETTINGS)) if "pair=" not in setting}
    evaluation.membership.heldout[1] = False
    settings = {setting for _, setting in by_name(call.rows(metric, evaluation, SETTINGS))}
    assert "role=forget" in settings
    assert settings >= before - {"role=heldout", ""}
    assert not [setting for setting in settings if "pair=" in setting], "they are no swapped pairs any more"
    if metric is not perplexity:  # which is read of the models that have samples
        assert "role=heldout" not in settings


DECIDING = {truth_ratio: "truth_ratio_probability", multiple_choice: "choice_accuracy", rouge: "rouge_recall",
            memorisation: "exact_memorisation", leak_at_k: "leak_at_k", rouge_at_k: "rouge_at_k"}  # fmt: skip


@pytest.mark.parametrize("metric", DECIDING)
def test_effects_are_of_what_was_to_be_forgotten(evaluation, metric):
    """At the largest k, where there are several."""
    value = [of for (name, _), of in numbers(evaluation, metric, "own").items() if name == DECIDING[metric]][-1]
    (part,) = call.parts(metric, evaluation, SETTINGS).values()
    for model, samples in FORGET.items():
        assert part.value[0, model - 1] == pytest.approx(np.nanmean(value[model, list(samples)]))
    known = [i for i in range(9) if not np.isnan(value[1:, i]).all()]
    assert part.index.tolist() == known
    assert part.influence.shape == (1, 4, len(known))
    for rule in (part.rule, call.parts(privleak, evaluation, SETTINGS)["min_k_auc"].rule):
        assert (rule.direction, rule.deciding, rule.lowest, rule.highest) == (1, True, 0, 1)
    evaluation.membership.forget[2] = False
    for other in (metric, privleak):
        assert call.parts(other, evaluation, SETTINGS) == {}


# ---------------------------------------------------------------- utility


def terms(evaluation, model: int, *sets: np.ndarray) -> list[float]:
    """The terms of one model: p, recall and max(0, 1 − R) on what it keeps, and in each set of the test part p over
    that of all choices."""
    p = 1 / (1 + np.exp(-evaluation.unlearned[model, :, 0] + evaluation.unlearned[model, :, 1]))
    wrong = evaluation.data.views("perturbed")
    choices = np.array([p[i] / (p[i] + sum(p[w] for w in wrong[i] if w >= 0)) for i in range(SAMPLES)])
    ratio = truth_ratio.log_ratio(evaluation.unlearned, wrong, evaluation.data.views("paraphrase"))[model]
    better, recall = truth_ratio.by_metric(ratio)["truth_ratio_utility"], evaluation.overlaps["own"][model, :, 0]
    roles = [(samples_of(evaluation, "retain", model), p), *((at, choices) for at in sets)]
    return [np.nanmean(term[at]) for at, probability in roles for term in (probability, recall, better)]


def harmonic(values: list[float]) -> float:
    return len(values) / sum(1 / value for value in values)


def test_utility(evaluation):
    evaluation.data.group, own = None, evaluation.overlaps["own"]
    assert call.rows(utility, evaluation, {}) == [], "one sample of the test part was not asked about"
    assert call.parts(utility, evaluation, {}) == {}
    own[:, 11] = 0.5
    rows, tested = by_name(call.rows(utility, evaluation, {})), np.array([10, 11])
    assert {setting for _, setting in rows} == set(PAIRS)
    for pair, models in PAIRS.items():
        row = rows["model_utility", pair]
        assert row.value == pytest.approx(np.mean([harmonic(terms(evaluation, m, tested)) for m in models]))
        assert row.n == len(set().union(tested, *(samples_of(evaluation, "retain", m) for m in models)))
        assert 0 <= row.ci_low < row.value < row.ci_high <= 1
    part = call.parts(utility, evaluation, {})["model_utility"]
    np.testing.assert_allclose(part.value[0], [harmonic(terms(evaluation, m, tested)) for m in FORGET])
    own[2, :, 0] = 0
    row = by_name(call.rows(utility, evaluation, {}))["model_utility", ""]
    assert row.value == pytest.approx(
        np.mean([0 if m == 2 else harmonic(terms(evaluation, m, tested)) for m in FORGET])
    )
    assert (np.isnan([row.ci_low, row.ci_high]).all(), row.note) == (True, "no interval: a term is 0 for some model")
    assert call.parts(utility, evaluation, {}) == {}, "a harmonic mean of 0 has no slope"


@pytest.mark.parametrize("sets", [(), (np.array([6, 7]), np.array([10, 11]))], ids=["no test part", "two sets"])
def test_each_set_of_the_test_part_has_terms_of_its_own(evaluation, sets):
    evaluation.overlaps["own"][:, 11] = 0.5
    evaluation.data.part = np.where(np.arange(ROWS) < SAMPLES, 0, 2)
    evaluation.data.group = np.zeros(ROWS, np.uint8) if sets else None
    for number, at in enumerate(sets, 1):
        evaluation.data.part[at], evaluation.data.group[at] = 1, number
    value = by_name(call.rows(utility, evaluation, {}))["model_utility", ""].value
    assert value == pytest.approx(np.mean([harmonic(terms(evaluation, m, *sets)) for m in FORGET]))
