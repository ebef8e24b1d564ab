"""The competition's rows where every ε is 0 or the cap: half of the samples tell the two populations apart."""

import math
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t as student
from unlearning_audit import stats
from unlearning_audit.evaluation.cohort import Group
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import _null, competition
from unlearning_audit.metrics._epsilon_bound import bound_table

from held_answers import Held
from row_places import about

TOLD = np.arange(8) < 4  # samples whose phi is 1 after unlearning and 0 after retraining; 2 in all models elsewhere


def phi(models: int, of: float, samples: np.ndarray = TOLD) -> np.ndarray:
    return np.tile(np.where(samples, of, 2.0), (models, 1))


def models(count: int, of: float, retain: float | None = None, test: float | None = None) -> competition.Models:
    accuracies = (None if value is None else np.full(count, value) for value in (retain, test))
    return competition.Models(phi(count, of), *accuracies)


def rows_of(unlearned, retrained, independent=None, **options) -> dict[str, Row]:
    sides = {"unlearned": unlearned, "retrained": retrained, "independent": independent}
    rows = competition.evaluate(**sides, options=competition.Options(**options), rng=np.random.default_rng(0))
    assert len({row.metric for row in rows}) == len(rows)
    return {row.metric: row for row in rows}


def limits(row: Row) -> tuple[float, ...]:
    return row.value, row.ci_low, row.ci_high


def told(row: Row) -> tuple[str, int, str]:
    """What a row is about, the number of samples and the note."""
    return about(row), row.n, row.note


#: Of the mean of four zeros and four ones, when models do not differ.
HALF = student(7).ppf(0.975) * math.sqrt(2 / 7 / 8)


@pytest.fixture(scope="module")
def rows():
    return rows_of(models(41, 1.0, 0.8, 0.6), models(40, 0.0, 0.9, 0.8))


def test_rows_of_half_the_samples_told_apart(rows):
    """ε is the cap or 0, F is 1/2, and retrained models agree, so that F₀ is 1."""
    share, halves = stats.clopper_pearson(successes=4, n=8), np.array([0.5, 0.5 - HALF, 0.5 + HALF])
    for name, expected in {
        "epsilon_mean": 50 * halves, "epsilon_at_cap_share": (0.5, share.low, share.high),
        "forgetting_quality": halves, "forgetting_quality_null": (1, 1, 1), "forgetting_quality_over_null": halves,
        "retain_accuracy_ratio": (8 / 9,) * 3, "test_accuracy_ratio": (3 / 4,) * 3, "score": 8 / 9 * 3 / 4 * halves,
    }.items():  # fmt: skip
        assert limits(rows[name]) == pytest.approx(tuple(expected)), name
    of_all = "rule=exact;models=40", 8
    for name in ("epsilon_mean", "forgetting_quality"):
        assert told(rows[name]) == (*of_all, "41 unlearned and 40 retrained models")
    for name in ("forgetting_quality_null", "forgetting_quality_over_null"):
        note = "random halves, 20 models on each side, mean of 2 splits"
        assert told(rows[name]) == ("rule=exact;models=20", 8, note)
    assert told(rows["score"]) == (*of_all, "")
    assert rows["test_accuracy_ratio"].n == 40


def test_the_share_at_the_cap_is_that_of_all_models():
    # told apart but for the first model of each side, which are left out together
    first = np.tile(np.arange(9)[:, None] == 0, (1, 8))
    numbers = rows_of(competition.Models(1.0 - first), competition.Models(1.0 * first))
    assert numbers["epsilon_at_cap_share"].value == 0
    assert numbers["epsilon_mean"].value == pytest.approx(math.log(9 * (8 / 9 - 1e-5)))


@pytest.mark.parametrize(("groups", "hits"), [(2, (40, 44)), (3, (40, 44, 45))])
def test_the_interval_of_the_share_at_the_cap_adds_students_t_over_groups_in_squares(groups, hits):
    share = competition._share(np.arange(100) < np.array([[42], *([hit] for hit in hits)]))
    exact = stats.clopper_pearson(successes=42, n=100)
    error = math.sqrt((groups - 1) * np.var(hits)) / 100  # a jackknife's
    half = student(groups - 1).ppf(0.975) * error
    low, high = 0.42 - math.hypot(0.42 - exact.low, half), 0.42 + math.hypot(exact.high - 0.42, half)
    assert (share.value, share.low, share.high) == pytest.approx((0.42, low, high))
    assert not share.note
    alone = competition._share(np.arange(100) < np.array([[42], [40]]))
    assert alone == replace(exact, note="too few models for an interval over models")


