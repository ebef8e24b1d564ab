"""How units, models and samples move numbers that are no means: pseudo-values of a two-way jackknife, ratios.

What these give goes into ``paired.distances`` as the contributions of a mean would.
"""

from collections.abc import Callable

import numpy as np


def two_way(
    *,
    whole: float,
    without_group: np.ndarray,
    without_sample: np.ndarray,
    without_both: np.ndarray,
) -> np.ndarray:
    """Pseudo-contributions of every (group of models, sample), float64 [groups, samples].

    ``whole``: the statistic of all; ``without_group`` float64 [groups], ``without_sample`` [samples] and
    ``without_both`` [groups, samples]: of what is left. The product of two jackknives (Efron and Stein 1981): for a
    mean over groups and samples exactly what is averaged.
    """
    groups, samples = np.shape(without_both)
    if groups < 2 or samples < 2:
        raise ValueError(f"a two-way jackknife needs two groups and two samples at least, not {groups} and {samples}")
    one = groups * samples * whole - samples * (groups - 1) * np.asarray(without_group)[:, None]
    return one + (samples - 1) * ((groups - 1) * without_both - groups * np.asarray(without_sample))


def of_means(
    *, per_sample: np.ndarray, combine: Callable[..., np.ndarray], per_model: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """``value`` [groups] and ``influence`` [groups, samples] of a statistic of means over samples.

    ``per_sample`` float64 [1 + groups, L, samples], ``per_model`` [1 + groups, L'] and ``combine`` as in
    ``jackknife.estimate``: row 0 from all models, the others without one group each. A group is a unit of
    ``paired.distances``. The mean of ``value`` is the statistic of all, not its jackknife correction.
    """
    rows, _, samples = per_sample.shape
    extra = np.empty((rows, 0)) if per_model is None else per_model
    total = per_sample.sum(axis=-1)
    at = combine(*(total / samples).T, *extra.T)
    left = combine(*((total[:, :, None] - per_sample) / (samples - 1)).swapaxes(0, 1), *extra.T[:, :, None])
    cells = two_way(whole=at[0], without_group=at[1:], without_sample=left[0], without_both=left[1:])
    value = cells.mean(axis=1)
    return value - value.mean() + at[0], (cells - value[:, None]) / samples


def ratio(
    *, top: tuple[np.ndarray, np.ndarray], bottom: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Mean of ``top`` over mean of ``bottom``, to first order: ``value`` [models] and ``influence`` [models, samples].

    Each of the two a (value, influence) as ``paired.distances`` takes them. Raises ValueError where the mean of the
    bottom is 0.
    """
    below = bottom[0].mean()
    if below == 0:
        raise ValueError("the bottom of a ratio is 0 on average")
    whole = top[0].mean() / below
    return whole + (top[0] - whole * bottom[0]) / below, (top[1] - whole * bottom[1]) / below
