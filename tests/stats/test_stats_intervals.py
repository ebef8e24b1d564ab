"""Quantiles, intervals of means, deviations and rates, influences, and the logit-scaled confidence."""

import numpy as np
import pytest
import scipy.stats
from scipy import special
from unlearning_audit import stats
from unlearning_audit.stats.logits import lead

from stat_cases import at_least, three


@pytest.mark.parametrize("n", [2, 9])
def test_mean_and_sd_intervals_are_the_textbook_ones(n):
    values = np.random.default_rng(5).normal(3, 2, n)
    for level in (0.95, 0.4):
        tails = (1 - level) / 2, (1 + level) / 2
        mean, sd = (how(values=values, level=level) for how in (stats.mean_interval, stats.sd_interval))
        limits = values.mean() + special.stdtrit(n - 1, tails) * values.std(ddof=1) / np.sqrt(n)
        np.testing.assert_allclose(three(mean), [values.mean(), *limits])
        limits = np.sqrt((n - 1) * values.var(ddof=1) / scipy.stats.chi2.ppf(tails[::-1], n - 1))
        np.testing.assert_allclose(three(sd), [values.std(ddof=1), *limits])
        assert (mean.n, sd.n, mean.note, sd.note) == (n, n, "", "")
    assert stats.mean_interval(values=values) == stats.mean_interval(values=values, level=0.95)
    assert stats.sd_interval(values=values) == stats.sd_interval(values=values, level=0.95)


def test_too_few_values_say_how_many_there_were():
    for values, how, expected in (
        ([], stats.mean_interval, (np.nan, 0, "no values")),
        ([2.0], stats.mean_interval, (2.0, 1, "one value has no interval")),
        ([], stats.sd_interval, (np.nan, 0, "a standard deviation needs at least two values")),
        ([2.0], stats.sd_interval, (np.nan, 1, "a standard deviation needs at least two values")),
    ):
        estimate = how(values=np.array(values))
        np.testing.assert_equal((estimate.value, estimate.n, estimate.note), expected)
        assert np.isnan([estimate.low, estimate.high]).all()


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (3, 10), (10, 10), (1, 1000), (1, 1)])
def test_clopper_pearson_is_exact(successes, n):
    """Each limit leaves exactly so much beyond the observed count."""
    for level in (0.95, 0.4):
        interval, tail = stats.clopper_pearson(successes=successes, n=n, level=level), (1 - level) / 2
        assert (interval.value, interval.n) == (successes / n, n)
        beyond = (
            scipy.stats.binom.sf(successes - 1, n, interval.low),
            scipy.stats.binom.cdf(successes, n, interval.high),
        )
        assert beyond[0] == pytest.approx(tail, rel=1e-9) if successes else interval.low == 0
        assert beyond[1] == pytest.approx(tail, rel=1e-9) if successes < n else interval.high == 1


def test_the_interval_of_a_quantile_covers_it():
    rng, audits = np.random.default_rng(4), 500
    intervals = [stats.quantile_interval(values=rng.standard_exponential(200), share=0.95) for _ in range(audits)]
    inside = np.mean([interval.low <= -np.log(0.05) <= interval.high for interval in intervals])
    assert inside >= at_least(0.95, audits)
    assert {interval.note for interval in intervals} == {""}


@pytest.mark.parametrize(("count", "low", "high"), [(5, np.nan, np.nan), (6, 1.0, 6.0), (8, 1.0, 8.0), (20, 6.0, 15.0)])
def test_the_interval_of_a_median_is_that_of_order_statistics(count, low, high):
    """As tables of the sign test have it, and the same from either end."""
    values = 1.0 + np.arange(count)
    interval, turned = (stats.quantile_interval(values=sign * values, share=0.5) for sign in (1, -1))
    np.testing.assert_equal(three(interval), [(1 + count) / 2, low, high])
    np.testing.assert_equal([-turned.high, -turned.low], [low, high])
    assert interval.note == ("5 values are too few for a limit on one side" if count == 5 else "")


def test_influences_of_weighted_values_by_hand():
    """Weights 1 and 3: an average one weighs 10/4, in all 4 + 2·2.5 = 9; two of them lie at 0 and at 1."""
    value, weight = np.array([[1.0, 0.0], [0.5, 0.75]]), np.array([[1.0, 3.0], [1.0, 1.0]])
    mean, influence, imagined = stats.mean_influence(value=value, weight=weight)
    centre = np.array([(0.25 * 4 + 2.5) / 9, (0.625 * 2 + 1) / 4])[:, None]
    np.testing.assert_allclose(mean, [0.25, 0.625])
    np.testing.assert_allclose(influence, weight / [[9], [4]] * (value - centre))
    np.testing.assert_allclose(imagined, [[2.5 / 9], [1 / 4]] * (np.array([0, 1]) - centre))


def test_degrees_of_freedom_of_squares_by_hand():
    influence = np.array([[1.0, 2.0], [0.0, 3.0], [0.0, 0.0]])
    np.testing.assert_allclose(stats.squares_dof(influence), [2 * 25 / 17, 2, np.inf])


def test_phi_is_the_log_odds_of_softmax():
    rng = np.random.default_rng(0)
    logits, y = rng.normal(0, 3, (4, 7, 5)), rng.integers(0, 5, 7)
    before, p = logits.copy(), np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    p_label = np.take_along_axis(p, np.broadcast_to(y, (4, 7))[..., None], -1)[..., 0]
    np.testing.assert_allclose(stats.phi(logits=logits, y=y), np.log(p_label / (1 - p_label)), rtol=1e-10)
    np.testing.assert_array_equal(logits, before)
    of_models = np.array([[[1.0, 2.0], [3.0, 0.5]], [[0.0, 4.0], [1.0, 1.0]]])
    np.testing.assert_array_equal(stats.phi(logits=of_models, y=np.array([[0, 1], [1, 0]])), [[-1.0, -2.5], [4.0, 0.0]])
    assert stats.phi(logits=of_models[0, 0], y=1) == 1.0
    assert stats.phi(logits=np.zeros((0, 3)), y=np.zeros(0, int)).shape == (0,)


def test_phi_is_exact_where_softmax_saturates():
    logits = [[1000, 0, 0], [-800, 900, -900], [60, 20, 20], [-900, -800, -800], [0, -np.inf, -np.inf], [-np.inf, 0, 0]]
    expected = [1000 - np.log(2), -1700.0, 40 - np.log(2), -100 - np.log(2), np.inf, -np.inf]
    value = stats.phi(logits=np.array(logits, np.float32), y=np.zeros(6, int))
    assert value.dtype == np.float64
    np.testing.assert_allclose(value, expected, rtol=1e-15)


def test_the_lead_is_that_over_the_next_class():
    logits = np.array([[2.0, 0.5, 1.0], [2.0, 0.5, 1.0], [-3.0, -1.0, -1.5]])
    np.testing.assert_array_equal(lead(logits=logits, y=np.array([0, 1, 2])), [1, -1.5, -0.5])


def test_phi_says_which_labels_there_may_be():
    for label in (3, -1):
        with pytest.raises(ValueError, match="labels must be in 0…2"):
            stats.phi(logits=np.zeros((2, 3)), y=np.array([0, label]))
    with pytest.raises(ValueError, match="not 1"):
        stats.phi(logits=np.zeros((2, 1)), y=np.array([0, 0]))
