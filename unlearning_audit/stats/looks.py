"""Interim analyses of a study that grows: the level of each, so that all together err with probability at most α."""

from collections.abc import Sequence
from itertools import pairwise

from unlearning_audit import stats

ALPHA = 0.05


def levels(*, looks: Sequence[int], alpha: float = ALPHA) -> list[float]:
    """Return the level of each interim analysis; the levels add up to ``alpha``.

    ``looks``: the number of pairs at each analysis. The probability of any false rejection is at most ``alpha`` for any
    dependence between the analyses (Bonferroni). The part of α that is spent up to an analysis grows as 2 − 2Φ(z/√t),
    where t is its share of the final number of pairs and z the normal quantile of ``alpha``. So little is spent early
    and most at the end (Lan and DeMets 1983, after O'Brien and Fleming). Raises ValueError unless looks are numbers
    above 0 that grow.
    """
    sizes = list(looks)
    if not sizes or sizes[0] < 1 or any(later <= size for size, later in pairwise(sizes)):
        raise ValueError(f"looks must be numbers of pairs that grow, not {sizes}")
    z = stats.normal_quantile(1 - alpha / 2)
    spent = [2 - 2 * float(stats.normal_probability(z / (size / sizes[-1]) ** 0.5)) for size in sizes]
    return [now - before for before, now in zip([0.0, *spent[:-1]], spent, strict=True)]
