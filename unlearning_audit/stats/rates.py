"""Rates of hits (right predictions, or one kind of error) over models and samples."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from unlearning_audit import stats
from unlearning_audit.stats import crossed, levels

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

NEVER = -1  # the prediction of a model that gave no number


def predicted(logits: Float[np.ndarray, "... classes"]) -> Int[np.ndarray, "..."]:
    """Return the class with the largest logit; of equal logits the first.

    Parameters
    ----------
    logits : float [..., classes]
        Logits, such as [models, samples, classes].

    Returns
    -------
    int64 [...]
        −1 where a logit is NaN.
    """
    return np.where(np.isnan(logits).any(axis=-1), NEVER, logits.argmax(axis=-1))


def rate(
    *,
    hit: Bool[np.ndarray, "models samples"],
    rows: Bool[np.ndarray, "models samples"],
    split: Int[np.ndarray, "models"],
    block: Int[np.ndarray, "models"],
) -> stats.Estimate:
    """Return the mean over models of the share of their samples that are a hit; all models count equally.

    The interval is over samples, each of which counts once in all models together, and over models (`stats.crossed`).

    Parameters
    ----------
    hit : bool [models, samples]
        Which samples are a hit in each model.
    rows : bool [models, samples]
        Which samples each model's share is taken over. Models without any are left out and counted in the note.
    split, block : int [models]
        The split and the block of each model; models that share both are repeats of one another.

    Returns
    -------
    Estimate
        ``n`` counts samples. NaN with the reason when no model has rows.
    """
    return _mean([hit], rows, split, block, low=0.0)


def gap(
    *,
    of: Bool[np.ndarray, "models samples"],
    to: Bool[np.ndarray, "models samples"],
    rows: Bool[np.ndarray, "models samples"],
    split: Int[np.ndarray, "models"],
    block: Int[np.ndarray, "models"],
) -> stats.Estimate:
    """Return the rate of hits in one population of models minus that in another, on the same samples; in [−1, 1].

    A sample counts once, in both populations together. The i-th models of both share a split and are compared as a
    pair.

    Parameters
    ----------
    of, to : bool [models, samples]
        Which samples are a hit in each model of the first and of the second population.
    rows : bool [models, samples]
        Which samples each pair of models is compared on. Pairs without any are left out and counted in the note.
    split, block : int [models]
        The split and the block of each model; models that share both are repeats of one another.

    Returns
    -------
    Estimate
        ``n`` counts samples. NaN with the reason when no model has rows.
    """
    return _mean([of, to], rows, split, block, low=-1.0)


def _mean(
    hits: list[np.ndarray], rows: np.ndarray, split: np.ndarray, block: np.ndarray, *, low: float
) -> stats.Estimate:
    """Return the rate of the first of ``hits``, minus that of the second if there are two, cut at [``low``, 1].

    ``hits``: bool [models, samples] each; ``rows`` bool [models, samples]: the samples of each model; ``split`` and
    ``block`` int [models]: models that share both are repeats of one another. NaN with the reason when no model has
    rows; models without any are left out and counted in the note.
    """
    has_rows: np.ndarray = np.any(rows, axis=1)
    if not has_rows.any():
        return stats.empty(n=0, note="no model has samples in this role")
    columns = rows.any(axis=0)
    weight = rows[np.ix_(has_rows, columns)].astype(np.float64)
    parts = [crossed.per_model(value=hit[np.ix_(has_rows, columns)].astype(np.float64), weight=weight) for hit in hits]
    part = functools.reduce(crossed.difference, parts)
    lacking = int((~has_rows).sum())
    missing = f"{lacking} of {len(has_rows)} models have no samples in this role" if lacking else ""
    places = {"split": split[has_rows], "block": block[has_rows]}
    return levels.of(part, **places, n=int(columns.sum()), note=missing, bounds=(low, 1.0))
