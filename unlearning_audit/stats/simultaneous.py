"""Intervals and p-values of several numbers that hold together, from the largest deviations under their correlation."""

from dataclasses import dataclass

import numpy as np

from unlearning_audit import stats
from unlearning_audit.stats import LEVEL
from unlearning_audit.stats.paired import Distances
from unlearning_audit.stats.shapes import Float

#: Draws of deviations if a caller does not say how many.
DRAWS = 4000


def deviations(
    *, correlation: Float[np.ndarray, "K K"], rng: np.random.Generator, draws: int = DRAWS
) -> Float[np.ndarray, "draws K"]:
    """Return ``draws`` draws of standard normal deviations of K numbers, with the ``correlation`` float64 [K, K]:
    float64 [draws, K].

    This is the Gaussian multiplier bootstrap: given the data, its results are normal with the estimated covariance,
    so they are drawn from that distribution directly (Chernozhukov, Chetverikov and Kato 2013).
    """
    return np.asarray(rng.standard_normal((draws, len(correlation))) @ root(correlation).T)


def root(covariance: Float[np.ndarray, "K K"]) -> Float[np.ndarray, "K K"]:
    """Return a matrix R with R Rᵀ = ``covariance``, float64 [K, K] each."""
    eigenvalues, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(eigenvalues, 0.0)))


def adjusted(*, p: Float[np.ndarray, "K"], largest: Float[np.ndarray, "draws"]) -> Float[np.ndarray, "K"]:
    """Return p-values of K numbers adjusted for choosing the largest, float64 [K].

    The adjusted p-value of a number is the probability that the largest |deviation| of all K reaches the one to which
    the number's own p-value belongs. It never exceeds Bonferroni's p-value, which is taken where draws are too few.
    Source: Westfall and Young 1993, single step.

    Parameters
    ----------
    p : float64 [K]
        Two-sided p-values of single numbers.
    largest : float64 [draws]
        The largest |deviation| of each draw under the hypothesis.

    Returns
    -------
    float64 [K]
    """
    deviation = -stats.normal_quantile(np.asarray(p, dtype=np.float64) / 2)
    beyond = len(largest) - np.searchsorted(np.sort(largest), deviation, "left")  # draws at least as large, int64 [K]
    return np.asarray(np.minimum(np.minimum((beyond + 1) / (len(largest) + 1), len(p) * p), 1.0))


def level_of_each(*, largest: Float[np.ndarray, "draws"], count: int, level: float) -> float:
    """Return the level that each of ``count`` intervals needs so that all hold together at ``level``.

    The level is at least ``level``, and at most the level of Bonferroni's correction.

    Parameters
    ----------
    largest
        float64 [draws]: the largest |deviation| of each draw.
    """
    critical = max(np.quantile(largest, level), stats.normal_quantile((1 + level) / 2))
    bonferroni = 1 - (1 - level) / (2 * count)
    return float(2 * min(stats.normal_probability(critical), bonferroni) - 1)


@dataclass(frozen=True)
class Together:
    """The intervals and p-values of K distances that hold for all of them together, as when an adversary is the best of
    several attacks.

    Parameters
    ----------
    joint_half
        float64 [K]: half-widths, where the variance between units counts (parts of the study that share nothing but
        samples).
    null_half
        float64 [K]: half-widths by the errors from which ``p`` is computed, without the variance between units, which
        is 0 if a method is retraining.
    p
        float64 [K]: adjusted p-values of the hypothesis that all distances are 0. A distance with p ≤ α lies further
        from 0 than its ``null_half``.
    inner_half
        float64 [K]: half-widths of each distance's own interval at 1 − 2α. All distances are within a margin if all
        these intervals are (an intersection–union test).
    """

    joint_half: Float[np.ndarray, "K"]
    null_half: Float[np.ndarray, "K"]
    p: Float[np.ndarray, "K"]
    inner_half: Float[np.ndarray, "K"]


def together(
    *,
    distances: Distances,
    rng: np.random.Generator,
    level: float = LEVEL,
    draws: int = DRAWS,
    chance: Distances | None = None,
) -> Together:
    """Return intervals and p-values of several distances that hold together; those of a single distance are its own.

    Parameters
    ----------
    chance
        The same distances with the errors that they would have if all of them were 0, for p-values and for
        ``null_half``; None: the errors of ``distances`` serve there, too.
    """
    null, count = chance or distances, len(distances.value)
    # Levels of single intervals with which all hold together, by their own errors and by those of ``null``.
    p, level_of_own, level_of_null = null.p_values(), level, level
    if count > 1:
        largest = np.abs(deviations(correlation=distances.correlation, rng=rng, draws=draws)).max(axis=1)
        level_of_own = level_of_null = level_of_each(largest=largest, count=count, level=level)
        if chance:
            largest = np.abs(deviations(correlation=chance.correlation, rng=rng, draws=draws)).max(axis=1)
            level_of_null = level_of_each(largest=largest, count=count, level=level)
        p = np.maximum(adjusted(p=p, largest=largest), p)  # draws never make a p-value smaller
    joint_half = distances.half_widths(level=level_of_own)
    null_half = null.half_widths(level=level_of_null, units=False)
    # 2·level − 1 is 1 − 2α, as ``level`` is 1 − α.
    return Together(joint_half, null_half, p, inner_half=distances.half_widths(level=2 * level - 1))
