"""Which ranks a method may have, for all methods at once, from comparisons of every two of them."""

import numpy as np

from unlearning import stats
from unlearning.stats import LEVEL, simultaneous
from unlearning.stats.paired import Distances


def rank_sets(
    *,
    distances: Distances,
    rng: np.random.Generator,
    level: float = LEVEL,
    units: bool = True,
    draws: int = simultaneous.DRAWS,
) -> tuple[np.ndarray, np.ndarray]:
    """Best and worst rank that each of J methods may have, int64 [J] each; rank 1 has the largest number.

    ``distances`` of the methods' numbers, larger is better, read from the same units, models and samples. With
    probability ``level`` every method's true rank (1 + how many are truly better) lies in its set. All J·(J − 1)
    one-sided comparisons are tested at once in steps: what is told leaves the family and lowers the critical value of
    the rest (Romano and Wolf 2005; Mogstad, Romano, Shaikh and Wilhelm 2024). ``units`` as in
    ``Distances.half_widths``. Raises ValueError below two methods.
    """
    methods = len(distances.value)
    if methods < 2:
        raise ValueError("ranks need two methods at least")
    one, other = np.triu_indices(methods, 1)
    rows = np.zeros((len(one), methods))
    rows[np.arange(len(one)), one], rows[np.arange(len(one)), other] = 1.0, -1.0
    gaps = distances.of(rows)
    deviation = -stats.normal_quantile(gaps.p_values(units=units) / 2) * np.sign(gaps.value)
    drawn = simultaneous.deviations(correlation=gaps.correlation, rng=rng, draws=draws)
    deviation, drawn = np.concatenate([deviation, -deviation]), np.concatenate([drawn, -drawn], axis=1)
    better, worse = np.concatenate([one, other]), np.concatenate([other, one])
    told = np.zeros(len(better), dtype=bool)
    while not told.all():
        left = ~told
        bonferroni = -stats.normal_quantile((1 - level) / left.sum())
        critical = min(np.quantile(drawn[:, left].max(axis=1), level), bonferroni)
        more = left & (deviation > critical)
        if not more.any():
            break
        told |= more
    best = 1 + np.bincount(worse[told], minlength=methods)
    worst = methods - np.bincount(better[told], minlength=methods)
    return best, worst
