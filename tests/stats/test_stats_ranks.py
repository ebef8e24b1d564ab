"""Rank correlations against an independent library, their intervals by hand, and coverage."""

import numpy as np
import pytest
import scipy.stats
from unlearning_audit import stats

from stat_cases import at_least, three

BOTH = pytest.mark.parametrize("how", [stats.spearman, stats.kendall])


@pytest.mark.parametrize("seed", range(6))
def test_rank_correlations_match_an_independent_library(seed):
    x, y = np.random.default_rng(seed).integers(0, 5, (2, 12))
    assert stats.spearman(x=x, y=y).value == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-12)
    assert stats.kendall(x=x, y=y).value == pytest.approx(scipy.stats.kendalltau(x, y).statistic, abs=1e-12)


@pytest.mark.parametrize("n", [5, 8, 30])
def test_the_intervals_are_the_published_formulas(n):
    """Fieller, Hartley and Pearson (1957) for Kendall's τ, Bonett and Wright (2000) for Spearman's ρ."""
    x, y = np.random.default_rng(n).normal(size=(2, n))
    for level in (0.9, 0.95):
        tau, rho = stats.kendall(x=x, y=y, level=level), stats.spearman(x=x, y=y, level=level)
        for correlation, variance in ((tau, 0.437 / (n - 4)), (rho, (1 + rho.value**2 / 2) / (n - 3))):
            half = scipy.stats.norm.ppf((1 + level) / 2) * np.sqrt(variance)
            limits = np.tanh(np.arctanh(correlation.value) + np.array([-half, half]))
            np.testing.assert_allclose([correlation.low, correlation.high], limits, rtol=1e-9)
            assert (correlation.n, correlation.note) == (n, "")
    assert (tau, rho) == (stats.kendall(x=x, y=y), stats.spearman(x=x, y=y))


def test_kendall_s_interval_needs_five_pairs_and_spearman_s_four():
    x, y = np.array([1.0, 2, 3, 4, 5]), np.array([1.0, 3, 2, 5, 4])
    assert np.isfinite([stats.kendall(x=x, y=y).low, stats.spearman(x=x[:4], y=y[:4]).low]).all()
    for estimate in (stats.kendall(x=x[:4], y=y[:4]), stats.spearman(x=x[:3], y=y[:3])):
        assert np.isnan([estimate.low, estimate.high]).all()
        assert estimate.note == f"{estimate.n} pairs are too few for an interval"


@BOTH
def test_a_list_that_never_varies_has_no_rank_correlation(how):
    for x, y in ((np.ones(4), np.arange(4.0)), (np.arange(4.0), np.ones(4))):
        correlation = how(x=x, y=y)
        assert (correlation.n, correlation.note) == (4, "a rank correlation needs two lists that vary")


@BOTH
def test_a_perfect_order_of_few_keeps_its_end_and_is_not_certain(how):
    rising = np.arange(6.0)
    perfect, reverse = how(x=rising, y=rising), how(x=rising, y=-rising)
    assert (perfect.value, perfect.high, reverse.value, reverse.low) == (1, 1, -1, -1)
    variance = {stats.kendall: 0.437 / 2, stats.spearman: 1.5 / 3}[how]
    assert perfect.low == pytest.approx(np.tanh(np.arctanh(14 / 15) - 1.959964 * np.sqrt(variance)))
    np.testing.assert_allclose(reverse.high, -perfect.low)


@BOTH
def test_rank_correlation_intervals_cover(how):
    rng, rho, audits = np.random.default_rng(8), 0.5, 400
    truth = 6 / np.pi * np.arcsin(rho / 2) if how is stats.spearman else 2 / np.pi * np.arcsin(rho)
    x, e = rng.normal(size=(2, audits, 30))
    intervals = [how(x=a, y=b) for a, b in zip(x, rho * x + np.sqrt(1 - rho**2) * e, strict=True)]
    assert np.mean([three(i)[1] <= truth <= i.high for i in intervals]) >= at_least(0.95, audits)
