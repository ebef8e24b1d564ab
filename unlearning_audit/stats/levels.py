"""Means over models of means over samples, of losses in nats for example."""

import math
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np

from unlearning_audit.stats import Estimate, crossed, empty
from unlearning_audit.stats.shapes import Mask, Matrix, OfModels


def per_model(*, value: Matrix, weight: Matrix) -> crossed.PerModel:
    """Return the weighted mean over samples for each model.

    The squares of the influences sum to the variance of the mean, with divisor n − 1 for equal weights. There are no
    imaginary samples, because values have no least or largest one. Each model needs a sample of positive weight.

    Parameters
    ----------
    value, weight
        float64 [models, samples]: the values of samples, and their weights.
    """
    share = weight / weight.sum(axis=1, keepdims=True)
    mean = (share * value).sum(axis=1, keepdims=True)
    n = 1 / (share**2).sum(axis=1, keepdims=True)  # Kish's effective number of samples
    correction = np.sqrt(n / np.maximum(n - 1, 1e-9))  # finite for n = 1, where all influences are 0
    return crossed.PerModel(mean.ravel(), correction * share * (value - mean), np.zeros((len(value), 2)))


def difference(a: crossed.PerModel, b: crossed.PerModel) -> crossed.PerModel:
    """Return the difference a − b of two statistics of the same samples in the same models, with its influences."""
    return crossed.PerModel(a.value - b.value, a.influence - b.influence, a.imagined - b.imagined)


def level(*, value: Matrix, rows: Mask, low: float = -math.inf, **places: OfModels | None) -> Estimate:
    """Return the mean over models of the mean of a value over samples; all models count equally.

    The interval is over samples, each of which counts once in all models together, and over models (`stats.crossed`).

    Parameters
    ----------
    value : float64 [models, samples]
        The value of each sample in each model.
    rows : bool [models, samples]
        Which samples each model's mean is taken over. Models with fewer than two such samples are left out.
    low : float
        The smallest possible value.
    places : int [models]
        The split and the block of each model and, if there are copies of originals, ``copied``, as in `mean`.

    Returns
    -------
    Estimate
        ``n`` counts samples. NaN with the reason where no model has two rows.
    """
    enough = rows.sum(axis=1) > 1
    if not enough.any():
        return empty(n=0, note="no model has two samples in this role")
    columns = rows[enough].any(axis=0)
    statistic = per_model(value=value[np.ix_(enough, columns)], weight=rows[np.ix_(enough, columns)].astype(np.float64))
    return mean(statistic, **of_some(places, enough), n=int(columns.sum()), bounds=(low, math.inf))


def of_some(places: Mapping[str, OfModels | None], models: OfModels) -> dict[str, Any]:
    """Return the places of some of the models.

    Parameters
    ----------
    places
        "split", "block" and "copied", as `mean` needs them → a number of each model, int [models]. None stays.
    models : bool [models]
        Which models are meant.
    """
    return {name: None if of_models is None else of_models[models] for name, of_models in places.items()}


def mean(
    statistic: crossed.PerModel,
    *,
    split: OfModels,
    block: OfModels,
    copied: OfModels | None = None,
    n: int,
    note: str = "",
    bounds: tuple[float, float] = (-math.inf, math.inf),
    units: bool = False,
) -> Estimate:
    """Return the mean over models of a statistic of each model, with its interval.

    Parameters
    ----------
    split, block
        int [models]: the split and the block of each model; models that share both are repeats of one another.
    copied
        int [models]: the original of each model, if models are copies of several originals. Copies are not independent
        of each other, so each original counts once, by the mean over its copies.
    n, note
        The number of samples, and a remark, which go into the result. With one model, the result's note also says that
        the interval covers samples only.
    bounds
        The smallest and the largest possible mean, at which the interval is cut.
    units
        The interval also holds for other blocks, such as pairs of splits.
    """
    if copied is not None:
        average, first = crossed.averaging(copied)
        statistic = crossed.PerModel(*(average @ part for part in astuple(statistic)))
        split, block = split[first], block[first]
    # ``number`` int64 [models]: one for each (block, split), because splits of different blocks may have equal numbers.
    (block_of_split, _), number = np.unique(np.stack([block, split]), axis=1, return_inverse=True)
    reading = crossed.mean([statistic], split=number.ravel(), unit=block_of_split if units else None)
    return crossed.estimates(reading, n=n, note=note, bounds=bounds)[0]  # of the one statistic