def test_bounds_are_those_of_perfect_separation_on_the_other_halves(rows):
    bound, largest = (bound_table(21, 20, 1e-5, level)[21, 0] for level in (0.95, 1 - 0.05 / 8))
    mean, how = stats.mean_interval(values=np.where(TOLD, bound, 0.0)), "threshold chosen on 20, bounded on 21 models"
    for name, expected, scope in (
        ("mean", (bound / 2, max(mean.low, 0), mean.high), "interval over samples"),
        ("max", (largest, largest, np.inf), "holds for all samples together; one-sided"),
    ):
        row = rows[f"epsilon_lower_bound_{name}"]
        assert limits(row) == pytest.approx(expected)
        assert told(row) == ("confidence=0.95", 8, f"{how} of each kind; {scope}")
    assert 0 < largest < bound
    # one of eight samples told apart: the interval of the mean would begin below 0
    first = np.arange(8) < 1
    few = rows_of(competition.Models(phi(41, 1.0, first)), competition.Models(phi(40, 0.0, first)))
    assert few["epsilon_lower_bound_mean"].value == pytest.approx(bound / 8)
    assert few["epsilon_lower_bound_mean"].ci_low == 0
    assert (few["forgetting_quality"].value, few["forgetting_quality"].ci_high) == (7 / 8, 1)


def test_options_reach_the_numbers():
    rows = rows_of(models(9, 1.0), models(10, 0.0), cap=8.0, splits=3, groups=5, confidence=0.5, rule="grid")
    assert limits(rows["epsilon_mean"]) == pytest.approx((4, 8 * (0.5 - HALF), 8 * (0.5 + HALF)))
    assert rows["epsilon_at_cap_share"].value == 0.5
    note = "random halves, 4 models on each side, mean of 3 splits"
    assert told(rows["forgetting_quality_null"]) == ("rule=grid;models=4", 8, note)
    assert about(rows["epsilon_lower_bound_max"]) == "confidence=0.5"


def test_a_second_retrained_population_is_the_null():
    numbers = rows_of(models(6, 1.0), models(7, 0.0), models(5, 2.0))
    # retrained models differ from independent ones on the same half of the samples: F₀ = F, sample by sample
    assert limits(numbers["forgetting_quality_null"]) == pytest.approx((0.5, 0.5 - HALF, 0.5 + HALF))
    assert limits(numbers["forgetting_quality_over_null"]) == pytest.approx((1, 1, 1), abs=1e-9)
    note = "5 retrained against 5 independently retrained models; F / F₀ is of the first 5 models of each kind"
    assert numbers["forgetting_quality_null"].note == numbers["forgetting_quality_over_null"].note == note
    assert about(numbers["forgetting_quality_null"]) == "rule=exact;models=5"
    paired = rows_of(models(6, 1.0), models(6, 0.0), models(6, 2.0))
    assert paired["forgetting_quality_null"].note == "6 retrained against 6 independently retrained models"
    nothing = competition.Models(phi(6, 5.0, TOLD | True))
    empty = rows_of(models(6, 1.0), models(6, 0.0), nothing)["forgetting_quality_over_null"]
    assert empty.note == "F₀ is 0 (6 retrained against 6 independently retrained models)"
    assert empty.n == 8
    with pytest.raises(ValueError, match="over the same samples"):
        rows_of(models(6, 1.0), models(7, 0.0), competition.Models(phi(6, 2.0)[:, :5]))


@pytest.mark.parametrize("sizes", [(3, 9), (9, 3), (4, 9), (9, 7), (8, 9), (9, 8)])
def test_how_many_models_are_needed(sizes):
    rows = rows_of(models(sizes[0], 1.0), models(sizes[1], 0.0))
    for names, least, why in (
        (("forgetting_quality_null", "forgetting_quality_over_null"), 8, "halves need 8 models of each kind"),
        (("epsilon_lower_bound_mean", "epsilon_lower_bound_max"), 4, "half of the models needs four of each kind"),
    ):
        for name in names:
            few = min(sizes) < least
            assert (math.isnan(rows[name].value), why in rows[name].note, rows[name].n) == (few, few, 8)


