"""Rows of ROUGE-L and of utility: which models, samples and roles each number is a mean over."""

from dataclasses import replace

import numpy as np
import pytest
from unlearning_audit.metrics import _answers, rouge, rouge_at_k, truth_ratio, utility
from unlearning_audit.stats import best_of
from unlearning_audit.store.files import NoAnswerError

import metric_calls as call
import text_row_cases
from text_row_cases import FORGET, PAIRS, ROWS, SAMPLES, Populations, by_name, check, samples_of


@pytest.fixture
def case(monkeypatch) -> Populations:
    """Recall and F1 of what the defender's models say by themselves, who were not asked about samples 8 and 11."""
    populations = text_row_cases.case()
    rng = np.random.default_rng(7)
    overlaps = {name: rng.uniform(0.1, 0.9, (4, ROWS, 3)) for name in ("own", "retrained")}
    for values in overlaps.values():
        values[:, 8] = values[:, 11] = values[:, SAMPLES:] = np.nan
    monkeypatch.setattr(_answers, "overlap", lambda case, files: overlaps[files[0]])
    populations.said_by_themselves = overlaps
    populations.generated_files, populations.compared_generated_files = ["own"], ["retrained"]
    populations.data.group = None
    return populations


def of_all(value: np.ndarray) -> np.ndarray:
    """Numbers of the targets as those of all models, of which the first is a shadow model."""
    return np.concatenate([np.full_like(value[:1], 99), value])


FORMS = ("rouge_recall", "rouge_f1", "rouge_f1_unstemmed")


def failing(reader):
    """A reader of answers that retrained models did not give."""

    def read(case, files):
        if files == ["retrained"]:
            raise NoAnswerError("it diverged")
        return reader(case, files)

    return read


def test_rouge(case, monkeypatch):
    rows = by_name(call.rows(rouge, case, {}))
    unlearned, anew = (of_all(case.said_by_themselves[name]) for name in ("own", "retrained"))
    roles = ("forget", "heldout", "retain", "test")
    for form, name in enumerate(FORMS):
        check(case, rows, name, unlearned[..., form], roles)
    check(case, rows, "rouge_gap", (unlearned - anew)[..., 0], roles)
    part = call.parts(rouge, case, {})["rouge_recall"]
    np.testing.assert_allclose(part.value[0], [np.nanmean(unlearned[m, list(f), 0]) for m, f in FORGET.items()])
    assert part.index.tolist() == list(range(8))
    monkeypatch.setattr(_answers, "overlap", failing(_answers.overlap))
    assert {row.metric for row in call.rows(rouge, case, {})} == set(FORMS)
    case.compared_generated_files = None
    assert {row.metric for row in call.rows(rouge, case, {})} == set(FORMS)
    case.said_by_themselves["own"][0, :3] = np.nan
    assert ("rouge_recall", "role=forget") not in by_name(call.rows(rouge, case, {}))
    assert call.parts(rouge, case, {}) == {}


def test_rouge_of_the_best_of_k(case, monkeypatch):
    """Each number is the mean of best-of-k over models and samples; a verdict rests on the largest k."""
    rng = np.random.default_rng(11)
    overlaps = {name: rng.uniform(0, 1, (4, ROWS, 6)) for name in ("own", "retrained")}
    monkeypatch.setattr(_answers, "recalls", lambda case, files: overlaps[files[0]])
    case.sampled_files, case.compared_sampled_files = ["own"], ["retrained"]
    options = {"samples": 6, "answers": [1, 4], "threshold": 0.7}
    settings = {"metrics": {"rouge_at_k": options}}
    table = call.rows(rouge_at_k, case, settings)
    for k in (1, 4):
        rows = by_name([replace(row, rule="") for row in table if row.rule == f"{k} answers"])
        unlearned, anew = (best_of.largest(values=overlaps[name], best_of=k) for name in ("own", "retrained"))
        over = [best_of.largest(values=overlaps[name] >= 0.7, best_of=k) for name in ("own", "retrained")]
        for name, values, reference in (("rouge_at_k", unlearned, anew), ("leaked_at_k", *over)):
            check(case, rows, name, of_all(values), ("forget", "heldout"))
            check(case, rows, f"{name}_gap", of_all(values - reference), ("forget", "heldout"))
    part = call.parts(rouge_at_k, case, settings)["rouge_at_k"]
    unlearned = of_all(best_of.largest(values=overlaps["own"], best_of=4))
    np.testing.assert_allclose(part.value[0], [unlearned[m, list(f)].mean() for m, f in FORGET.items()])

    monkeypatch.setattr(_answers, "recalls", failing(_answers.recalls))
    assert {row.metric for row in call.rows(rouge_at_k, case, settings)} == {"rouge_at_k", "leaked_at_k"}


