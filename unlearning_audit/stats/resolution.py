"""Power of a study, and of a larger one: variance components, half-widths, least detectable distances.

se² = σ²_pair/p + σ²_model/(p·m) + σ²_sample/n for p pairs (units: parts of the study that share nothing but samples), m
models per split and n samples. The noise of a sample in one pair or one model falls with n too. So σ²_pair = pair +
pair_noise/n and σ²_model = model + model_noise/n, each with two components.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from unlearning_audit import stats
from unlearning_audit.stats import LEVEL
from unlearning_audit.stats.paired import Design, Distances

POWER = 0.8  # the probability with which a study shall detect a distance, or show equivalence
POINTS = 64  # how many quantiles of an estimated variance half-widths are averaged over
MOST = 4096  # times today's count, beyond which more of it decides nothing

PAIRS, MODELS, SAMPLES = DIMENSIONS = ("pairs", "models", "samples")
COMPONENTS = ("pair", "pair_noise", "model", "model_noise", "sample")


@dataclass(frozen=True)
class Components:
    """The variance components of one number, each for a single pair, model or sample; at least 0.

    ``pair``, ``model`` and ``sample`` are the variances of pairs (units), models and samples; ``pair_noise`` and
    ``model_noise`` are the variances of a sample's noise in one pair and in one model. With one unit ``pair`` is 0,
    because it cannot be estimated.

    Parameters
    ----------
    design
        The study from which the components are estimated; its ``splits`` in a unit are taken as fixed.
    dof_samples
        The degrees of freedom of the variance over samples, which grow with the number of samples.
    of_samples
        Half-widths cover the variation over samples alone.
    """

    pair: float
    pair_noise: float
    model: float
    model_noise: float
    sample: float
    design: Design
    dof_samples: float
    of_samples: bool = False

    @property
    def variances(self) -> dict[str, Any]:
        """Return the five variance components by their names."""
        return {name: getattr(self, name) for name in COMPONENTS}

    def widened(self, factor: float) -> "Components":
        """Return the components of errors that are ``factor`` times as large, for intervals that hold for several
        numbers."""
        return replace(self, **{name: variance * factor**2 for name, variance in self.variances.items()})


def components(*, distances: Distances) -> list[Components]:
    """Estimate the variance components of each of K numbers.

    Parameters
    ----------
    distances : Distances
        The K numbers with their joint error.

    Returns
    -------
    list of Components
        One for each number. A component that the design does not show, such as that of models with one model per split,
        is 0.
    """
    design, sampled = distances.design, distances.sampled
    p, m, n = design.units, design.models, max(design.samples, 1)  # p pairs (units), m models per split, n samples
    between_models, shared_by_models, _known = distances.models.variances
    between_units, shared_by_units, _known = distances.units.variances
    repeated, several = design.models > 1, distances.units.dof > 0  # repeats of splits; several units
    # All variances are of the mean, float64 [K]; where the design does not show one, it is multiplied by False.
    # The noise of samples in single models is a part of their noise in single units.
    model_noise = np.maximum(sampled - shared_by_models, 0.0) * repeated
    unit_noise = np.maximum(sampled - shared_by_units, 0.0) * several
    model = np.maximum(between_models - model_noise, 0.0) * repeated
    pair = np.maximum(between_units - unit_noise - model, 0.0) * several
    pair_noise = np.maximum(unit_noise - model_noise, 0.0)
    sample = np.maximum(sampled - pair_noise - model_noise, 0.0)
    columns = {  # of a single pair, model or sample: the variance of a mean times the number that it is taken over
        "pair": pair * p, "pair_noise": pair_noise * p * n, "model": model * p * m,
        "model_noise": model_noise * p * m * n, "sample": sample * n,
        "dof_samples": np.minimum(stats.squares_dof(distances.influence), 1e9),
    }  # fmt: skip
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [Components(**dict(zip(columns, row, strict=True)), design=design) for row in rows]


def planned(design: Design, *, dimension: str, times: float) -> Design:
    """Return ``design`` with the number of pairs, models or samples multiplied by ``times`` and rounded.

    Parameters
    ----------
    dimension
        What is multiplied, one of `DIMENSIONS`.
    """
    field = {PAIRS: "units", MODELS: "models", SAMPLES: "samples"}[dimension]
    return replace(design, **{field: round(getattr(design, field) * times)})


def error(*, components: Components, design: Design) -> float:
    """Return the standard error that a number with these variance ``components`` would have in a study of this
    ``design``."""
    terms = _variance_terms(components, design)
    return float(np.sqrt(terms.sample + terms.pair_noise + terms.model_noise + terms.model + terms.pair))


def half_width(*, components: Components, design: Design, level: float = LEVEL, units: bool = True) -> float:
    """Return the half-width that the interval of a number would have on average in a study of a given design, by the
    intervals of ``paired.Distances``.

    The interval is the widest of three: over samples alone; over samples and models, where models vary as the repeats
    of a split show, or as splits show if no split has repeats; over samples and units, if ``units`` is set. With
    ``components.of_samples``, the interval over samples alone is taken. The variances over models and units are
    estimates with few degrees of freedom, so the half-width is averaged over their distribution.

    Parameters
    ----------
    components : Components
        The variance components of the number.
    design : Design
        The size of the study.
    level : float
        The confidence level.
    units : bool
        False: leave out the variance between units (parts of the study that share nothing but samples), which is 0 if
        the method is retraining.

    Returns
    -------
    float
    """
    terms = _variance_terms(components, design)
    tail = (1 - level) / 2
    sampled = terms.sample + terms.pair_noise + terms.model_noise
    dof_samples = max(components.dof_samples * design.samples / max(components.design.samples, 1), 1.0)
    # ``t2_…``: the squared quantiles of Student's t by which variances over samples, models and units are multiplied.
    t2_samples = stats.t_quantile(p=tail, dof=dof_samples) ** 2
    if components.of_samples:
        return float(np.sqrt(t2_samples * sampled))
    # Squared half-widths for each pair of quantiles of the variances over models (rows) and over units (columns).
    square = np.full((POINTS, POINTS), t2_samples * sampled)
    splits = design.units * design.splits
    dof_models = splits * (design.models - 1)
    # The variance between models, which contains their noise of samples, and the part of ``sampled`` without it.
    between, shared = terms.model_noise + terms.model, sampled - terms.model_noise
    if dof_models <= 0:  # no split has repeats, so splits are compared
        dof_models, shared = splits - 1, terms.sample
        between = sampled - terms.sample + terms.model + terms.pair
    if dof_models > 0:
        t2_models = stats.t_quantile(p=tail, dof=dof_models) ** 2 * _variance_factors(dof_models)[:, None]
        square = np.maximum(square, t2_samples * shared + t2_models * between)
    if units and design.units > 1:
        between = terms.pair_noise + terms.model_noise + terms.model + terms.pair
        t2_units = stats.t_quantile(p=tail, dof=design.units - 1) ** 2 * _variance_factors(design.units - 1)
        square = np.maximum(square, t2_samples * terms.sample + t2_units * between)
    return float(np.sqrt(square).mean())


def least_distance(*, components: Components, design: Design, chance: Components | None = None) -> float:
    """Return the least distance from retraining that a study of this ``design`` would detect with `POWER`.

    Parameters
    ----------
    components
        The variance components of the distance.
    chance
        The variance components of the distance if the method is retraining (None: ``components``).
    """
    # If the method is retraining, its distance varies by samples and models only, so the variance between units (pairs)
    # is no part of the test. The error of a distance that is not 0 contains it: the distance may differ between units.
    to_be_significant = half_width(components=chance or components, design=design, units=False)
    return to_be_significant + float(stats.normal_quantile(POWER)) * error(components=components, design=design)


def room_needed(*, components: Components, design: Design) -> float:
    """Return how far inside its margin a distance must lie for a study of this ``design`` to show it equivalent.

    Equivalence is shown by two one-sided tests at 1 − `LEVEL` each, with `POWER`. With a distance of 0 both tests may
    fail, so each gets half of the missing power. Where the distance is not 0, only one test may fail. That test still
    gets only half of the missing power, which is cautious.

    Parameters
    ----------
    components
        The variance components of the distance.
    """
    half = half_width(components=components, design=design, level=2 * LEVEL - 1)
    return half + float(stats.normal_quantile((1 + POWER) / 2)) * error(components=components, design=design)


def _variance_terms(components: Components, design: Design) -> Components:
    """Return the variance ``components``, divided by the counts of a study of this ``design``: the five terms of the
    squared standard error."""
    p, m, n = design.units, design.models, max(design.samples, 1)  # p pairs, m models per split, n samples
    counts = {"sample": n, "pair_noise": p * n, "model_noise": p * m * n, "model": p * m, "pair": p}
    return replace(components, **{name: getattr(components, name) / count for name, count in counts.items()})


@lru_cache
def _variance_factors(dof: float) -> np.ndarray:
    """Return the factors by which an estimated variance with ``dof`` degrees of freedom may differ from the true one:
    χ²/dof at `POINTS` equally likely quantiles, float64 [POINTS]."""
    from scipy.special import gammaincinv

    return np.asarray(2 * gammaincinv(dof / 2, (np.arange(POINTS) + 0.5) / POINTS) / dof)
