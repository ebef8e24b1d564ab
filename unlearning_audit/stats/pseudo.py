"""Influences of groups of models and of samples on numbers that are not means, as pseudo-values of a two-way jackknife.

``paired.distances`` takes them in place of the effects of a mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unlearning_audit.stats.jackknife import Combine, pseudo_values

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float


def of_means(
    *, per_sample: Float[np.ndarray, "folds L samples"], combine: Combine
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
        ``combine(l_1, …, l_L)`` maps the means of the L quantities over samples to the statistic, elementwise on
        arrays.

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
    groups, samples = len(per_sample) - 1, per_sample.shape[2]
    at, points = pseudo_values(per_sample=per_sample, combine=combine, per_model=None)
    if groups < 2 or points is None:
        raise ValueError(f"a two-way jackknife needs two groups and two samples at least, not {groups} and {samples}")
    points = points - points.mean(axis=1, keepdims=True)
    whole, change = points[0], -(groups - 1) * (points[1:] - points[1:].mean(axis=0))
    value = -(groups - 1) * (at[1:] - at[1:].mean())
    return at[0] + value, (whole + change) / samples
