"""Tail advantage: how many forgotten samples stand out among held-out ones, less what chance lets stand out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unlearning_audit.stats import crossed

if TYPE_CHECKING:
    from jaxtyping import Float

#: The share of held-out samples above the threshold.
SHARE = 0.01

#: What equivalence must exclude in any case: so large a share of forgotten samples that are fully remembered.
REMEMBERED = 0.03


def advantage(
    *,
    score: Float[np.ndarray, "models samples"],
    forget: Float[np.ndarray, "models samples"],
    heldout: Float[np.ndarray, "models samples"],
    share: float = SHARE,
) -> crossed.PerModel:
    """Share of forgotten samples above the (1 − ``share``) quantile of held-out scores, less ``share``, per model.

    ``score`` float64 [models, samples]; ``forget`` and ``heldout`` float64 [models, samples], weights of the sides (0
    elsewhere). Of n held-out scores the i-th largest is exceeded by an exchangeable one with probability i/(n + 1), so
    between the two nearest to i = ``share``·(n + 1), the largest and infinity included, is interpolated. A score that
    equals e held-out ones stands at each of the e + 1 places among them with the same probability. So the mean is
    exactly 0 where sides are a fair draw, however few held-out samples and different scores there are.

    A forgotten sample moves it by what it adds to the share above; a held-out one by what it adds to that of its
    side, times the slope of the ROC curve there: the mean over models, as that of one rests on a few samples, and at
    least 1, which is that of a fair draw. So a sample that is forgotten in one split and held out in the other moves
    both against each other. Where a side shows less variance than it has where sides are a fair draw (`by_chance`), an
    imaginary sample has the rest: none or one of few samples above the threshold says little of how many there might
    have been. Raises ValueError for scores that are NaN on either side.
    """
    score = np.asarray(score, dtype=np.float64)
    if np.isnan(score[(forget > 0) | (heldout > 0)]).any():
        raise ValueError("scores of forgotten or held-out samples are NaN")
    value, slopes, imagined = np.empty(len(score)), np.empty(len(score)), np.empty((len(score), 2))
    moved, unseen = np.zeros((2, *score.shape))
    for model, (values, weight, side) in enumerate(zip(score, forget, heldout > 0, strict=True)):
        count = int(side.sum())
        ordered = np.sort(values[side])
        weight = weight / weight.sum()
        places = _places(values, ordered)
        above = _above(*places, share * (count + 1), 1)
        value[model] = weight @ above - share
        spread = np.sqrt(share * (1 - share) / count)
        limits = max(share - spread, 0.0), min(share + spread, 1.0)
        low, high = (weight @ _above(*places, limit * (count + 1), 1) for limit in limits)
        slopes[model] = (high - low) / (limits[1] - limits[0])
        unseen[model] = np.where(side, _above(*places, share * count, 0) - share, 0.0) / count
        moved[model] = weight * (above - weight @ above)
        variance, shared = by_chance(heldout=count, share=share)
        floors = (variance - shared) * (weight @ weight), shared
        parts = moved[model], unseen[model]
        imagined[model] = [max(floor - part @ part, 0.0) for floor, part in zip(floors, parts, strict=True)]
    slope = max(slopes.mean(), 1.0)
    return crossed.PerModel(value, moved - slope * unseen, np.sqrt(imagined) * (1.0, slope))


def by_chance(*, heldout: int, share: float) -> tuple[float, float]:
    """Variance of what a forgotten sample adds to the share above, and covariance of two, where sides are a fair draw.

    Of n = ``heldout`` scores, the i-th largest is exceeded by one other with probability i/(n + 1) and by two with
    i·(i + 1)/((n + 1)·(n + 2)); one exceeds it and the other the next with i·(i + 2)/((n + 1)·(n + 2)).
    """
    rank = share * (heldout + 1)
    low = int(rank)
    part = rank - low
    both = (1 - part) ** 2 * low * (low + 1) + 2 * part * (1 - part) * low * (low + 2) + part**2 * (low + 1) * (low + 2)
    square = (low + part**2) / (heldout + 1)
    return square - share**2, both / ((heldout + 1) * (heldout + 2)) - share**2


def _places(values: np.ndarray, ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many of the ``ordered`` scores are above each of ``values``, and how many equal it."""
    left, right = (np.searchsorted(ordered, values, side=end) for end in ("left", "right"))
    return len(ordered) - right, right - left


def _above(higher: np.ndarray, equal: np.ndarray, rank: float, more: int) -> np.ndarray:
    """How likely each of the values at these `_places` is among the ``rank`` (a number, rounded at random) largest
    scores and, for ``more`` = 1, itself beside them; 0: it is one of them."""
    low, ties = int(rank), np.maximum(equal + more, 1)
    exceeded = [np.minimum(np.maximum((place - higher) / ties, 0.0), 1.0) for place in (low, low + 1)]
    share: np.ndarray = (1 - (rank - low)) * exceeded[0] + (rank - low) * exceeded[1]
    return share
