"""Influences of groups of models and of samples on numbers that are not means, as pseudo-values of a two-way jackknife.

``paired.distances`` takes them in place of the contributions of a mean.
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
    """Return the values of a statistic of means over samples by groups of models, and each sample's influence on them.

    A sample's influence on one group is its pseudo-value in all models, plus how that pseudo-value changes without the
    group (two jackknives, Efron and Stein 1981). For a mean over groups and samples this is exactly the value that is
    averaged. In a two-way jackknife, the mean of pseudo-values over groups is corrected for bias. Where a statistic
    jumps as models are left out (the best of many thresholds), this mean carries groups times the noise. Here samples
    add their influence on the statistic itself.

    Parameters
    ----------
    per_sample : float64 [1 + groups, L, samples]
        L quantities of every sample: from all models in row 0, then without each group of models.
    combine : callable
        ``combine(l_1, …, l_L, m_1, …, m_M)`` maps the means of the L quantities over samples and the M further numbers
        to the statistic, elementwise on arrays.
    per_model : float64 [1 + groups, M], optional
        M further numbers that have no samples, in the same rows.

    Returns
    -------
    value : float64 [groups]
        A value of each group, which is a unit of ``paired.distances``. The mean is the statistic of all models, without
        the jackknife's correction of bias.
    influence : float64 [groups, samples]
        The influence of each sample on each value.

    Raises
    ------
    ValueError
        There are fewer than two groups or samples.
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
