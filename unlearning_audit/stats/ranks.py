"""Rank correlations with intervals."""

import numpy as np

from unlearning_audit.stats.estimates import LEVEL, Estimate, empty
from unlearning_audit.stats.intervals import normal_quantile
from unlearning_audit.stats.shapes import Vector


def spearman(*, x: Vector, y: Vector, level: float = LEVEL) -> Estimate:
    """Return Spearman's rank correlation with the interval of Bonett and Wright (2000); ties get mean ranks.

    Parameters
    ----------
    x, y : float [n]
        The two lists; the result is NaN when one of them is constant, and the limits are NaN below n = 4.
    level : float
        Confidence level of the interval.

    Returns
    -------
    Estimate
    """
    x, y = _mean_ranks(x), _mean_ranks(y)
    n = len(x)
    x, y = x - x.mean(), y - y.mean()
    scale = np.sqrt((x @ x) * (y @ y))
    if scale == 0:
        return empty(n=n, note="a rank correlation needs two lists that vary")
    value = float(np.clip(x @ y / scale, -1, 1))
    return _fisher(value, n, (1 + value**2 / 2) / (n - 3) if n > 3 else np.nan, level)


def kendall(*, x: Vector, y: Vector, level: float = LEVEL) -> Estimate:
    """Return Kendall's τ-b with the interval of Fieller et al. (1957), in O(n²), which suits short rankings.

    Parameters
    ----------
    x, y : float [n]
        The two lists; the result is NaN when one of them is constant, and the limits are NaN below n = 5.
    level : float
        Confidence level of the interval.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> round(kendall(x=np.arange(6.0), y=np.array([0.0, 1, 2, 3, 5, 4])).value, 2)
    0.87
    """
    n, pairs = len(x), np.triu_indices(len(x), 1)
    # The order of every two entries of each list: 1, −1, or 0 if they are equal.
    a, b = (np.sign(np.subtract.outer(z, z))[pairs] for z in (np.asarray(x, float), np.asarray(y, float)))
    scale = np.sqrt((a @ a) * (b @ b))
    if scale == 0:
        return empty(n=n, note="a rank correlation needs two lists that vary")
    value = float(np.clip(a @ b / scale, -1, 1))
    return _fisher(value, n, 0.437 / (n - 4) if n > 4 else np.nan, level)


def _fisher(value: float, n: int, variance: float, level: float) -> Estimate:
    """Return a correlation ``value`` of ``n`` pairs with its interval at ``level``. The interval is symmetric on the
    scale of artanh, on which the correlation has this ``variance``.

    The interval of a correlation of ±1 ends at it. Limits are NaN if ``variance`` is NaN.
    """
    if np.isnan(variance):
        return Estimate(value, np.nan, np.nan, n, f"{n} pairs are too few for an interval")
    half = normal_quantile((1 + level) / 2) * np.sqrt(variance)
    # arctanh is infinite at ±1. Half of the smallest step of τ is what a perfect order cannot tell from 1.
    bounded = np.clip(value, -1 + 2 / (n * (n - 1)), 1 - 2 / (n * (n - 1)))
    low, high = np.tanh(np.arctanh(bounded) + np.array([-half, half]))
    return Estimate(value, float(min(low, value)), float(max(high, value)), n)


def _mean_ranks(values: np.ndarray) -> np.ndarray:
    """Return the rank of each value, from 1, float64 [n]; equal values get the mean of their ranks."""
    _, group, count = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    # The last rank of each group of equal values, minus half of the distance to its first one.
    return (np.cumsum(count) - (count - 1) / 2)[group]