@pytest.mark.parametrize(
    ("unlearned", "retrained", "missing", "why"),
    [
        ((None, 0.6), (0.9, 0.8), "retain", "no retain accuracy was given"),
        ((0.8, 0.6), (0.9, None), "test", "no test accuracy was given"),
        ((0.8, 0.6), (0.9, 0.0), "test", "the test accuracy of retrained models is 0"),
    ],
)
def test_what_of_accuracy_is_missing_is_said(unlearned, retrained, missing, why):
    rows = rows_of(models(9, 1.0, *unlearned), models(9, 0.0, *retrained))
    ratio = rows.pop(f"{missing}_accuracy_ratio")
    assert (math.isnan(ratio.value), ratio.n, ratio.note) == (True, 9, why)
    (other,) = (row for name, row in rows.items() if name.endswith("_accuracy_ratio"))
    assert other.value > 0.7
    assert (rows["score"].n, rows["score"].note) == (
        8, "the final score needs retain and test accuracy of both populations"
    )  # fmt: skip


def test_ratios_have_students_interval_over_models():
    accuracy = np.array([0.5, 0.6, 0.7, 0.9])
    unlearned = competition.Models(phi(4, 1.0), accuracy, accuracy)
    row = rows_of(unlearned, models(4, 0.0, 0.5, 0.5))["retain_accuracy_ratio"]
    half = student(3).ppf(0.975) * accuracy.std(ddof=1) / 2 / 0.5
    assert limits(row) == pytest.approx(
        (accuracy.mean() / 0.5, accuracy.mean() / 0.5 - half, accuracy.mean() / 0.5 + half)
    )


def test_the_interval_of_the_score_is_widened_by_those_of_its_factors_in_squares():
    score, ratio = stats.Estimate(0.5, 0.4, 0.7, 9), stats.Estimate(2.0, 1.8, 2.2, 9)
    wide = competition._widened(score, [ratio, replace(ratio, high=2.0)])
    expected = 0.5 - math.hypot(0.1, 0.05), 0.5 + math.hypot(0.2, 0.05)
    assert (wide.value, wide.low, wide.high) == pytest.approx((0.5, *expected))


def test_two_models_say_nothing_of_how_models_vary():
    rows = rows_of(models(2, 1.0, 0.8, 0.6), models(2, 0.0, 0.9, 0.8))
    np.testing.assert_allclose(limits(rows["retain_accuracy_ratio"]), (8 / 9, np.nan, np.nan))
    assert rows["retain_accuracy_ratio"].note == "too few models for an interval over models"
    assert limits(rows["epsilon_mean"]) == pytest.approx((25, 50 * (0.5 - HALF), 50 * (0.5 + HALF)))


def test_groups_are_left_out_of_both_sides_from_three_models_on():
    subsets = _null.subsets(3, 5, competition.Options())
    assert [[side.tolist() for side in pair] for pair in subsets] == [
        [[True] * 3, [True] * 5],
        [[False, True, True], [False, False, True, True, True]],
        [[True, False, True], [True, True, False, False, True]],
        [[True, True, False], [True, True, True, True, False]],
    ]
    # a group stays where without it a side has one model: two of three would go with one of two groups
    for u, r, groups, count in ((2, 9, 4, 1), (9, 2, 4, 1), (3, 9, 4, 4), (9, 9, 4, 5), (3, 3, 2, 1), (4, 4, 2, 3)):
        assert len(_null.subsets(u, r, competition.Options(groups=groups))) == count


def test_limits_end_at_zero_and_at_one():
    apart, once = np.arange(8) < 7, 0.9 * np.eye(9)[0] + 0.01
    unlearned = competition.Models(phi(9, 1.0, apart), once, once)
    retrained = competition.Models(phi(9, 0.0, apart), *np.full((2, 9), 0.1))
    numbers = rows_of(unlearned, retrained)
    for name in ("forgetting_quality", "forgetting_quality_over_null", "score", "retain_accuracy_ratio"):
        assert numbers[name].value > 0
        assert numbers[name].ci_low == 0
    other = competition.Models(phi(9, 0.0, np.arange(8) < 6))  # told from the retrained models by one sample of eight
    assert limits(rows_of(unlearned, retrained, other)["forgetting_quality_null"])[::2] == (7 / 8, 1)


