"""Intervals for means over models of means over samples, where many models share the samples.

Samples vary (the same sample counts once, in all models together) and models vary (within their split). Both variances
contain the noise of a single sample in a single model. It is subtracted once: V = V_samples + V_models − V_noise, at
least V_samples, after Cameron, Gelbach and Miller (2011).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from unlearning_audit import stats
from unlearning_audit.stats.shapes import Float, Int, Matrix, OfModels

#: A number of each split, and its unit.
OfSplits = Float[np.ndarray, "splits"]
UnitOfSplits = Int[np.ndarray, "splits"]

#: Draws of a bootstrap if a study does not say how many.
DRAWS = 4000
ONE_MODEL = "one model: the interval covers samples only"


@dataclass(frozen=True)
class PerModel:
    """A statistic of each model, and the influence of each sample on it.

    Parameters
    ----------
    value
        float64 [models].
    influence
        float64 [models, samples]: to first order, how far the sample moves the value from what other samples would
        give, so that Σ influence² is the variance of the value over samples.
    imagined
        float64 [models, k]: the influence of imaginary samples, added so that no variance is 0 by chance, such as that
        of a rate of 0 or 1 (`stats.mean_influence`).
    """

    value: Float[np.ndarray, "models"]
    influence: Matrix
    imagined: Float[np.ndarray, "models k"]

    def times(self, factor: float | Float[np.ndarray, "models"]) -> PerModel:
        """Return the statistic multiplied by ``factor``, one number or float64 [models], with its influences."""
        column = np.reshape(factor, (-1, 1))
        return PerModel(factor * self.value, column * self.influence, column * self.imagined)


@dataclass(frozen=True)
class Crossed:
    """Several statistics on the same models and samples, averaged over the models of each split.

    Parameters
    ----------
    value
        float64 [statistics, splits]: the means.
    influence
        float64 [statistics, splits, samples]: how far each sample moves each mean.
    imagined
        float64 [statistics, splits, k]: the influence of imaginary samples, added so that no variance is 0 by chance.
    alone
        float64 [statistics, splits]: the mean over models of Σ influence² of one model, which is what Σ influence²
        would be if models agreed on all samples.
    models
        float64 [statistics, statistics]: the covariance between models of one split.
    noise
        float64 [statistics]: how much of the diagonal of ``models`` is noise of samples.
    dof
        The degrees of freedom of ``models`` and ``noise``.
    count
        int64 [splits]: the number of models of each split.
    """

    value: Float[np.ndarray, "statistics splits"]
    influence: Float[np.ndarray, "statistics splits samples"]
    imagined: Float[np.ndarray, "statistics splits k"]
    alone: Float[np.ndarray, "statistics splits"]
    models: Float[np.ndarray, "statistics statistics"]
    noise: Float[np.ndarray, "statistics"]
    dof: int
    count: UnitOfSplits


@dataclass(frozen=True)
class Layer:
    """The variance of a mean over replicates of one kind: models, or units (pairs of splits), which share nothing but
    samples.

    Parameters
    ----------
    between
        float64 [statistics]: the variance of the mean that the spread of the replicates shows, with ``dof`` degrees of
        freedom.
    shared
        float64 [statistics]: the variance that samples add because several replicates have them in common.
    """

    between: Float[np.ndarray, "statistics"]
    shared: Float[np.ndarray, "statistics"]
    dof: int


@dataclass(frozen=True)
class Reading:
    """Estimates of several statistics, with all that their joint interval needs.

    Parameters
    ----------
    value
        float64 [statistics]: the estimates.
    influence
        float64 [statistics, samples + imaginary samples]: how far each sample moves the estimates; imaginary samples
        are added so that no variance is 0 by chance.
    models
        float64 [statistics, statistics]: the covariance from the choice of models, without the noise of samples.
    of_models
        How much the estimates vary over models; None if there is one model.
    units
        How much they vary over units (pairs of splits), which may differ by more than their samples and models; None
        for a single unit, and for intervals that hold for these units only.
    """

    value: Float[np.ndarray, "statistics"]
    influence: Float[np.ndarray, "statistics samples"]
    models: Float[np.ndarray, "statistics statistics"]
    of_models: Layer | None = None
    units: Layer | None = None

    def only(self, numbers: list[int]) -> Reading:
        """Return the estimates of some of the statistics; ``numbers`` are their indices, in the order wanted."""
        layers = (
            layer and Layer(layer.between[numbers], layer.shared[numbers], layer.dof)
            for layer in (self.of_models, self.units)
        )
        models = self.models[np.ix_(numbers, numbers)]  # rows and columns of the covariances
        return Reading(self.value[numbers], self.influence[numbers], models, *layers)

    @property
    def covariance(self) -> Float[np.ndarray, "statistics statistics"]:
        """Return the covariance of the estimates over samples and models, float64 [statistics, statistics]."""
        return np.asarray(self.influence @ self.influence.T + self.models)


def averaging(group: OfModels) -> tuple[Matrix, OfModels]:
    """Return the matrix that turns numbers of models into means of groups, and one model of each group.

    Parameters
    ----------
    group : int [models]
        The number of each model's group.

    Returns
    -------
    average : float64 [groups, models]
        The groups are in rising order of their numbers.
    first : int64 [groups]
        The first model of each group.
    """
    groups, first = np.unique(group, return_index=True)
    member = group == groups[:, None]
    return member / member.sum(axis=1, keepdims=True), first


def per_model(*, value: Matrix, weight: Matrix) -> PerModel:
    """Return the weighted mean over samples of ``value`` in [0, 1] for each model; ``value`` and ``weight`` float64
    [models, samples]."""
    return PerModel(*stats.mean_influence(value=value, weight=weight))


def difference(a: PerModel, b: PerModel, slope: Float[np.ndarray, "models"] | float = 1.0) -> PerModel:
    """Return the statistic a − slope·b of each model, with influences to first order, where a and b rest on different
    samples.

    The imaginary samples of b, added so that no variance is 0 by chance, are appended to those of a, because a and b
    have none in common.

    Parameters
    ----------
    a, b
        The two statistics of each model.
    slope
        A number, or float64 [models].
    """
    b = b.times(slope)
    return PerModel(a.value - b.value, a.influence - b.influence, np.concatenate([a.imagined, -b.imagined], axis=1))


def combine(statistics: Iterable[PerModel], *, split: OfModels) -> Crossed:
    """Return the mean of each statistic over the models of each split, with the covariance between models.

    The covariance between models is that within splits. Where no split has two models, it is taken across splits. With
    one model in all, this covariance is unknown: it is given as 0, with 0 degrees of freedom.

    Parameters
    ----------
    statistics : iterable of PerModel
        The statistics, on the same models and samples.
    split : int [models]
        The split of each model. Models of one split share their samples.

    Returns
    -------
    Crossed
        The splits are in rising order of their numbers.
    """
    _, group, count = np.unique(split, return_inverse=True, return_counts=True)  # the split of a model, models of each
    average = (group == np.arange(len(count))[:, None]) / count[:, None]  # [splits, models], from models to splits
    within = bool((count > 1).any())  # whether models of one split show how models vary
    dof = int((count - 1).sum()) if within else len(count) - 1
    values, influences, imagined, alone, deviations, noise = [], [], [], [], [], []
    for statistic in statistics:
        value, influence = average @ statistic.value, average @ statistic.influence
        values.append(value)
        influences.append(influence)
        imagined.append(average @ statistic.imagined)
        alone.append(average @ (statistic.influence**2).sum(axis=1))
        deviations.append(statistic.value - value[group] if within else value - value.mean())
        # Models also differ by the noise of single samples in single models. Its part of the variance between models
        # is computed in the same way from the influences of samples.
        centred = statistic.influence - (influence[group] if within else influence.mean(axis=0))
        noise.append((centred**2).sum() / max(dof, 1))
    deviation = np.array(deviations)
    models = deviation @ deviation.T / dof if dof else np.zeros((len(values), len(values)))
    return Crossed(
        np.array(values), np.array(influences), np.array(imagined), np.array(alone), models, np.array(noise), dof, count
    )


def weighted_mean(crossed: Crossed, *, share: OfSplits, unit: UnitOfSplits | None = None) -> Reading:
    """Return the weighted means of several statistics over splits, with all that their joint interval needs.

    Imaginary samples are added so that no variance is 0 by chance. Averaging over models and splits changes their
    influence as much as that of real samples (`with_imagined`).

    Parameters
    ----------
    crossed : Crossed
        The statistics of each split.
    share : float64 [splits]
        The weight of each split; the weights sum to 1.
    unit : int [splits], optional
        The unit that each split belongs to, such as a pair of splits, if the interval is to hold for other units too.

    Returns
    -------
    Reading
    """
    influence = np.einsum("s,asn->an", share, crossed.influence)  # axes: s splits, a statistics, n samples
    # ``alone``: what Σ influence² would be if models of a split agreed on all samples and splits had none in common.
    influence = with_imagined(influence, crossed.imagined * share[:, None], alone=crossed.alone @ share**2)
    variance = np.diag(crossed.models)
    with np.errstate(divide="ignore", invalid="ignore"):
        # How much of each standard deviation between models is not noise of samples. The influences of samples contain
        # this noise already, so the covariance between models is reduced.
        beyond = np.sqrt(np.where(variance > crossed.noise, 1 - crossed.noise / variance, 0.0))
    scale = (share**2 / crossed.count).sum()  # from the variance of one model to that of the mean
    shared = np.maximum((influence**2).sum(axis=1) - crossed.noise * scale, 0.0)
    of_models = Layer(variance * scale, shared, crossed.dof) if crossed.dof else None
    units = None if unit is None else _units(crossed, share, unit)
    models = crossed.models * scale * beyond[:, None] * beyond
    return Reading(crossed.value @ share, influence, models, of_models, units)


def mean(
    statistics: Iterable[PerModel], *, split: OfModels, share: OfSplits | None = None, unit: UnitOfSplits | None = None
) -> Reading:
    """Return the means of statistics over models and splits, with all that their joint interval needs.

    Parameters
    ----------
    statistics : iterable of PerModel
        The statistics, on the same models and samples.
    split : int [models]
        The split of each model. Models of one split share their samples.
    share : float64 [splits], optional
        The weight of each split, in rising order of splits; the weights sum to 1. By default all models count equally.
    unit : int [splits], optional
        The unit that each split belongs to, such as a pair of splits, if the interval is to hold for other units too.

    Returns
    -------
    Reading
    """
    reduced = combine(statistics, split=split)
    return weighted_mean(reduced, share=reduced.count / reduced.count.sum() if share is None else share, unit=unit)


def _units(crossed: Crossed, share: np.ndarray, unit: np.ndarray) -> Layer | None:
    """Return the variance of a mean over units (parts of the study that share nothing but samples), estimated from how
    much units differ; None for a single unit.

    Units without weight are left out.

    Parameters
    ----------
    share
        float64 [splits]: the weight of each split.
    unit
        int [splits]: the unit of each split.
    """
    _, number = np.unique(unit, return_inverse=True)
    weight = share * (number.reshape(-1) == np.arange(number.max() + 1)[:, None])  # [units, splits]
    weight = weight[weight.any(axis=1)]
    count = len(weight)
    if count < 2:
        return None
    weight = weight / weight.sum(axis=1, keepdims=True)  # of splits in the mean of a unit
    value = crossed.value @ weight.T  # [statistics, units]
    influence = np.einsum("us,asn->aun", weight, crossed.influence)  # [statistics, units, samples]
    deviation = value - value.mean(axis=1, keepdims=True)
    # Σ over every two different units of the product of a sample's influences on them.
    common = (influence.sum(axis=1) ** 2).sum(axis=1) - (influence**2).sum(axis=(1, 2))
    scale = count * (count - 1)
    return Layer((deviation**2).sum(axis=1) / scale, np.maximum(common, 0.0) / scale, count - 1)


def with_imagined(
    influence: Float[np.ndarray, "statistics samples"],
    imagined: Float[np.ndarray, "statistics splits k"],
    *,
    alone: Float[np.ndarray, "statistics"],
) -> Float[np.ndarray, "statistics samples"]:
    """Return the influence of real samples, and of imaginary ones as further columns. Averaging changes the variance of
    imaginary samples as much as it changed the variance of real samples.

    Imaginary samples are added so that no variance is 0 by chance. Their influence is multiplied by the square root of
    a ratio: the variance of real samples, divided by what it would be if models of one split agreed on all samples and
    no two splits had a sample in common. The ratio exceeds 1 where splits have samples in common, of which they say the
    same. The variance of imaginary samples is added to both variances, so that nothing changes where real samples show
    no variance.

    Parameters
    ----------
    influence : float64 [statistics, samples]
        The influence of real samples on the means.
    imagined : float64 [statistics, splits, k]
        The influence of imaginary samples on the means, where splits have none in common.
    alone : float64 [statistics]
        What Σ influence² would be if models of one split agreed on all samples, and no two splits had a sample in
        common.

    Returns
    -------
    float64 [statistics, samples + splits · k]
    """
    variance = (imagined**2).sum(axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(variance > 0, ((influence**2).sum(axis=1) + variance) / (alone + variance), 1.0)
    changed = imagined * np.sqrt(ratio)[:, None, None]
    return np.concatenate([influence, changed.reshape(len(influence), -1)], axis=1)


def half_widths(reading: Reading, *, p: float = (1 + stats.LEVEL) / 2) -> Float[np.ndarray, "statistics"]:
    """Return the half-width of each statistic's own interval, float64 [statistics].

    It is the largest of up to three: over samples, over samples and models, and over samples and units. The latter two
    are roots of a sum of squared half-widths, each with the quantile of its own degrees of freedom: of the variance
    that samples add, and of the variance that models or units show. The sum holds its level for every ratio of the
    variances (Banerjee 1960). `stats.paired` computes intervals of distances in the same way.

    Parameters
    ----------
    reading
        The estimates, from `weighted_mean`.
    p
        The interval misses the truth with probability 1 − ``p`` on either side.
    """
    # 1e9 degrees of freedom stand for inf, where no influence differs from 0.
    of_samples = stats.t_quantile(p=p, dof=np.minimum(stats.squares_dof(reading.influence), 1e9)) ** 2
    square = of_samples * (reading.influence**2).sum(axis=1)
    for layer in filter(None, (reading.of_models, reading.units)):
        of_layer = stats.t_quantile(p=p, dof=layer.dof) ** 2 * layer.between
        square = np.maximum(square, of_samples * layer.shared + of_layer)
    return np.asarray(np.sqrt(square))


def joint_half_widths(
    reading: Reading, *, rng: np.random.Generator, draws: int = DRAWS
) -> Float[np.ndarray, "statistics"]:
    """Return half-widths of 95 % intervals that hold for all statistics at once.

    The largest |deviation|/standard error of all statistics is drawn by the Gaussian multiplier bootstrap. Given the
    data, its results are normal with the estimated covariance, so they are drawn from that normal distribution
    directly. Each critical value is then transformed to Student's t with the degrees of freedom of its variance.

    Parameters
    ----------
    reading : Reading
        The estimates, from `weighted_mean`.
    rng : Generator
        Draws the deviations.
    draws : int
        The number of draws.

    Returns
    -------
    float64 [statistics]
    """
    error = np.sqrt(np.diag(reading.covariance))
    safe = np.where(error > 0, error, 1.0)
    eigenvalues, vectors = np.linalg.eigh(reading.covariance / np.outer(safe, safe))
    root = (vectors * np.sqrt(np.maximum(eigenvalues, 0))) @ vectors.T  # the root of the correlation matrix
    largest = np.abs(rng.standard_normal((draws, len(error))) @ root).max(axis=1)
    critical = max(np.quantile(largest, stats.LEVEL), stats.normal_quantile((1 + stats.LEVEL) / 2))
    return half_widths(reading, p=float(stats.normal_probability(critical)))


def estimates(
    reading: Reading, *, n: int, note: str = "", bounds: tuple[float, float] = (0.0, 1.0)
) -> list[stats.Estimate]:
    """Return each statistic of ``reading`` with its own 95 % interval, both cut at the ``bounds`` of possible values.

    The note of each result also says if there is only one model.

    Parameters
    ----------
    n, note
        The number of samples, and a remark, which go into each result; `annotated` may add to the remark.
    """
    note, (least, most) = annotated(reading, note), bounds
    return [
        stats.Estimate(min(max(value, least), most), max(value - half, least), min(value + half, most), n, note)
        for value, half in zip(reading.value.tolist(), half_widths(reading).tolist(), strict=True)
    ]


def annotated(reading: Reading, note: str) -> str:
    """Return ``note``, with a remark if there is only one model, so that the interval does not cover models."""
    return "; ".join(filter(None, [note, ONE_MODEL if reading.of_models is None else ""]))
