"""Rates and levels by hand: which models and samples count, what intervals of one model are, and coverage."""

import numpy as np
import pytest
from scipy import special
from unlearning_audit.stats import crossed, levels, rates

from stat_cases import at_least, three

ONE = {"split": np.zeros(1, int), "block": np.zeros(1, int)}


def student(moved, half):
    """A half-width with the degrees of freedom of squared influences."""
    return special.stdtrit(2 * (moved**2).sum() ** 2 / (moved**4).sum(), 0.975) * half


def test_predictions_are_the_first_of_the_largest_and_none_of_nan():
    logits = np.array([[[0.0, 2.0, 1.0], [3.0, 0.0, 3.0], [np.nan, 9.0, 0.0], [0.0, 0.0, -np.inf]]])
    np.testing.assert_array_equal(rates.predicted(logits), [[1, 0, -1, 0]])


def test_a_rate_of_one_model_has_the_interval_of_agresti_and_caffo_and_ends_at_0_and_1():
    """Three of four, and two imaginary ones: variance p(1 − p)/6 at p = 4/6."""
    hit, rows = np.array([[1, 1, 0, 1, 0]], bool), np.array([[1, 1, 1, 1, 0]], bool)
    estimate, reverse = (rates.rate(hit=outcome, rows=rows, **ONE) for outcome in (hit, ~hit))
    half = student(np.array([2, 2, -4, 2, -4, 2]), np.sqrt(4 / 6 * 2 / 6 / 6))
    np.testing.assert_allclose(three(estimate), [0.75, 0.75 - half, 1])
    np.testing.assert_allclose(three(reverse), [0.25, 0, 0.25 + half])
    assert (estimate.n, estimate.note) == (4, crossed.ONE_MODEL)


def test_models_count_the_same_and_those_without_rows_not_at_all():
    hit = np.array([[1, 0, 1, 0], [1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 1]], bool)
    rows = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0]], bool)
    groups = {"split": np.array([0, 0, 1, 1]), "block": np.zeros(4, int)}
    estimate = rates.rate(hit=hit, rows=rows, **groups)
    np.testing.assert_allclose(estimate.value, (1 / 2 + 1 + 1 / 3) / 3)
    assert (estimate.n, estimate.note) == (3, "1 of 4 models have no samples in this role")
    none = rates.rate(hit=hit, rows=np.zeros_like(rows), **groups)
    assert (none.n, none.note) == (0, "no model has samples in this role")


def test_a_gap_counts_a_sample_once_and_may_be_negative():
    of, to = np.array([[0, 0, 0, 1]], bool), np.array([[1, 1, 1, 1]], bool)
    gap, reverse, same = (
        rates.rate(hit=a, less=b, rows=np.ones((1, 4), bool), **ONE) for a, b in ((of, to), (to, of), (to, to))
    )
    assert (gap.value, gap.low, gap.n, same.value) == (-0.75, -1, 4, 0)
    assert -0.75 < gap.high < 1
    np.testing.assert_allclose(three(reverse), [0.75, -gap.high, 1])


def test_a_weighted_level_by_hand():
    """Weights ¼, ¼, ½: 8/3 samples in effect, so that squares are corrected by (8/3)/(8/3 − 1)."""
    value, weight = np.array([[1.0, 2, 5], [4, 9, 1], [1, 3, 7]]), np.array([[1.0, 1, 2], [1, 0, 0], [3, 1, 0]])
    actual = levels.per_model(value=value, weight=weight)
    np.testing.assert_allclose(actual.value, [3.25, 4.0, 1.5])
    np.testing.assert_allclose(actual.influence[0], np.sqrt(8 / 5) * np.array([-2.25, -1.25, 1.75]) / [4, 4, 2])
    np.testing.assert_allclose(actual.influence[2], np.sqrt(1.6 / 0.6) * np.array([-0.375, 0.375, 0]))
    np.testing.assert_array_equal(actual.influence[1], [0, 0, 0])
    np.testing.assert_array_equal(actual.imagined, np.zeros((3, 2)))
    part = crossed.PerModel(np.array([1.0, 4.0]), np.array([[3.0], [1.0]]), np.array([[0.5], [0.0]]))
    less = levels.difference(part, crossed.PerModel(*(np.flip(array) for array in vars(part).values())))
    assert [array.tolist() for array in vars(less).values()] == [[-3, 3], [[2], [-2]], [[0.5], [-0.5]]]


