"""Rates and levels by hand: which models and samples count, and what intervals of one model are."""

import numpy as np
import pytest
from scipy import special
from unlearning_audit.stats import crossed, levels, rates

ONE = {"split": np.zeros(1, int), "block": np.zeros(1, int)}


def test_predictions_are_the_first_of_the_largest_and_none_of_nan():
    logits = np.array([[[0.0, 2.0, 1.0], [3.0, 0.0, 3.0], [np.nan, 9.0, 0.0], [0.0, 0.0, -np.inf]]])
    np.testing.assert_array_equal(rates.predicted(logits), [[1, 0, -1, 0]])


def test_labels_are_of_samples_or_of_each_model_s():
    labels = np.array([4, 5, 6])
    np.testing.assert_array_equal(rates.per_model(labels, (2, 3), "y"), [labels, labels])
    labels_of_models = np.array([[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(rates.per_model(labels_of_models, (2, 3), "y"), labels_of_models)
    for wrong in (np.zeros(2), np.zeros((1, 3)), np.zeros((3, 2))):
        with pytest.raises(ValueError, match="test_y must be"):
            rates.per_model(wrong, (2, 3), "test_y")


def test_a_rate_of_one_model_has_the_interval_of_agresti_and_caffo():
    """Three of four, and two imaginary ones: variance p(1 − p)/6 at p = 4/6."""
    hit, rows = np.array([[1, 1, 0, 1, 0]], bool), np.array([[1, 1, 1, 1, 0]], bool)
    estimate = rates.rate(hit=hit, rows=rows, **ONE)
    moved = np.array([2, 2, -4, 2, -4, 2]) / 36
    half = special.stdtrit(2 * (moved**2).sum() ** 2 / (moved**4).sum(), 0.975) * np.sqrt(4 / 6 * 2 / 6 / 6)
    np.testing.assert_allclose([estimate.value, estimate.low, estimate.high], [0.75, 0.75 - half, 1])
    assert (estimate.n, estimate.note) == (4, crossed.ONE_MODEL)


def test_a_rate_ends_at_0_and_1():
    hit = np.array([[1, 0, 0]], bool)
    rare, common = (rates.rate(hit=outcome, rows=np.ones((1, 3), bool), **ONE) for outcome in (hit, ~hit))
    assert (rare.low, common.high) == (0, 1)
    assert rare.high == pytest.approx(1 - common.low)


def test_models_count_the_same_and_those_without_rows_not_at_all():
    hit = np.array([[1, 0, 1, 0], [1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 1]], bool)
    rows = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0]], bool)
    groups = {"split": np.array([0, 0, 1, 1]), "block": np.zeros(4, int)}
    estimate = rates.rate(hit=hit, rows=rows, **groups)
    np.testing.assert_allclose(estimate.value, (1 / 2 + 1 + 1 / 3) / 3)
    assert (estimate.n, estimate.note) == (3, "1 of 4 models have no samples in this role")
    none = rates.rate(hit=hit, rows=np.zeros_like(rows), **groups)
    assert (none.n, none.note) == (0, "no model has samples in this role")
    assert rates.rate(hit=hit[:3], rows=rows[:3], split=np.zeros(3, int), block=np.arange(3)).note == ""


def test_models_of_one_split_and_block_repeat_one_another_and_others_do_not():
    """Two models of a split differ by .5; the same two in different blocks or splits are what differs between these."""
    hit, rows = np.array([[1, 0], [1, 1], [1, 0], [1, 1]], bool), np.ones((4, 2), bool)

    def both_ways(split, block):
        part = crossed.per_model(value=hit * 1.0, weight=rows * 1.0)
        _, group = np.unique(10 * np.array(block) + np.array(split), return_inverse=True)
        return rates.rate(hit=hit, rows=rows, split=np.array(split), block=np.array(block)), levels.of(
            part, split=group, block=np.zeros(4, int), n=2, bounds=(0.0, 1.0)
        )

    for split, block in (([0, 0, 1, 1], [0, 0, 0, 0]), ([0, 1, 0, 1], [0, 0, 1, 1]), ([0, 0, 0, 0], [0, 1, 1, 0])):
        actual, expected = both_ways(split, block)
        np.testing.assert_allclose([actual.low, actual.value, actual.high], [expected.low, 0.75, expected.high])


def test_a_gap_counts_a_sample_once_and_may_be_negative():
    of, to = np.array([[0, 0, 0, 1]], bool), np.array([[1, 1, 1, 1]], bool)
    gap = rates.gap(of=of, to=to, rows=np.ones((1, 4), bool), **ONE)
    assert gap.value == -0.75
    assert gap.low == -1
    assert -0.75 < gap.high < 1
    assert gap.n == 4
    same = rates.gap(of=to, to=to, rows=np.ones((1, 4), bool), **ONE)
    assert same.value == 0
    reverse = rates.gap(of=to, to=of, rows=np.ones((1, 4), bool), **ONE)
    np.testing.assert_allclose([reverse.value, reverse.low, reverse.high], [0.75, -gap.high, 1])


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
    less = levels.less(part, crossed.PerModel(*(np.flip(array) for array in vars(part).values())))
    assert [array.tolist() for array in vars(less).values()] == [[-3, 3], [[2], [-2]], [[0.5], [-0.5]]]


def test_a_level_needs_two_rows_in_a_model_and_counts_the_samples_of_such_models():
    value = np.array([[1.0, 3.0, 9.0, 9.0], [5.0, 9.0, 9.0, 9.0], [9.0, 2.0, 2.0, 9.0]])
    rows = np.array([[1, 1, 0, 0], [1, 0, 0, 1], [0, 1, 1, 0]], bool)
    rows[1, 0] = False
    estimate = levels.level(value=value, rows=rows, split=np.array([0, 0, 1]), block=np.zeros(3, int))
    np.testing.assert_allclose(estimate.value, 2.0)
    assert (estimate.n, estimate.note) == (3, "")
    none = levels.level(value=value[1:2], rows=rows[1:2], split=np.zeros(1, int), block=np.zeros(1, int))
    assert (none.n, none.note) == (0, "no model has two samples in this role")


def test_a_level_of_one_model_has_student_s_interval_with_the_degrees_of_freedom_of_its_squares():
    value = np.array([1.0, 2.0, 6.0])
    estimate = levels.level(value=value[None], rows=np.ones((1, 3), bool), **ONE)
    off = value - 3
    half = special.stdtrit(2 * (off**2).sum() ** 2 / (off**4).sum(), 0.975) * value.std(ddof=1) / np.sqrt(3)
    np.testing.assert_allclose([estimate.value, estimate.low, estimate.high], [3, 3 - half, 3 + half])


def test_splits_count_by_their_models_in_a_level():
    model_levels = levels.per_model(value=np.array([[1.0, 1], [2, 2], [9, 9]]), weight=np.ones((3, 2)))
    estimate = levels.of(model_levels, split=np.array([0, 0, 1]), block=np.zeros(3, int), n=7, note="phi")
    np.testing.assert_allclose(estimate.value, 4.0)
    assert (estimate.n, estimate.note) == (7, "phi")
    # deviations ±½ with one degree of freedom, and the share of a split is its share of models
    half = special.stdtrit(1, 0.975) * np.sqrt(0.5 * ((2 / 3) ** 2 / 2 + (1 / 3) ** 2))
    np.testing.assert_allclose([estimate.low, estimate.high], [4 - half, 4 + half])
