"""Intervals, influences, phi and cuts of the ROC curve by hand, at their smallest sizes and exactly at their bounds."""

import numpy as np
import pytest
from scipy import special
from unlearning_audit import stats


def test_an_estimate_says_nothing_unless_it_is_told():
    assert stats.Estimate(1.0, 0.0, 2.0, 3).note == ""
    estimate = stats.empty(n=4, note="why")
    assert np.isnan([estimate.value, estimate.low, estimate.high]).all()
    assert (estimate.n, estimate.note) == (4, "why")


def test_the_level_of_intervals_is_95_percent_unless_another_is_asked_for():
    values = np.array([1.0, 3.0])
    estimate, wider = stats.mean_interval(values=values), stats.mean_interval(values=values, level=0.99)
    # one degree of freedom is the distribution of Cauchy
    np.testing.assert_allclose([estimate.low, estimate.high], 2 + np.tan(np.pi * 0.475) * np.array([-1, 1]))
    np.testing.assert_allclose([wider.low, wider.high], 2 + np.tan(np.pi * 0.495) * np.array([-1, 1]))
    assert estimate.n == 2
    assert stats.LEVEL == 0.95


def test_the_interval_of_a_standard_deviation_of_two_values():
    estimate = stats.sd_interval(values=np.array([0.0, 2.0]), level=0.4)
    assert estimate.value == pytest.approx(np.sqrt(2))
    assert estimate.n == 2
    # χ² with one degree of freedom is a squared normal variable
    limits = np.sqrt(2) / np.abs(special.ndtri([0.85, 0.65]))
    np.testing.assert_allclose([estimate.low, estimate.high], limits)


def test_too_few_values_say_how_many_there_were():
    none, single = stats.mean_interval(values=np.array([])), stats.mean_interval(values=np.array([2.0]))
    assert (none.n, none.note) == (0, "no values")
    assert (single.value, single.n, single.note) == (2, 1, "one value has no interval")
    assert np.isnan([none.value, single.low, single.high]).all()
    for values in ([], [2.0]):
        estimate = stats.sd_interval(values=np.array(values))
        assert np.isnan([estimate.value, estimate.low, estimate.high]).all()
        assert (estimate.n, estimate.note) == (len(values), "a standard deviation needs at least two values")


def test_the_exact_interval_of_one_trial():
    none, all_ = (stats.clopper_pearson(successes=k, n=1, level=0.4) for k in (0, 1))
    np.testing.assert_allclose([none.value, none.low, none.high], [0, 0, 0.7])
    np.testing.assert_allclose([all_.value, all_.low, all_.high], [1, 0.3, 1], rtol=1e-12)
    assert (none.n, all_.n) == (1, 1)


def test_influences_of_weighted_values_by_hand():
    """Weights 1 and 3: an average one weighs 10/4, in all 4 + 2·2.5 = 9; two of them lie at 0 and at 1."""
    value, weight = np.array([[1.0, 0.0], [0.5, 0.75]]), np.array([[1.0, 3.0], [1.0, 1.0]])
    mean, influence, imagined = stats.mean_influence(value=value, weight=weight)
    centre = (0.25 * 4 + 2.5) / 9
    np.testing.assert_allclose(mean, [0.25, 0.625])
    np.testing.assert_allclose(influence[0], [(1 - centre) / 9, -3 * centre / 9])
    np.testing.assert_allclose(imagined[0], [-2.5 * centre / 9, 2.5 * (1 - centre) / 9])
    centre = (0.625 * 2 + 1) / 4
    np.testing.assert_allclose(influence[1], [(0.5 - centre) / 4, (0.75 - centre) / 4])
    np.testing.assert_allclose(imagined[1], [-centre / 4, (1 - centre) / 4])


def test_degrees_of_freedom_of_squares_by_hand():
    influence = np.array([[1.0, 2.0], [0.0, 3.0], [0.0, 0.0]])
    np.testing.assert_allclose(stats.squares_dof(influence), [2 * 25 / 17, 2, np.inf])


