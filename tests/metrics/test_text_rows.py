"""Rows of metrics of language models: which models, samples and roles each number is a mean over."""

import math

import numpy as np
import pytest
from scipy.stats import ks_2samp
from unlearning_audit.metrics import _text, memorisation, multiple_choice, overlap, perplexity, privleak, truth_ratio
from unlearning_audit.store.files import NoAnswerError

import metric_calls as call
import text_row_cases
from text_row_cases import FORGET, PAIRS, ROWS, SAMPLES, SETTINGS, TWIN, Populations, by_name, check, samples_of


@pytest.fixture
def case() -> Populations:
    return text_row_cases.case()


ALL = ("forget", "heldout", "retain", "test")


def test_perplexity(case):
    rows = by_name(call.rows(perplexity, case, SETTINGS))
    loss, anew = _text.nll(case.unlearned), _text.nll(case.logits[("retrained",)])
    check(case, rows, "nll", loss, ALL)
    check(case, rows, "nll_gap", loss - anew, ALL)
    for (name, setting), row in rows.items():
        if name == "perplexity":
            of = rows["nll", setting]
            for end in ("value", "ci_low", "ci_high"):
                assert getattr(row, end) == pytest.approx(math.exp(min(getattr(of, end), 700)))
    case.data.part = np.zeros(ROWS)
    assert not [setting for _, setting in by_name(call.rows(perplexity, case, SETTINGS)) if "test" in setting]


def test_memorisation(case):
    rows = by_name(call.rows(memorisation, case, SETTINGS))
    unlearned, retrained = (memorisation.both(case.said[(name,)][..., 3]) for name in ("own", "retrained"))
    for name in unlearned:
        check(case, rows, name, unlearned[name], ("forget", "heldout"))
        check(case, rows, f"{name}_gap", unlearned[name] - retrained[name], ("forget", "heldout"))


@pytest.mark.parametrize("metric", [memorisation, multiple_choice, overlap, truth_ratio])
def test_intervals_of_shares_end_at_0_and_at_1_and_of_few_samples_reach_them(case, metric):
    ends = set()
    for row in call.rows(metric, case, SETTINGS):
        least = -1 if row.metric.endswith("gap") else 0
        assert least <= row.ci_low <= row.value <= row.ci_high <= 1, (row.metric, row.role)
        if row.metric not in ("truth_ratio_ks", "forget_quality", "choice_chance"):
            ends |= {row.ci_low, row.ci_high}
    assert {0, 1} <= ends


def test_truth_ratio(case):
    rows = by_name(call.rows(truth_ratio, case, SETTINGS))
    views = case.data.views("perturbed"), case.data.views("paraphrase")
    unlearned, retrained = (truth_ratio.log_ratio(case.logits[(name,)], *views) for name in ("own", "retrained"))
    check(case, rows, "truth_ratio", truth_ratio.closeness(unlearned), ALL)
    check(case, rows, "truth_ratio_utility", truth_ratio.true_better(unlearned), ALL)
    check(case, rows, "truth_ratio_probability", 1 / (1 + np.exp(unlearned)), ALL)
    assert {setting for name, setting in rows if name == "forget_quality"} == {
        "role=forget", "pair=0;role=forget", "pair=1;role=forget"
    }  # fmt: skip
    for pair, models in PAIRS.items():
        both = [[of[m, [i for i in FORGET[m] if i != 1]] for of in (unlearned, retrained)] for m in models]
        row = rows["truth_ratio_ks", ";".join(filter(None, (pair, "role=forget")))]
        assert row.value == pytest.approx(np.mean([ks_2samp(*pair).statistic for pair in both]))
        assert row.n == {"": 8, "pair=0": 4, "pair=1": 4}[pair]


def test_multiple_choice(case):
    rows = by_name(call.rows(multiple_choice, case, SETTINGS))
    wrong = case.data.views("perturbed")
    unlearned, retrained = (multiple_choice.right(case.logits[(name,)], wrong) for name in ("own", "retrained"))
    check(case, rows, "choice_accuracy", unlearned, ALL)
    check(case, rows, "choice_gap", unlearned - retrained, ALL)
    chance = np.full((5, ROWS), np.nan)
    chance[:, [i for i in range(SAMPLES) if i != 1]] = 1 / 3
    chance[:, 3] = 1 / 2
    for pair, models in PAIRS.items():
        row = rows["choice_chance", ";".join(filter(None, (pair, "role=retain")))]
        values = np.concatenate([chance[m, samples_of(case, "retain", m)] for m in models])
        assert row.value == row.ci_low == row.ci_high == pytest.approx(np.nanmean(values))
    case.data.views = lambda kind: np.zeros((ROWS, 0), int)
    for metric in (multiple_choice, truth_ratio):
        with pytest.raises(ValueError, match="choose question_answer data that have"):
            call.rows(metric, case, SETTINGS)


