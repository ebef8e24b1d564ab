"""Differences between methods on the same pairs, models and samples, so that what methods share cancels.

A number is a mean over units. A unit is a part of the study that shares nothing with other units but samples: a pair of
splits, a block, or a group of models. In each unit the number is a mean over splits, over models that repeat a split
(they differ by seed or run only), and over samples. Its error has three sources, and each is measured:

* samples: A = Σ_i (Σ_m influence of sample i on model m)², everything that other samples would change;
* models: M from models that repeat a split; A already contains its part N, the noise of (model, sample);
* units: B from the values of units; A already contains its part C − S, where S is the variance that units share through
  common samples.

Under the null hypothesis that a method *is* retraining (or is the other method), units cannot differ except by their
samples and models. So `Distances.p_values` rests on A, M and N and has many degrees of freedom. A method's distance
from retraining may differ from unit to unit, so its interval has h² = t_A²·S + t_B²·B as well. Such a sum of squared
half-widths holds its level for every ratio of the variances (Banerjee 1960, Sankhyā 22), however few the units.
Satterthwaite's approximation may cover .87 with two units and .92 with three. The interval is never narrower than
samples and models alone make it. Sources of the two-way decomposition: Owen 2007; Cameron, Gelbach and Miller 2011.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unlearning_audit import stats
from unlearning_audit.stats import LEVEL, Estimate, crossed
from unlearning_audit.stats.shapes import Float, OfModels

ONE_UNIT = "one pair or block: the interval does not cover how others differ"
STEPS = 60  # bisections of a p-value, to 1e-15 of its logarithm


@dataclass(frozen=True)
class Layer:
    """The covariance of K numbers that replicates of one kind show: models, or units (parts of the study that share
    nothing but samples).

    Parameters
    ----------
    between
        float64 [K, K]: the covariance of the means over replicates, if only replicates varied.
    shared
        float64 [K, K]: the covariance that samples add because replicates have them in common.
    dof
        The degrees of freedom of ``between`` (0: it is unknown).
    known
        float64 [K, K]: the part of ``between`` that is known, not estimated (None: all is estimated).
    """

    between: np.ndarray
    shared: np.ndarray
    dof: int
    known: np.ndarray | None = None

    def combined(self, matrix: Float[np.ndarray, "C K"]) -> Layer:
        """Return the covariance of C linear combinations of the K numbers: each row of ``matrix`` float64 [C, K] has
        the factors of one combination."""
        known = None if self.known is None else matrix @ self.known @ matrix.T
        return Layer(matrix @ self.between @ matrix.T, matrix @ self.shared @ matrix.T, self.dof, known)

    @property
    def variances(self) -> Float[np.ndarray, "3 K"]:
        """Return the diagonals of ``between``, ``shared`` and ``known``, float64 [3, K] and at least 0."""
        return np.maximum([np.diag(matrix) for matrix in (self.between, self.shared, self.of_known)], 0.0)

    @property
    def of_known(self) -> Float[np.ndarray, "K K"]:
        """Return ``known``, or zeros where it is None, float64 [K, K]."""
        return np.zeros_like(self.between) if self.known is None else self.known


@dataclass(frozen=True)
class Design:
    """The size of a study: how many ``units`` (parts that share nothing but samples); on average ``splits`` in a unit
    and ``models`` in a split; distinct ``samples`` (0: none)."""

    units: int
    splits: float
    models: float
    samples: int


@dataclass(frozen=True)
class Spread:
    """The variances from which half-widths of K numbers are computed.

    Parameters
    ----------
    sampled
        float64 [K]: the variance over samples.
    dof
        float64 [K]: the degrees of freedom of ``sampled``.
    layers
        First of models, then of units: the degrees of freedom of the `Layer`, and its ``variances`` float64 [3, K].
        These are the variance if only replicates varied, the variance that samples add because replicates have them in
        common, and the part of the first variance that is known and not estimated.
    """

    sampled: np.ndarray
    dof: np.ndarray
    layers: tuple[tuple[int, np.ndarray], ...]

    def squared_half_widths(self, tail: np.ndarray | float, *, units: bool = True) -> np.ndarray:
        """Return the squared half-widths of intervals of the K numbers, which miss the truth with probability ``tail``
        on either side: float64 [K].

        Each result is the largest of up to three: over samples, over samples and models, over samples and units.

        Parameters
        ----------
        tail
            A number or float64 [K].
        units
            False: leave out the variance between units (parts of the study that share nothing but samples), which is 0
            if a method is retraining.
        """
        t_squared = stats.t_quantile(p=tail, dof=self.dof) ** 2
        square: np.ndarray = t_squared * self.sampled
        layers = self.layers if units else self.layers[:1]  # of models, then of units
        for dof, (between, shared, known) in layers:
            if dof:
                of_layer = stats.t_quantile(p=tail, dof=dof) ** 2 * (between - known)
                of_layer = of_layer + stats.normal_quantile(tail) ** 2 * known  # normal, because it is not estimated
                square = np.maximum(square, t_squared * shared + of_layer)
        return square

    @property
    def beyond_noise(self) -> np.ndarray:
        """Return how much of the standard deviation between models is not noise of samples: a ratio of standard
        deviations from 0 to 1, float64 [K].

        With M the variance between models, and N the part of it that is noise of samples, the ratio is √(1 − N/M), and
        0 where N ≥ M. `Distances.correlation` and `draw_by_number` weight the covariance between models by it.
        """
        _dof, (between, shared, _known) = self.layers[0]  # the layer of models
        noise = np.maximum(self.sampled - shared, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.sqrt(np.where(between > noise, 1 - noise / between, 0.0))


@dataclass(frozen=True)
class Distances:
    """K numbers from the same models and samples, with their joint error.

    Parameters
    ----------
    value
        float64 [K]: the means over units (parts of the study that share nothing but samples).
    influence
        float64 [K, samples]: how far each sample moves these means, where imaginary samples, added so that no variance
        is 0 by chance, are the last.
    models, units
        The covariances that models and units show.
    design
        The size of the study.
    """

    value: Float[np.ndarray, "K"]
    influence: Float[np.ndarray, "K samples"]
    models: Layer
    units: Layer
    design: Design

    def combined(self, matrix: Float[np.ndarray, "C K"]) -> Distances:
        """Return C linear combinations of the K numbers, with their joint error: each row of ``matrix`` float64 [C, K]
        has the factors of one combination."""
        matrix = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
        influence, models, units = matrix @ self.influence, self.models.combined(matrix), self.units.combined(matrix)
        return Distances(matrix @ self.value, influence, models, units, self.design)

    def of_samples(self) -> Distances:
        """Return the numbers with errors from samples only: given the models, what varies is which samples are drawn to
        be forgotten."""
        nothing = Layer(np.zeros_like(self.models.between), np.zeros_like(self.models.shared), 0)
        return replace(self, models=nothing, units=nothing)

    def minus(self, constant: float | np.ndarray) -> Distances:
        """Return the numbers minus a known ``constant``, such as the theoretical value of retraining: a number or
        float64 [K]."""
        return replace(self, value=self.value - constant)

    @property
    def sampled(self) -> Float[np.ndarray, "K"]:
        """Return the variance over samples alone, float64 [K]: everything that other samples would change."""
        return np.asarray((self.influence**2).sum(axis=1))

    @property
    def errors(self) -> Float[np.ndarray, "K"]:
        """Return the standard error of each number, float64 [K]: the largest of three standard errors, over samples,
        over samples and models, and over samples and units."""
        variance = self.sampled
        for layer in (self.models, self.units):
            between, shared, _known = layer.variances
            variance = np.maximum(variance, between + shared)
        return np.asarray(np.sqrt(variance))

    def half_widths(self, *, level: float | np.ndarray = LEVEL, units: bool = True) -> Float[np.ndarray, "K"]:
        """Return the half-width of the interval of each number alone, float64 [K].

        Parameters
        ----------
        level
            The level of the intervals: a number, or float64 [K].
        units
            False: leave out the variance between units (parts of the study that share nothing but samples), which is 0
            if a method is retraining.
        """
        tail = (1 - np.asarray(level, dtype=np.float64)) / 2
        return np.asarray(np.sqrt(self.spread.squared_half_widths(tail, units=units)))

    @cached_property
    def spread(self) -> Spread:
        """Return the variances over samples, models and units from which half-widths are computed."""
        # 1e9 degrees of freedom stand for inf, where no influence differs from 0.
        dof = np.minimum(stats.squares_dof(self.influence), 1e9)
        return Spread(self.sampled, dof, tuple((layer.dof, layer.variances) for layer in (self.models, self.units)))

    def p_values(self) -> Float[np.ndarray, "K"]:
        """Return two-sided p-values of the hypothesis that a number is 0, float64 [K], at least 1e-15: 1 minus the
        level at which the interval stops containing 0.

        The hypothesis is that the method is retraining. Units (parts of the study that share nothing but samples) then
        differ by their samples and models only, so these intervals leave out the variance between units.
        """
        # Half of the p-value is the tail on either side at which the half-width equals the distance of the value from
        # 0. It is found by bisection of the tail's logarithm, because p-values differ by orders of magnitude.
        low, high = np.full(len(self.value), np.log(0.5e-15)), np.full(len(self.value), np.log(0.5))
        squared_value, spread = self.value**2, self.spread
        for _ in range(STEPS):
            log_tail = (low + high) / 2
            excludes_0 = spread.squared_half_widths(np.exp(log_tail), units=False) < squared_value
            low, high = np.where(excludes_0, low, log_tail), np.where(excludes_0, log_tail, high)
        return np.where(squared_value > 0, np.minimum(2 * np.exp(high), 1.0), 1.0)

    def estimates(self, *, level: float = LEVEL) -> list[Estimate]:
        """Return each number with its own interval at ``level``, and a remark on what the intervals do not cover; ``n``
        of the results counts samples."""
        pairs = zip(self.value.tolist(), self.half_widths(level=level).tolist(), strict=True)
        return [Estimate(value, value - half, value + half, self.design.samples, self.note) for value, half in pairs]

    @property
    def note(self) -> str:
        """Return a remark if the intervals do not cover other models, or do not cover other units; else ""."""
        if not self.models.dof:
            return crossed.ONE_MODEL
        return ONE_UNIT if self.design.units == 1 else ""

    @property
    def correlation(self) -> Float[np.ndarray, "K K"]:
        """Return the correlation of the errors of the K numbers over samples and models, float64 [K, K], 1 on the
        diagonal.

        Units are left out, because a few of them hardly show how the K numbers correlate. Of the covariance between
        models, only the part counts that is not noise of samples (`Spread.beyond_noise`).
        """
        covariance = self.influence @ self.influence.T
        if self.models.dof:
            beyond_noise = self.spread.beyond_noise
            covariance = covariance + self.models.between * np.outer(beyond_noise, beyond_noise)
        errors = np.sqrt(np.diag(covariance))
        errors = np.where(errors > 0, errors, 1.0)
        correlation: np.ndarray = covariance / np.outer(errors, errors)
        np.fill_diagonal(correlation, 1.0)
        return correlation


def distances(
    *,
    value: Float[np.ndarray, "K models"],
    influence: Float[np.ndarray, "K models samples"],
    unit: OfModels,
    split: OfModels | None = None,
    imagined: Float[np.ndarray, "K models k"] | None = None,
) -> Distances:
    """Return the means of K numbers per model over units, with their joint error.

    Units count equally, within a unit its splits, within a split its models. If the K numbers are of several methods,
    the models at one index must share unit and split, and, if several models repeat a split, their original. A
    difference between two methods is ``distances(...).combined([1, -1])``.

    Parameters
    ----------
    value : float [K, models]
        The numbers of each model.
    influence : float [K, models, samples]
        How each sample moves each number: a sample's deviation over the number of samples, 0 where the model was not
        queried. There are no columns for numbers without samples.
    unit : int [models]
        The unit of each model: a pair of splits, a block or a group of models. Models of different units share nothing
        but samples.
    split : int [models], optional
        The split of each model. Models of one unit and one split repeat each other; by default all models of a unit do.
    imagined : float [K, models, k], optional
        The influence of imaginary samples, added so that no variance is 0 by chance (``stats.mean_influence``).
        Averaging changes it as much as that of real samples (``crossed.with_imagined``).

    Returns
    -------
    Distances

    Raises
    ------
    ValueError
        A number is not finite.
    """
    value, influence = np.asarray(value, dtype=np.float64), np.asarray(influence, dtype=np.float64)
    if not (np.isfinite(value).all() and np.isfinite(influence).all()):
        raise ValueError("values or influences are not finite: leave such methods out and say so")
    _, unit = np.unique(unit, return_inverse=True)
    split = np.zeros_like(unit) if split is None else np.asarray(split)
    # Splits are told apart by (unit, split), because splits of different units may have equal numbers.
    (unit_of_split, _), split_of_model = np.unique(np.stack([unit, split]), axis=1, return_inverse=True)
    split_of_model = split_of_model.ravel()
    repeats, splits = np.bincount(split_of_model), np.bincount(unit_of_split)  # models of a split, splits of a unit
    average = (split_of_model == np.arange(len(repeats))[:, None]) / repeats[:, None]  # models to splits
    join = (unit_of_split == np.arange(len(splits))[:, None]) / splits[:, None]  # splits to units
    # Values and influences: float64 [K, splits] and [K, splits, samples], then [K, units] and [K, units, samples].
    split_value, split_influence = value @ average.T, average @ influence
    unit_value, unit_influence = split_value @ join.T, join @ split_influence
    mean_influence = unit_influence.mean(axis=1)
    share = (1 / (len(splits) * splits))[unit_of_split]  # the weight of each split in the mean
    if imagined is not None:
        # ``alone``: what Σ influence² would be if models of a split agreed on all samples and no two splits shared any.
        alone = (influence**2).sum(axis=2) @ average.T @ share**2
        imaginary = share[:, None] * (average @ np.asarray(imagined, dtype=np.float64))
        mean_influence = crossed.with_imagined(mean_influence, imaginary, alone=alone)
    sampled, samples = mean_influence @ mean_influence.T, int((influence != 0).any(axis=(0, 1)).sum())
    if (repeats > 1).any():  # else the variance between models is taken across splits
        dof = int((repeats - 1).sum())
        scale = (share**2 / repeats).sum() / dof
        deviation = value - split_value[:, split_of_model]
        noise = products(influence - split_influence[:, split_of_model]) * scale
        models = Layer(deviation @ deviation.T * scale, sampled - noise, dof)
    else:
        models = independent(split_value, split_influence, sampled)
    units = independent(unit_value, unit_influence, sampled)
    design = Design(len(splits), float(splits.mean()), float(repeats.mean()), samples)
    return Distances(unit_value.mean(axis=1), mean_influence, models, units, design)


def independent(
    value: Float[np.ndarray, "K replicates"],
    influence: Float[np.ndarray, "K replicates samples"],
    sampled: Float[np.ndarray, "K K"],
) -> Layer:
    """Return the covariance of means over replicates, here splits or units, that share nothing but samples.

    With fewer than two replicates it is unknown: 0 with 0 degrees of freedom.

    Parameters
    ----------
    value : float64 [K, replicates]
        The numbers of each replicate.
    influence : float64 [K, replicates, samples]
        The influence of each sample on them.
    sampled : float64 [K, K]
        The covariance of the means over samples.

    Returns
    -------
    Layer
    """
    count = value.shape[1]
    if count < 2:
        return Layer(np.zeros_like(sampled), sampled, 0)
    deviation = value - value.mean(axis=1, keepdims=True)
    summed = influence.sum(axis=1)
    # Σ over every two different replicates of the products of a sample's influences on them, count·(count − 1) terms.
    common = summed @ summed.T - products(influence)
    scale = count * (count - 1)
    return Layer(deviation @ deviation.T / scale, common / scale, count - 1)


def products(influence: Float[np.ndarray, "K replicates samples"]) -> Float[np.ndarray, "K K"]:
    """Return the sum over replicates (models, splits or units) and samples of the products of every two numbers'
    influences, float64 [K, K].

    Parameters
    ----------
    influence
        float64 [K, replicates, samples].
    """
    flat = influence.reshape(len(influence), -1)
    return np.asarray(flat @ flat.T)