def test_an_auc_keeps_its_level_and_counts_rows_that_weigh():
    score, positive = np.array([0.1, 0.4, 0.35, 0.8, 0.9]), np.array([False, False, True, True, True])
    weight = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    estimate = stats.auc(score=score, positive=positive, weight=weight, level=0.5)
    assert (estimate.value, estimate.n) == (0.75, 4)
    # placements ½ and 1 of either side: centre (1.5 + 1)/4, two imaginary rows at 0 and 1 on each
    squares = np.array([0.5, 1.0, 0.0, 1.0] * 2) - 0.625
    variance, fourth = (squares**2).sum() / 16, (squares**4).sum() / 256
    half = special.stdtrit(2 * variance**2 / fourth, 0.75) * np.sqrt(variance)
    np.testing.assert_allclose([estimate.low, estimate.high], [0.75 - half, 0.75 + half])


def test_placements_by_hand():
    score, positive = np.array([3.0, 1.0, 2.0, 2.0, 0.0]), np.array([True, True, False, True, False])
    np.testing.assert_allclose(stats.placements(score=score, positive=positive), [1, 0.5, 0.5, 0.75, 1])
    weight = np.array([1.0, 1.0, 3.0, 2.0, 1.0])
    placements = stats.placements(score=score, positive=positive, weight=weight)
    np.testing.assert_allclose(placements, [1, 0.25, 0.5, 0.25 + 0.375, 1])


@pytest.mark.parametrize(("fpr", "cut"), [(0.0, 4.0), (0.19, 4.0), (0.2, 3.0), (0.39, 3.0), (0.4, 2.0), (0.99, 0.0)])
def test_a_cut_accepts_as_many_negatives_as_it_may(fpr, cut):
    assert stats.cut_at_fpr(negative_score=np.arange(5.0), fpr=fpr) == cut


def test_one_negative_may_be_accepted_where_the_rate_says_exactly_one():
    assert stats.unresolved(negatives=1 / 3 * 30, fpr=0.1) == ""
    assert stats.unresolved(negatives=3, fpr=1 / 3) == ""
    assert stats.unresolved(negatives=9.99, fpr=0.1) == "10 negatives cannot resolve a false positive rate of 0.1"
    assert stats.unresolved(negatives=1, fpr=1.0) == ""


def test_a_weighted_threshold_by_hand():
    """Values 3 (positive), 2 (negative), 1 (positive): what the negative weighs decides between 3 and 1."""
    value, positive = np.array([2.0, 3.0, 1.0]), np.array([False, True, True])
    assert stats.best_threshold(value=value, positive=positive, weight=np.array([1.0, 1.0, 3.0])) == 3
    value, positive = np.array([2.0, 3.0, 1.0, 0.0]), np.array([False, True, True, False])
    assert stats.best_threshold(value=value, positive=positive, weight=np.array([1.0, 1.0, 3.0, 3.0])) == 1
    assert stats.best_threshold(value=value, positive=positive, weight=np.array([3.0, 1.0, 3.0, 1.0])) == 3


@pytest.mark.parametrize("weight", [[np.nan, 1.0], [np.inf, 1.0], [1.0], [-1.0, 2.0]])
def test_weights_that_are_none_are_refused(weight):
    with pytest.raises(ValueError, match="finite, at least 0, and one per score"):
        stats.auc(score=np.arange(2.0), positive=np.array([True, False]), weight=np.array(weight))


@pytest.mark.parametrize("weight", [[0.0, 1.0], [1.0, 0.0]])
def test_both_sides_have_to_weigh_something(weight):
    with pytest.raises(ValueError, match="both sides"):
        stats.auc(score=np.arange(2.0), positive=np.array([True, False]), weight=np.array(weight))


@pytest.mark.parametrize("shape", [(), (2, 2)])
def test_scores_are_one_list(shape):
    with pytest.raises(ValueError, match="two lists of one length"):
        stats.auc(score=np.zeros(shape), positive=np.zeros(shape, dtype=bool))


def test_phi_says_which_labels_there_may_be():
    for label in (3, -1):
        with pytest.raises(ValueError, match="labels must be in 0…2"):
            stats.phi(logits=np.zeros((2, 3)), y=np.array([0, label]))
    with pytest.raises(ValueError, match="not 1"):
        stats.phi(logits=np.zeros((2, 1)), y=np.array([0, 0]))
    assert stats.phi(logits=np.zeros((0, 3)), y=np.zeros(0, int)).shape == (0,)
    np.testing.assert_allclose(stats.phi(logits=np.array([[1.0, 3.0]]), y=np.array([1])), [2.0])


def test_phi_of_a_label_that_is_certain_is_infinite_of_either_sign():
    logits = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    np.testing.assert_array_equal(stats.phi(logits=logits, y=np.array([0, 0])), [np.inf, -np.inf])
