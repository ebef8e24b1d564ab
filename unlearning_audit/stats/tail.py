"""Tail advantage: how many forgotten samples stand out among held-out ones, less what chance lets stand out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unlearning_audit.stats import crossed

if TYPE_CHECKING:
    from jaxtyping import Float

#: The share of held-out samples above the threshold.
SHARE = 0.01


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
    exactly 0 where sides are a fair draw, however few held-out samples and different scores there are. The variance
    that the threshold adds is that of a share of n samples, as an imaginary sample. Raises ValueError for scores that
    are NaN on either side.
    """
    score = np.asarray(score, dtype=np.float64)
    if np.isnan(score[(forget > 0) | (heldout > 0)]).any():
        raise ValueError("scores of forgotten or held-out samples are NaN")
    above, spread = np.zeros(score.shape), np.empty((len(score), 1))
    for model, (values, side) in enumerate(zip(score, heldout > 0, strict=True)):
        count = int(side.sum())
        rank = share * (count + 1)
        order = np.sort(values[side])
        left, right = (np.searchsorted(order, values, side=end) for end in ("left", "right"))
        higher, equal = count - right, right - left
        low = int(rank)
        part = rank - low
        exceeded = [np.clip((place - higher) / (equal + 1), 0.0, 1.0) for place in (low, low + 1)]
        above[model] = (1 - part) * exceeded[0] + part * exceeded[1]
        spread[model] = np.sqrt(share * (1 - share) / count)
    share_above = crossed.per_model(value=above, weight=forget)
    imagined = np.concatenate([share_above.imagined, spread], axis=1)
    return crossed.PerModel(share_above.value - share, share_above.influence, imagined)
