"""How units, models and samples move numbers that are no means: pseudo-values of a two-way jackknife, ratios.

What these give goes into ``paired.distances`` as the contributions of a mean would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


def of_means(
    *,
    per_sample: Float[np.ndarray, "folds L samples"],
    combine: Callable[..., Float[np.ndarray, "..."]],
    per_model: Float[np.ndarray, "folds M"] | None = None,
) -> tuple[Float[np.ndarray, "groups"], Float[np.ndarray, "groups samples"]]:
    """``value`` [groups] and ``influence`` [groups, samples] of a statistic of means over samples.

    ``per_sample`` float64 [1 + groups, L, samples], ``per_model`` [1 + groups, L'] and ``combine`` as in
    ``jackknife.estimate``: row 0 from all models, the others without one group each. A group is a unit of
    ``paired.distances``. The mean of ``value`` is the statistic of all, not its jackknife correction.

    A sample's influence on one group is its pseudo-value in the whole, and beside it how that changes without the group
    (two jackknives, Efron and Stein 1981); for a mean over groups and samples exactly what is averaged. Unlike the
    pseudo-values of a two-way jackknife, whose mean over groups is corrected for bias and so carries groups times the
    noise where a statistic jumps as models are left out (the best of many thresholds), samples then add what they do
    to the statistic itself. Raises ValueError for fewer than two groups or samples.
    """
    rows, _, samples = per_sample.shape
    groups = rows - 1
    if groups < 2 or samples < 2:
        raise ValueError(f"a two-way jackknife needs two groups and two samples at least, not {groups} and {samples}")
    extra = np.empty((rows, 0)) if per_model is None else per_model
    total = per_sample.sum(axis=-1)
    at = combine(*(total / samples).T, *extra.T)
    left = combine(*((total[:, :, None] - per_sample) / (samples - 1)).swapaxes(0, 1), *extra.T[:, :, None])
    pseudo = samples * at[:, None] - (samples - 1) * left
    pseudo -= pseudo.mean(axis=1, keepdims=True)
    whole, change = pseudo[0], -(groups - 1) * (pseudo[1:] - pseudo[1:].mean(axis=0))
    value = -(groups - 1) * (at[1:] - at[1:].mean())
    return at[0] + value, (whole + change) / samples
