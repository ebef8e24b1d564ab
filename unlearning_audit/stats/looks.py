"""Interim analyses of a study that grows: the level of each, so that all together err with probability at most α."""

from collections.abc import Sequence
from itertools import pairwise

from unlearning_audit import stats

ALPHA = 0.05


def levels(*, looks: Sequence[int]) -> list[float]:
    """Return the level of each interim analysis of a study that grows; the levels add up to α = `ALPHA`.

    The probability of any false rejection is at most α for any dependence between the analyses (Bonferroni).
    Let t be the share of the final number of pairs that an analysis has. Up to that analysis, 2 − 2Φ(z/√t) of α is
    spent, where z is the normal quantile of 1 − α/2. So little is spent early and most at the end (Lan and DeMets 1983,
    after O'Brien and Fleming).

    Parameters
    ----------
    looks : sequence of int
        The number of pairs at each analysis.

    Returns
    -------
    list of float
        One level for each analysis.

    Raises
    ------
    ValueError
        There are no looks, or they are not numbers above 0 that grow.
    """
    sizes = list(looks)
    if not sizes or sizes[0] < 1 or any(later <= size for size, later in pairwise(sizes)):
        raise ValueError(f"looks must be numbers of pairs that grow, not {sizes}")
    z = stats.normal_quantile(1 - ALPHA / 2)
    spent = [2 - 2 * float(stats.normal_probability(z / (size / sizes[-1]) ** 0.5)) for size in sizes]
    return [after - before for before, after in pairwise([0.0, *spent])]
