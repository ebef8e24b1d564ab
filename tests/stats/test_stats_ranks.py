"""Rank correlations against an independent library, by hand, and the coverage of their intervals."""

import numpy as np
import pytest
import scipy.stats
from unlearning_audit import stats


@pytest.mark.parametrize("seed", range(6))
def test_rank_correlations_match_an_independent_library(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 5, 12), rng.integers(0, 5, 12)
    assert stats.spearman(x=x, y=y).value == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-12)
    assert stats.kendall(x=x, y=y).value == pytest.approx(scipy.stats.kendalltau(x, y).statistic, abs=1e-12)


def test_rank_correlations_by_hand_and_at_the_ends():
    x, y = np.array([1, 2, 3, 4]), np.array([1, 3, 2, 4])
    assert stats.spearman(x=x, y=y).value == pytest.approx(0.8)
    assert stats.kendall(x=x, y=y).value == pytest.approx(4 / 6)
    x = np.arange(10)
    for function in (stats.spearman, stats.kendall):
        perfect, reverse = function(x=x, y=x**3), function(x=x, y=-x)
        assert perfect.value == pytest.approx(1, abs=1e-12)
        assert reverse.value == pytest.approx(-1, abs=1e-12)
        assert perfect.low <= perfect.value <= perfect.high <= 1
        assert -1 <= reverse.low <= reverse.value <= reverse.high
        assert np.isnan(function(x=x, y=np.ones(10)).value)
        assert np.isnan(function(x=x[:3], y=x[:3]).low)


def test_rank_correlation_intervals_cover():
    rng = np.random.default_rng(8)
    rho = 0.5
    truth = {stats.spearman: 6 / np.pi * np.arcsin(rho / 2), stats.kendall: 2 / np.pi * np.arcsin(rho)}
    for function, value in truth.items():
        inside = 0
        for _ in range(500):
            x, e = rng.normal(size=(2, 30))
            correlation = function(x=x, y=rho * x + np.sqrt(1 - rho**2) * e)
            inside += correlation.low <= value <= correlation.high
        assert inside / 500 >= 0.95 - 3.1 * np.sqrt(0.95 * 0.05 / 500)


@pytest.mark.parametrize("n", [5, 8, 30])
def test_the_intervals_are_the_published_formulas(n):
    """Fieller, Hartley and Pearson (1957) for Kendall's τ, Bonett and Wright (2000) for Spearman's ρ."""
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(2, n))
    tau, rho = stats.kendall(x=x, y=y, level=0.9), stats.spearman(x=x, y=y, level=0.9)
    for correlation, variance in ((tau, 0.437 / (n - 4)), (rho, (1 + rho.value**2 / 2) / (n - 3))):
        half = scipy.stats.norm.ppf(0.95) * np.sqrt(variance)
        limits = np.tanh(np.arctanh(correlation.value) + np.array([-half, half]))
        np.testing.assert_allclose([correlation.low, correlation.high], limits, rtol=1e-9)