def test_overlap(case):
    case.data.x[1], case.data.x[4, 1:] = -1, -1  # padding: no run of two tokens
    case.data.x[:, 0] += 100 * np.arange(ROWS) * (case.data.x[:, 0] >= 0)  # which no other sample has
    rows = by_name(call.rows(overlap, case, SETTINGS))
    member, runs, spans = case.membership, overlap.numbered(case.data.x, 2), overlap.scored(case.data.x)
    share = np.stack([overlap.shared(runs, retain) for retain in member.retain])
    share[:, [1, 4]] = np.nan
    check(case, rows, "ngram_overlap", share, ("forget", "heldout"))
    asked = np.flatnonzero(member.forget[1:].any(0) & (np.arange(ROWS) != 1))
    for name, numbers in (("exact_overlap", overlap.whole(spans)), ("token_overlap", spans)):
        expected = [overlap.shared(numbers, member.heldout[m])[[i for i in f if i != 1]] for m, f in FORGET.items()]
        row = rows[name, ""]
        assert (row.value, row.n) == (pytest.approx(np.mean([of.mean() for of in expected])), len(asked))
    assert 0 < row.value < 1
    case.data.x = case.data.x.astype(float)
    with pytest.raises(ValueError, match="the data are float64, not tokens"):
        call.rows(overlap, case, SETTINGS)


def test_privleak(case):
    rows = by_name(call.rows(privleak, case, SETTINGS))
    area = {}
    for name in ("own", "retrained"):
        low = np.sort(case.said[(name,)][..., 0], axis=-1)[..., :2].mean(-1)
        area[name] = [(low[m, list(f)][:, None] > low[m, list(FORGET[TWIN[m]])]).mean() for m, f in FORGET.items()]
    assert set(rows) == {(name, pair) for name in ("privleak", "min_k_auc") for pair in PAIRS}
    for pair, models in PAIRS.items():
        unlearned, retrained = (1 - np.mean([of[m - 1] for m in models]) for of in area.values())
        assert rows["min_k_auc", pair].value == pytest.approx(1 - unlearned)
        assert rows["privleak", pair].value == pytest.approx(100 * (unlearned / retrained - 1))
        assert rows["privleak", pair].n == rows["min_k_auc", pair].n == {"": 9, "pair=0": 5, "pair=1": 4}[pair]
        assert 0 <= rows["min_k_auc", pair].ci_low < rows["min_k_auc", pair].ci_high <= 1


METRICS = (perplexity, memorisation, truth_ratio, multiple_choice)


def test_retraining_is_held_against_its_control_and_nothing_against_a_failure(case):
    case.unlearned_files, case.unlearned = ["retrained"], case.logits[("retrained",)]
    gap = by_name(call.rows(perplexity, case, SETTINGS))["nll_gap", "role=forget"].value
    loss = [_text.nll(case.logits[(name,)]) for name in ("retrained", "control")]
    assert gap == pytest.approx(np.mean([(loss[0] - loss[1])[m, list(f)].mean() for m, f in FORGET.items()]))
    case.compared = None
    assert call.rows(privleak, case, SETTINGS) == []
    for metric in METRICS:
        assert not [
            name for name, _ in by_name(call.rows(metric, case, SETTINGS)) if name.endswith(("gap", "ks", "quality"))
        ]

    class Failed(Populations):
        @property
        def compared(self):
            raise NoAnswerError("it diverged")

    assert _text.compared_files(Failed()) is None


@pytest.mark.parametrize("metric", [*METRICS, overlap])
def test_a_role_that_a_model_has_no_samples_of_has_no_row(case, metric):
    before = {setting for _, setting in by_name(call.rows(metric, case, SETTINGS)) if "pair=" not in setting}
    case.membership.heldout[1] = False
    settings = {setting for _, setting in by_name(call.rows(metric, case, SETTINGS))}
    assert "role=forget" in settings
    assert settings >= before - {"role=heldout", ""}
    assert not [setting for setting in settings if "pair=" in setting], "they are no swapped pairs any more"
    if metric is not perplexity:  # which is read of the models that have samples
        assert "role=heldout" not in settings


def test_effects_are_of_what_was_to_be_forgotten(case):
    wrong = case.data.views("perturbed")
    ratio = 1 / (1 + np.exp(truth_ratio.log_ratio(case.unlearned, wrong, case.data.views("paraphrase"))))
    expected = {
        truth_ratio: ("truth_ratio_probability", ratio),
        multiple_choice: ("choice_accuracy", multiple_choice.right(case.unlearned, wrong)),
        memorisation: ("exact_memorisation", memorisation.exact(case.said[("own",)][..., 3])),
    }
    for metric, (name, value) in expected.items():
        part = call.parts(metric, case, SETTINGS)[name]
        for model, samples in FORGET.items():
            mean = np.nanmean(value[model, list(samples)])
            assert part.value[0, model - 1] == pytest.approx(mean)
        assert set(part.index) <= set(range(9))
        assert (1 in part.index) == (metric is memorisation)
        assert part.influence.shape == (1, 4, len(part.index))
    auc = call.parts(privleak, case, SETTINGS)["min_k_auc"]
    assert auc.value.mean() == pytest.approx(by_name(call.rows(privleak, case, SETTINGS))["min_k_auc", ""].value)
    case.membership.forget[2] = False
    for metric in (*expected, privleak):
        assert call.parts(metric, case, SETTINGS) == {}
