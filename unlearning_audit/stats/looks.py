"""Looking more than once at a study that grows: the level of each planned look, so that all together err at most α."""

from collections.abc import Sequence
from itertools import pairwise

from unlearning_audit import stats

ALPHA = 0.05


def levels(*, looks: Sequence[int], alpha: float = ALPHA) -> list[float]:
    """The level of each look at a study of so many pairs; they add up to ``alpha``, so that the probability of any
    false rejection is at most ``alpha`` whatever binds the looks together (Bonferroni).

    What is spent until a look grows as 2 − 2Φ(z/√t), t its share of the last look's pairs, with z of ``alpha``: little
    early, most at the end (Lan and DeMets 1983, after O'Brien and Fleming). Raises ValueError unless looks are numbers
    above 0 that grow.
    """
    sizes = list(looks)
    if not sizes or sizes[0] < 1 or any(later <= size for size, later in pairwise(sizes)):
        raise ValueError(f"looks must be numbers of pairs that grow, not {sizes}")
    z = stats.normal_quantile(1 - alpha / 2)
    spent = [2 - 2 * float(stats.normal_probability(z / (size / sizes[-1]) ** 0.5)) for size in sizes]
    return [now - before for before, now in zip([0.0, *spent[:-1]], spent, strict=True)]