def test_a_level_needs_two_rows_in_a_model_and_counts_the_samples_of_such_models():
    value = np.array([[1.0, 3.0, 9.0, 9.0], [5.0, 9.0, 9.0, 9.0], [9.0, 2.0, 2.0, 9.0]])
    rows = np.array([[1, 1, 0, 0], [0, 0, 0, 1], [0, 1, 1, 0]], bool)
    estimate = levels.level(value=value, rows=rows, split=np.array([0, 0, 1]), block=np.zeros(3, int))
    assert (estimate.value, estimate.n, estimate.note) == (pytest.approx(2.0), 3, "")
    none = levels.level(value=value[1:2], rows=rows[1:2], **ONE)
    assert (none.n, none.note) == (0, "no model has two samples in this role")


def test_a_level_of_one_model_has_student_s_interval_which_ends_where_the_mean_cannot_be():
    value = np.array([1.0, 2.0, 6.0])
    free, cut = (levels.level(value=value[None], rows=np.ones((1, 3), bool), **ONE, low=low) for low in (-np.inf, 0.0))
    half = student(value - 3, value.std(ddof=1) / np.sqrt(3))
    assert half > 3
    np.testing.assert_allclose(three(free), [3, 3 - half, 3 + half])
    assert three(cut) == [free.value, 0, free.high]
    part = levels.per_model(value=value[None], weight=np.ones((1, 3)))
    assert three(levels.mean(part, **ONE, n=3, bounds=(4, 5))) == [4, 4, 5]


def test_splits_count_by_their_models_in_a_level():
    model_levels = levels.per_model(value=np.array([[1.0, 1], [2, 2], [9, 9]]), weight=np.ones((3, 2)))
    estimate = levels.mean(model_levels, split=np.array([0, 0, 1]), block=np.zeros(3, int), n=7, note="phi")
    # deviations ±½ with one degree of freedom, and the share of a split is its share of models
    half = special.stdtrit(1, 0.975) * np.sqrt(0.5 * ((2 / 3) ** 2 / 2 + (1 / 3) ** 2))
    np.testing.assert_allclose(three(estimate), [4, 4 - half, 4 + half])
    assert (estimate.n, estimate.note) == (7, "phi")


def test_an_interval_over_units_knows_that_they_differ_where_models_of_each_agree():
    """Two pairs of models, 0.2 and 0.8 on all samples: Student's t with one degree of freedom is tan(0.475·π)."""
    means = levels.per_model(value=np.repeat([0.2, 0.2, 0.8, 0.8], 5).reshape(4, 5), weight=np.ones((4, 5)))
    groups = {"split": np.zeros(4, int), "block": np.array([3, 3, 8, 8]), "n": 5}
    alone, over_units = levels.mean(means, **groups), levels.mean(means, **groups, units=True)
    assert three(alone) == pytest.approx([0.5] * 3)
    assert over_units.high - 0.5 == pytest.approx(0.3 * np.tan(0.475 * np.pi))


def covered(models, samples, spread, studies, copies=1):
    """How often the mean is covered where samples vary by 1, models by ``spread`` and both together by ½; ``copies`` of
    one original have its deviation in common."""
    rng, inside = np.random.default_rng(2), 0
    places = {"rows": np.ones((models, samples), bool), "split": np.zeros(models, int), "block": np.zeros(models, int)}
    places |= {"copied": np.arange(models) // copies} if copies > 1 else {}
    for _ in range(studies):
        value = rng.normal(size=samples) + spread * rng.normal(size=(models, 1))[np.arange(models) // copies]
        estimate = levels.level(value=value + 0.5 * rng.normal(size=(models, samples)), **places)
        inside += estimate.low <= 0 <= estimate.high
    return inside / studies


def test_intervals_of_levels_cover_when_samples_and_models_vary():
    assert at_least(0.95, 300) <= covered(6, 30, 0.3, 300) < 0.99
    assert at_least(0.95, 300) <= covered(24, 60, 0.6, 300, copies=4) < 0.99


@pytest.mark.slow
@pytest.mark.parametrize("models", [2, 3])
def test_two_and_three_models_that_differ_more_than_samples_explain_are_covered(models):
    """Models vary three times as much as the mean over 100 samples. Satterthwaite's degrees of freedom alone, which are
    many where so few models agree by chance, cover .89 with two models and about .92 with three."""
    assert covered(models, 100, 0.3, 2000) >= at_least(0.95, 2000)
