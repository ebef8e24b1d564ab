"""Quantiles, and intervals of means, standard deviations and rates."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy  # its special functions import slowly, and only when first used: planning uses none

from unlearning_audit.stats.estimates import LEVEL, Estimate, empty
from unlearning_audit.stats.shapes import Float, Vector


def normal_quantile(p: float | Float[np.ndarray, "..."]) -> Any:
    """Return the quantile of the standard normal distribution, elementwise.

    Parameters
    ----------
    p : float or float [...]
        Probabilities in [0, 1].

    Returns
    -------
    float64, of the shape of ``p``
    """
    return scipy.special.ndtri(p)


def normal_probability(z: float | Float[np.ndarray, "..."]) -> Any:
    """Return the probability that a standard normal variable is at most ``z``, elementwise.

    Parameters
    ----------
    z : float or float [...]
        Limits of the variable.

    Returns
    -------
    float64, of the shape of ``z``
    """
    return scipy.special.ndtr(z)


def t_quantile(*, p: float | Float[np.ndarray, "..."], dof: float | Float[np.ndarray, "..."]) -> Any:
    """Return the quantile of Student's t distribution, elementwise.

    Parameters
    ----------
    p : float or float [...]
        Probabilities in [0, 1].
    dof : float or float [...]
        Degrees of freedom above 0, which may be fractional or inf.

    Returns
    -------
    float64, of the shape to which ``p`` and ``dof`` are broadcast
    """
    return scipy.special.stdtrit(dof, p)


def mean_interval(*, values: Vector, level: float = LEVEL) -> Estimate:
    """Return the mean of independent values with Student's t interval.

    Parameters
    ----------
    values : float [n]
        The values; below n = 2 the limits are NaN.
    level : float
        Confidence level of the interval.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> estimate = mean_interval(values=np.array([1.0, 2.0, 3.0, 4.0]))
    >>> estimate.value, round(estimate.low, 2), round(estimate.high, 2)
    (2.5, 0.45, 4.55)
    """
    values = np.asarray(values, dtype=np.float64)
    n = len(values)
    if n == 0:
        return empty(n=0, note="no values")
    mean = float(values.mean())
    if n == 1:
        return Estimate(mean, np.nan, np.nan, 1, "one value has no interval")
    half = float(t_quantile(p=(1 + level) / 2, dof=n - 1) * values.std(ddof=1) / np.sqrt(n))
    return Estimate(mean, mean - half, mean + half, n)


def sd_interval(*, values: Vector, level: float = LEVEL) -> Estimate:
    """Return the standard deviation of normal values, with divisor n − 1, and its chi-square interval.

    Parameters
    ----------
    values : float [n]
        The values; below n = 2 the result is NaN.
    level : float
        Confidence level of the interval.

    Returns
    -------
    Estimate
    """
    values = np.asarray(values, dtype=np.float64)
    n = len(values)
    if n < 2:
        return empty(n=n, note="a standard deviation needs at least two values")
    sd = float(values.std(ddof=1))
    tails = scipy.special.chdtri(n - 1, [(1 - level) / 2, (1 + level) / 2])
    low, high = sd * np.sqrt((n - 1) / tails)
    return Estimate(sd, float(low), float(high), n)


def quantile_interval(*, values: Vector, share: float, level: float = LEVEL) -> Estimate:
    """Return a quantile of independent values with its interval by order statistics, valid for any distribution.

    Source: David and Nagaraja 2003, section 7.1.

    Parameters
    ----------
    values : float [n]
        The values.
    share : float
        Which quantile, between 0 and 1.
    level : float
        Confidence level of the interval.

    Returns
    -------
    Estimate
        A limit beyond all values is NaN, and the note says so.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n, tail = len(ordered), (1 - level) / 2
    at_most = scipy.special.bdtr(np.arange(n), n, share)  # Pr[at most k values lie below the quantile], for k < n
    ranks = int(np.searchsorted(at_most, tail, "right")) - 1, int(np.searchsorted(at_most, 1 - tail))
    low, high = (float(ordered[rank]) if 0 <= rank < n else np.nan for rank in ranks)
    note = f"{n} values are too few for a limit on one side" if np.isnan(low + high) else ""
    with np.errstate(invalid="ignore"):  # of infinite values
        return Estimate(float(np.quantile(ordered, share)), low, high, n, note)


