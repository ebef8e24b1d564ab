"""Intervals for numbers that rest on many samples seen by many models: a two-way jackknife, and its pseudo-values as
influences of samples on numbers that are not means."""

from collections.abc import Callable

import numpy as np

from unlearning_audit.stats import LEVEL, Estimate, t_quantile
from unlearning_audit.stats.shapes import Float, OfModels

Combine = Callable[..., np.ndarray]


def groups_of(models: int, *, groups: int) -> OfModels:
    """Return the number of each model's jackknife group, whose models are left out together: int64 [models].

    Groups are of consecutive models and as equal in size as possible.

    Parameters
    ----------
    models
        The number of models.
    groups
        The number of groups. With fewer models than this, each model is a group.
    """
    return np.arange(models) * min(groups, models) // models


def jackknife_variance(replicates: Float[np.ndarray, "groups ..."]) -> Float[np.ndarray, "..."]:
    """Return the variance of a statistic, float64 […], from its ``replicates`` float64 [groups, …], each computed
    without one group."""
    groups = len(replicates)
    variance: np.ndarray = (groups - 1) / groups * ((replicates - replicates.mean(axis=0)) ** 2).sum(axis=0)
    return variance


def estimate(
    *,
    per_sample: Float[np.ndarray, "folds K samples"],
    combine: Combine,
    per_model: Float[np.ndarray, "folds L"] | None = None,
    n: int,
    note: str = "",
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> Estimate:
    """Return a statistic of sample means with a 95 % interval over samples and over models.

    The variance is that over samples (delete one) plus that over models (delete a group), minus what both contain: the
    noise that is independent for every (model, sample). Half-widths are added in squares, each with the quantile of its
    own degrees of freedom (Banerjee 1960). The result is at least the half-width over samples alone. A bootstrap over
    models would fail where the statistic is a maximum over thresholds, because repeated models fake separation: for ε
    of a perfect method, its 95 % percentile interval covers half of the time. Sources: Efron and Stein 1981; Owen 2007
    for the two-way decomposition.

    Parameters
    ----------
    per_sample : float64 [1 + groups, K, samples]
        K quantities of every sample: from all models in row 0, then without each group of models.
    combine : callable
        ``combine(k_1, …, k_K, l_1, …, l_L)`` maps the means of the K quantities over samples and the L further numbers
        to the statistic, elementwise on arrays.
    per_model : float64 [1 + groups, L], optional
        L further numbers that are no means over samples, with the same rows: from all models, then without each group.
    n : int
        The count that goes into the result.
    note : str
        A remark that goes into the result.
    bounds : (float, float)
        The smallest and the largest possible statistic, at which the limits are cut.

    Returns
    -------
    Estimate
        With fewer than two groups the interval is over samples only, and the note says so. If there are also fewer than
        two samples, the limits are NaN.
    """
    samples, groups = per_sample.shape[2], len(per_sample) - 1
    # ``value`` [1 + groups]; ``points`` [1 + groups, samples], or None where there is no variation over samples.
    value, points = pseudo_values(per_sample=per_sample, combine=combine, per_model=per_model)
    over_models = jackknife_variance(value[1:]) if groups >= 2 else 0.0
    over_samples = shared = 0.0  # shared: the noise of single samples in single models, which both variances contain
    if points is not None:
        over_samples = points[0].var(ddof=1) / samples
        if groups >= 2:
            shared = (jackknife_variance(points[1:]).mean() - over_models) / (samples - 1)
    if groups < 2:
        note = "; ".join(filter(None, (note, "too few models for an interval over models")))
        if samples < 2:
            return Estimate(float(value[0]), np.nan, np.nan, n, note)
    of_samples, of_models = t_quantile(p=(1 + LEVEL) / 2, dof=np.maximum([samples - 1, groups - 1], 1)) ** 2
    in_common = max(over_samples - max(shared, 0.0), 0.0)  # the variance that samples add, whatever the models are
    half = float(np.sqrt(max(of_samples * over_samples, of_samples * in_common + of_models * over_models)))
    low, high = np.clip([value[0] - half, value[0] + half], *bounds)
    return Estimate(float(value[0]), float(low), float(high), n, note)


def pseudo_values(
    *,
    per_sample: Float[np.ndarray, "folds K samples"],
    combine: Combine,
    per_model: Float[np.ndarray, "folds L"] | None,
) -> tuple[Float[np.ndarray, "folds"], Float[np.ndarray, "folds samples"] | None]:
    """Return a statistic of the means over n samples, and the pseudo-value of each sample: n times the statistic minus
    n − 1 times the statistic without the sample.

    The statistic and the pseudo-values are computed in each fold: fold 0 has all models, each other fold lacks one
    group of models.

    Parameters
    ----------
    per_sample
        float64 [folds, K, samples]: K quantities of every sample.
    combine
        ``combine(k_1, …, k_K, l_1, …, l_L)`` maps the means of the K quantities over samples and the L further numbers
        to the statistic, elementwise on arrays.
    per_model
        float64 [folds, L]: L further numbers that are no means over samples; None: L = 0.

    Returns
    -------
    value : float64 [folds]
        The statistic.
    points : float64 [folds, samples] or None
        The pseudo-values; None for fewer than two samples, and without quantities of samples (K = 0).
    """
    folds, quantities, n = per_sample.shape
    further = np.empty((0, folds)) if per_model is None else per_model.T  # [L, folds]
    total = per_sample.sum(axis=-1)  # [folds, K]
    value = combine(*(total / n).T, *further)
    if n < 2 or not quantities:
        return value, None
    without = (total[:, :, None] - per_sample) / (n - 1)  # [folds, K, samples]: the means without each sample
    statistic_without = combine(*without.swapaxes(0, 1), *further[:, :, None])
    return value, n * value[:, None] - (n - 1) * statistic_without


def group_values(
    *, per_sample: Float[np.ndarray, "folds L samples"], combine: Combine
) -> tuple[Float[np.ndarray, "groups"], Float[np.ndarray, "groups samples"]]:
    """Return a value for each group of models of a statistic that all models give together, and the influence of each
    sample on these values. ``paired.distances`` takes them in place of the values and influences of a mean.

    A sample's influence on one group is its pseudo-value in all models, plus how that pseudo-value changes without the
    group (two jackknives, Efron and Stein 1981). For a mean over groups and samples this is exactly the value that is
    averaged. In a two-way jackknife, the mean of pseudo-values over groups is corrected for bias. Where a statistic
    jumps as models are left out (the best of many thresholds), this mean carries groups times the noise. In this
    function the mean over groups has no such correction, and samples add their influence on the statistic itself.

    Parameters
    ----------
    per_sample : float64 [1 + groups, L, samples]
        L quantities of every sample: from all models in row 0, then without each group of models. There are at least
        two groups and two samples.
    combine : callable
        ``combine(l_1, …, l_L)`` maps the means of the L quantities over samples to the statistic, elementwise on
        arrays.

    Returns
    -------
    value : float64 [groups]
        A value of each group, which is a unit of ``paired.distances``, as groups share nothing but samples. The mean is
        the statistic of all models, without the jackknife's correction of bias.
    influence : float64 [groups, samples]
        The influence of each sample on each value.
    """
    groups, samples = len(per_sample) - 1, per_sample.shape[2]
    value, points = pseudo_values(per_sample=per_sample, combine=combine, per_model=None)
    assert points is not None  # there are two samples
    # Row 0 is of all models, the others lack a group. A group's own value is what is lost without it, as a jackknife
    # has it: minus (groups − 1) times the change, from the mean of the rows without a group.
    points = points - points.mean(axis=1, keepdims=True)  # [1 + groups, samples]
    change = -(groups - 1) * (points[1:] - points[1:].mean(axis=0))  # [groups, samples]
    return value[0] - (groups - 1) * (value[1:] - value[1:].mean()), (points[0] + change) / samples
