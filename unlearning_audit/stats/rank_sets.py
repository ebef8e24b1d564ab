"""Sets of ranks that each method may have, for all methods at once, from comparisons of every two of them."""

import numpy as np

from unlearning_audit import stats
from unlearning_audit.stats import LEVEL, gaps, simultaneous
from unlearning_audit.stats.paired import Distances
from unlearning_audit.stats.shapes import Bool, Int


def proven(
    *, distances: Distances, rng: np.random.Generator, draws: int = simultaneous.DRAWS
) -> Bool[np.ndarray, "J J"]:
    """Return whether method i (row) is proven to have a larger number than method j (column), for other units than the
    audited ones as well.

    With probability .95 every proven comparison is true. All J·(J − 1) one-sided comparisons are tested at once in
    steps: proven ones leave the family, which lowers the critical value of the rest (Romano and Wolf 2005; Mogstad,
    Romano, Shaikh and Wilhelm 2024).

    Parameters
    ----------
    distances : Distances
        The methods' numbers, larger is better, from the same units, models and samples.
    rng : Generator
        Draws the joint deviations of all differences.
    draws : int
        The number of draws.

    Returns
    -------
    bool [J, J]
    """
    methods = len(distances.value)
    pairs = gaps.between(distances)
    deviations = pairs.draw(rng=rng, draws=draws)
    unproven = np.ones((2, len(pairs.value)), dtype=bool)  # upwards and downwards
    while unproven.any():
        bonferroni = -stats.normal_quantile((1 - LEVEL) / unproven.sum())
        critical = min(np.quantile(deviations.largest(unproven), LEVEL), bonferroni)
        beyond = unproven & pairs.beyond(critical)
        if not beyond.any():
            break
        unproven &= ~beyond
    up, down = ~unproven
    larger = np.zeros((methods, methods), dtype=bool)
    larger[pairs.first[up], pairs.second[up]] = True
    larger[pairs.second[down], pairs.first[down]] = True
    return larger


def rank_ranges(larger: Bool[np.ndarray, "J J"]) -> tuple[Int[np.ndarray, "J"], Int[np.ndarray, "J"]]:
    """Return the best and the worst rank that each of J methods may have, int64 [J] each; rank 1 has the largest
    number.

    With probability .95 every method's true rank (1 + how many are truly better) lies in this range.

    Parameters
    ----------
    larger
        bool [J, J]: the comparisons that `proven` returns.
    """
    return 1 + larger.sum(axis=0), len(larger) - larger.sum(axis=1)