def contributed(*populations, groups: int = 4):
    """The effect to F/F₀ of unlearned, retrained and independently retrained models; None if there is none."""
    options, index = competition.Options(groups=groups), np.arange(populations[0].shape[1])
    parts = competition.over_null(*populations, index, options, np.random.default_rng(0))
    return parts.get("forgetting_quality_over_null")


def test_effects_are_those_of_groups_and_samples():
    part = contributed(phi(9, 1.0), phi(8, 0.0), None)
    np.testing.assert_allclose(part.value, np.full((1, 4), 0.5))
    assert (part.unit.tolist(), part.rule.ideal) == ([0, 1, 2, 3], 1)
    # each sample moves the mean by what it lies above it
    np.testing.assert_allclose(part.influence[0], np.tile((~TOLD - 0.5) / 8, (4, 1)), atol=0.01)
    assert contributed(phi(9, 1.0), phi(9, 0.0), phi(9, 0.0), groups=2).value.tolist() == [[0.5, 0.5]]
    np.testing.assert_allclose(contributed(phi(3, 1.0), phi(3, 0.0), phi(3, 1.0)).value, 1, atol=1e-12)


def test_too_few_models_or_samples_contribute_nothing():
    def of_samples(told):
        return [phi(3, of, np.array(told)) for of in (1.0, 0.0, 0.0)]

    assert contributed(phi(3, 1.0), phi(3, 0.0), phi(3, 0.0))
    assert contributed(*of_samples([True, False]))
    for populations in (
        (phi(7, 1.0), phi(8, 0.0), None), (phi(8, 1.0), phi(7, 0.0), None), (phi(2, 1.0), phi(3, 0.0), phi(3, 0.0)),
        of_samples([False]), (phi(3, 1.0), phi(3, 0.0), phi(3, 9.0, TOLD | True)),  # F₀ is 0
    ):  # fmt: skip
        assert contributed(*populations) is None


def test_a_population_is_read_where_it_was_taught_and_tested_where_it_is_true():
    y, clean = np.array([0, 1, 0, 1, 0, 1]), np.array([1, 1, 0, 1, 1, 1])
    guess = np.array([[0, 1, 0, 1, 1, 1], [0, 0, 1, 1, 0, 1]])
    logits = np.where(np.eye(2)[guess] > 0, 3.0, 0.0)
    forget = np.tile(np.arange(6) == 1, (2, 1))
    retain = np.array([[1, 0, 1, 1, 0, 0], [0, 0, 1, 1, 0, 0]], bool)
    case = SimpleNamespace(
        labels=y, membership=SimpleNamespace(forget=forget, retain=retain), answers=lambda files: Held(logits),
        data=SimpleNamespace(y=y, y_clean=clean, part=np.array([0, 0, 0, 0, 1, 1])),
    )  # fmt: skip
    population = competition.population(Group(case, ["own"]))
    np.testing.assert_allclose(population.phi, [[3], [-3]], atol=1e-6)
    for accuracy in (population.retain_accuracy, population.test_accuracy):
        assert accuracy.mean(axis=1).tolist() == [1, 0.5]
    case.data.part = np.zeros(6)
    assert competition.population(Group(case, ["own"])).test_accuracy is None


@pytest.mark.parametrize(
    ("null", "ends"),
    [([[1, 1, 0], [1, 1, 0], [1, 1, 0]], True), ([[1, 1, 0], [1, 1, 0], [0, 0, 0]], False),
     ([[1, 0, 0], [1, 0, 0], [1, 0, 0]], False), ([[1, 1, 0], [1, 1, 0], [1, 0, 0]], False),
     ([[1], [1], [1]], True), ([[1], [1], [0]], False)],
    ids=["stands", "without a group", "without a sample", "without both", "one sample", "one sample and a group"],
)  # fmt: skip
def test_a_null_that_rests_on_one_group_or_one_sample_leaves_no_interval(null, ends):
    null = np.array(null, float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ratio = competition._ratio(null / 2, null, "why")
    assert ratio.value == 0.5
    assert np.isfinite([ratio.low, ratio.high]).all() == ends
    assert ratio.note == ("why" if ends else "no interval: F₀ is 0 without some samples or some models (why)")