def test_more_answers_than_samples_are_refused():
    with pytest.raises(ValueError, match="answers: the best of 32 needs samples: 32 at least"):
        rouge_at_k.Options(samples=8)
    assert rouge_at_k.Options(samples=8, answers=(1, 8)).answers == (1, 8)


def terms(case, model: int, test: int = 1) -> list[float]:
    """The six terms of one model: p, recall and max(0, 1 − R) on what it keeps, and in the test part p over that of all
    choices."""
    p = 1 / (1 + np.exp(-case.unlearned[model, :, 0] + case.unlearned[model, :, 1]))
    wrong = case.data.views("perturbed")
    choices = np.array([p[i] / (p[i] + sum(p[w] for w in wrong[i] if w >= 0)) for i in range(SAMPLES)])
    ratio = truth_ratio.log_ratio(case.unlearned, wrong, case.data.views("paraphrase"))[model]
    better, recall = truth_ratio.true_better(ratio), of_all(case.said_by_themselves["own"])[model, :, 0]
    means = []
    for role, probability in (("retain", p), ("test", choices))[: 1 + test]:
        at = samples_of(case, role, model)
        means += [np.nanmean(term[at]) for term in (probability, recall, better)]
    return means


def harmonic(values: list[float]) -> float:
    return len(values) / sum(1 / value for value in values)


def test_utility(case):
    assert call.rows(utility, case, {}) == [], "one sample of the test part was not asked about"
    assert call.parts(utility, case, {}) == {}
    case.said_by_themselves["own"][:, 11] = 0.5
    rows = by_name(call.rows(utility, case, {}))
    assert {setting for _, setting in rows} == set(PAIRS)
    for pair, models in PAIRS.items():
        row = rows["model_utility", pair]
        assert row.value == pytest.approx(np.mean([harmonic(terms(case, m)) for m in models]))
        samples = set().union(*(samples_of(case, role, m) for role in ("retain", "test") for m in models))
        assert row.n == len(samples)
        assert 0 <= row.ci_low < row.value < row.ci_high <= 1
    part = call.parts(utility, case, {})["model_utility"]
    np.testing.assert_allclose(part.value[0], [harmonic(terms(case, m)) for m in FORGET])
    assert part.index.shape == (part.influence.shape[-1],)
    case.said_by_themselves["own"][1, :, 0] = 0
    values = [0 if m == 2 else harmonic(terms(case, m)) for m in FORGET]
    assert by_name(call.rows(utility, case, {}))["model_utility", ""].value == pytest.approx(np.mean(values))
    assert call.parts(utility, case, {}) == {}, "a harmonic mean of 0 has no slope"


def test_utility_without_a_test_part_is_that_of_what_is_kept(case):
    case.data.part = np.where(np.arange(ROWS) < SAMPLES, 0, 2)
    value = by_name(call.rows(utility, case, {}))["model_utility", ""].value
    assert value == pytest.approx(np.mean([harmonic(terms(case, m, test=0)) for m in FORGET]))
