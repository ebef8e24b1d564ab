"""Statements about several numbers at once that hold together: largest deviations under their correlation."""

from dataclasses import dataclass

import numpy as np

from unlearning import stats
from unlearning.stats import LEVEL, Estimate
from unlearning.stats.paired import Distances

DRAWS = 4000


def deviations(*, correlation: np.ndarray, rng: np.random.Generator, draws: int = DRAWS) -> np.ndarray:
    """Standard normal deviations with the ``correlation`` float64 [K, K], float64 [draws, K].

    The Gaussian multiplier bootstrap given the data: its replicates are normal with the estimated covariance, so they
    are drawn from that directly (Chernozhukov, Chetverikov and Kato 2013).
    """
    roots, vectors = np.linalg.eigh(correlation)
    return rng.standard_normal((draws, len(roots))) @ (vectors * np.sqrt(np.maximum(roots, 0.0))).T


def half_widths(
    *,
    distances: Distances,
    rng: np.random.Generator,
    level: float = LEVEL,
    units: bool = True,
    draws: int = DRAWS,
) -> np.ndarray:
    """Half-widths of intervals that hold for all numbers together, float64 [K]; ``units`` as ``Distances.half_widths``.

    The critical value of the largest |deviation| is carried over to each number by its own interval at the level that
    it has for one number.
    """
    largest = np.abs(deviations(correlation=distances.correlation, rng=rng, draws=draws)).max(axis=1)
    critical = max(np.quantile(largest, level), stats.normal_quantile((1 + level) / 2))
    bonferroni = 1 - (1 - level) / (2 * len(distances.value))
    each = min(stats.normal_probability(critical), bonferroni)
    return distances.half_widths(level=2 * each - 1, units=units)


def adjusted(*, p: np.ndarray, correlation: np.ndarray, rng: np.random.Generator, draws: int = DRAWS) -> np.ndarray:
    """p-values of K numbers adjusted for the largest of them, float64 [K]: P(largest deviation ≥ that of this p).

    ``p`` float64 [K], two-sided. Never above Bonferroni's, which is also what is left where ``draws`` are too few.
    Source: Westfall and Young 1993, single step.
    """
    p = np.asarray(p, dtype=np.float64)
    largest = np.sort(np.abs(deviations(correlation=correlation, rng=rng, draws=draws)).max(axis=1))
    own = -stats.normal_quantile(p / 2)
    beyond = draws - np.searchsorted(largest, own, "left")
    return np.minimum(np.minimum((beyond + 1) / (draws + 1), len(p) * p), 1.0)


@dataclass(frozen=True)
class Strongest:
    """The largest of several distances: ``which`` of them, its ``estimate`` with limits that hold for all together, the
    hull ``inner`` of the 1 − 2α intervals of all, and the adjusted ``p`` that all are 0."""

    which: int
    estimate: Estimate
    inner: tuple[float, float]
    p: float


def strongest(
    *,
    distances: Distances,
    rng: np.random.Generator,
    level: float = LEVEL,
    units: bool = True,
    note: str = "",
    draws: int = DRAWS,
) -> Strongest:
    """The number furthest from 0 to either side, as when an adversary is the best of several attacks.

    Within a margin are all of them where each one's own interval at 2·``level`` − 1 is (an intersection–union test):
    so is their hull. ``units`` as ``Distances.half_widths``; ``p`` is always that of retraining itself.
    """
    which = int(np.abs(distances.value).argmax())
    half = half_widths(distances=distances, rng=rng, level=level, units=units, draws=draws)[which]
    own = distances.half_widths(level=2 * level - 1, units=units)
    p = adjusted(p=distances.p_values(), correlation=distances.correlation, rng=rng, draws=draws).min()
    value = float(distances.value[which])
    note = "; ".join(filter(None, (note, distances.note)))
    return Strongest(
        which,
        Estimate(value, float(value - half), float(value + half), distances.design.samples, note),
        (float((distances.value - own).min()), float((distances.value + own).max())),
        float(p),
    )