def clopper_pearson(*, successes: int, n: int, level: float = LEVEL) -> Estimate:
    """Return a rate with its exact binomial interval (Clopper and Pearson 1934).

    Parameters
    ----------
    successes : int
        The count of successes, from 0 to ``n``.
    n : int
        The count of trials, at least 1.
    level : float
        Confidence level of the interval.

    Returns
    -------
    Estimate
    """
    tail = (1 - level) / 2
    low = scipy.special.betaincinv(successes, n - successes + 1, tail) if successes > 0 else 0.0
    high = scipy.special.betaincinv(successes + 1, n - successes, 1 - tail) if successes < n else 1.0
    return Estimate(successes / n, float(low), float(high), n)


def widened_rate(*, exact: Estimate, half: float) -> Estimate:
    """Return a rate with its interval widened by a further half-width, such as that over models, which move all samples
    together. Half-widths are added in squares (Banerjee 1960), and limits are cut at 0 and 1.

    Parameters
    ----------
    exact : Estimate
        The rate with its interval over samples.
    half : float
        The further half-width.

    Returns
    -------
    Estimate
    """
    below, above = (float(np.hypot(own, half)) for own in (exact.value - exact.low, exact.high - exact.value))
    return replace(exact, low=max(exact.value - below, 0.0), high=min(exact.value + above, 1.0))


def mean_influence(
    *, value: Float[np.ndarray, "... n"], weight: Float[np.ndarray, "... n"]
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "... n"], Float[np.ndarray, "... 2"]]:
    """Return the weighted mean of values in [0, 1], and the influence of each sample on it: how far the sample moves
    the mean, to first order.

    The influences, those of two imaginary samples included, sum to zero. The sum of their squares is the variance of
    Agresti and Caffo (2000), which stays above zero when all values agree. The mean counts real samples only.

    Parameters
    ----------
    value : float64 [..., n]
        Values in [0, 1].
    weight : float64 [..., n]
        Weights, whose sum is positive.

    Returns
    -------
    mean : float64 [...]
        The weighted mean.
    influence : float64 [..., n]
        The influence of each sample.
    imagined : float64 [..., 2]
        The influence of two imaginary samples of average weight, one with value 0 and one with value 1.
    """
    total = weight.sum(axis=-1, keepdims=True)
    typical = (weight**2).sum(axis=-1, keepdims=True) / total
    mean = (weight * value).sum(axis=-1, keepdims=True) / total
    centre = (mean * total + typical) / (total + 2 * typical)
    influence = weight / (total + 2 * typical) * (value - centre)
    imagined = typical / (total + 2 * typical) * (np.array([0.0, 1.0]) - centre)
    return mean[..., 0], influence, imagined


def squares_dof(influence: Float[np.ndarray, "... n"]) -> Float[np.ndarray, "..."]:
    """Return the degrees of freedom of the variance Σ influence², estimated from its fourth moments.

    The formula is Satterthwaite's 2V²/var V, where V is the variance, with the cautious bound var V ≤ Σ influence⁴. So
    there are two degrees of freedom per event when a few rare events make up the variance, and two thirds of n for n
    normal influences.

    Parameters
    ----------
    influence : float [..., n]
        The influence of each sample.

    Returns
    -------
    float64 [...]
        Sums are over the last axis; inf where all influences are zero.
    """
    squares = influence**2
    square, fourth = squares.sum(axis=-1), (squares**2).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(fourth > 0, 2 * square**2 / fourth, np.inf)
