"""KLOM by hand, and intervals of quantiles."""

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.stats import klom


def test_two_bins_by_hand():
    """Of four retrained models three lie in the upper half, of four unlearned ones one."""
    actual = klom.divergence(margin=np.array([[0.0, 1], [0, 1], [0, 1], [1, 1]]),
                             reference=np.array([[0.0, 1], [1, 1], [1, 1], [1, 1]]), bins=2)  # fmt: skip
    np.testing.assert_allclose(actual, [0.25 * np.log(1 / 3) + 0.75 * np.log(3), 0.0], atol=1e-12)


def test_four_bins_of_width_one_by_hand():
    margin, reference = (np.array(x, float)[:, None] for x in ([0, 1, 3, 4], [0, 0, 2.5, 3]))
    first, second = np.array([0.25, 0.25, 0.05, 0.5]) / 1.05, np.array([0.5, 0.05, 0.25, 0.25]) / 1.05
    expected = (second * np.log(second / first)).sum()
    for scale, shift in ((1, 0), (3, -7)):  # bins go with the margins
        sides = {"margin": scale * margin + shift, "reference": scale * reference + shift}
        (value,) = klom.divergence(**sides, bins=4, least=0.05)
        assert value == pytest.approx(expected)


def test_margins_of_other_samples_are_refused_by_both_shapes():
    with pytest.raises(ValueError, match=r"of the same samples, not \(5, 2\), \(4, 3\)$"):
        klom.divergence(margin=np.zeros((5, 2)), reference=np.zeros((4, 3)))


@pytest.mark.parametrize("shape", [(2,), (2, 2, 2)])
def test_margins_are_of_models_and_samples_on_either_side(shape):
    for margin, reference in ((np.ones(shape), np.ones((2, 2))), (np.ones((2, 2)), np.ones(shape))):
        with pytest.raises(ValueError, match=r"margins must be \[models, samples\]"):
            klom.divergence(margin=margin, reference=reference)


def test_what_overlaps_nowhere_costs_the_logarithm_of_the_least_share():
    margin, reference = np.zeros((5, 1)), np.ones((5, 1))
    np.testing.assert_allclose(klom.divergence(margin=margin, reference=reference), np.log(1e5), rtol=1e-3)


def test_margins_that_are_none_are_refused():
    with pytest.raises(ValueError, match="finite"):
        klom.divergence(margin=np.full((2, 2), np.inf), reference=np.ones((2, 2)))


def test_the_interval_of_the_percentile_covers_that_of_all_samples_of_the_same_models():
    """Of 20,000 samples that a pair of populations might be asked about, 300 are drawn; 400 draws."""
    rng, audits = np.random.default_rng(7), 400
    sides = rng.standard_normal((2, 20, 20_000)) + 0.5 * rng.standard_normal((2, 20, 1))
    value = klom.divergence(margin=sides[0], reference=sides[1])
    truth = np.quantile(value, 0.95)
    draws = [stats.quantile_interval(values=rng.choice(value, 300), share=0.95) for _ in range(audits)]
    inside = np.mean([draw.low <= truth <= draw.high for draw in draws])
    assert inside >= 0.95 - 3.1 * np.sqrt(0.95 * 0.05 / audits)


def test_the_interval_of_a_quantile_covers_it():
    rng, audits = np.random.default_rng(4), 2000
    intervals = [stats.quantile_interval(values=rng.standard_exponential(200), share=0.95) for _ in range(audits)]
    truth = -np.log(0.05)
    assert np.mean([interval.low <= truth <= interval.high for interval in intervals]) >= 0.94
    assert {interval.note for interval in intervals} == {""}
    few = stats.quantile_interval(values=np.arange(10.0), share=0.95)
    assert (np.isnan(few.high), few.note) == (True, "10 values are too few for a limit on one side")


@pytest.mark.parametrize(("count", "low", "high"), [(5, np.nan, np.nan), (6, 1.0, 6.0), (8, 1.0, 8.0), (20, 6.0, 15.0)])
def test_the_interval_of_a_median_is_that_of_order_statistics(count, low, high):
    """As tables of the sign test have it, and the same from either end."""
    values = 1.0 + np.arange(count)
    interval = stats.quantile_interval(values=values, share=0.5)
    np.testing.assert_equal([interval.low, interval.high], [low, high])
    turned = stats.quantile_interval(values=-values, share=0.5)
    np.testing.assert_equal([-turned.high, -turned.low], [low, high])


def test_the_part_of_bins_without_models_by_hand():
    """Of four bins one holds reference models alone."""
    margin, reference = (np.array(x, float)[:, None] for x in ([0, 0, 19, 19], [0, 0, 19, 5]))
    (part,) = klom.of_empty_bins(margin=margin, reference=reference)
    assert part == pytest.approx(0.25 * np.log(0.25 / 1e-5), rel=1e-3)
