"""Rates of hits (right predictions, or one kind of error) over models and samples."""

import numpy as np

from unlearning_audit import stats
from unlearning_audit.stats import crossed, levels
from unlearning_audit.stats.shapes import Float, Int, Mask, OfModels

NO_CLASS = -1  # the prediction of a model of which a logit is NaN


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
    return np.where(np.isnan(logits).any(axis=-1), NO_CLASS, logits.argmax(axis=-1))


def rate(*, hit: Mask, rows: Mask, less: Mask | None = None, **places: OfModels | None) -> stats.Estimate:
    """Return the mean over models of the share of their samples that are a hit; all models count equally.

    The interval is over samples, each of which counts once in all models together, and over models (`stats.crossed`).

    Parameters
    ----------
    hit : bool [models, samples]
        Which samples are a hit in each model.
    rows : bool [models, samples]
        Which samples each model's share is taken over. Models without any are left out.
    less : bool [models, samples], optional
        Which samples are a hit in other models, whose rate is subtracted. The i-th of these models is compared with the
        i-th model of ``hit`` as a pair, on the same samples.
    places : int [models]
        The split and the block of each model and, if there are copies of originals, ``copied``, as in `levels.mean`.

    Returns
    -------
    Estimate
        In [0, 1], or in [−1, 1] for a difference; ``n`` counts samples. ``note`` says how many models were left out,
        and, if only one model remains, that the interval covers samples only; it is "" otherwise. NaN with the reason
        when no model has rows.
    """
    has_rows: np.ndarray = np.any(rows, axis=1)
    if not has_rows.any():
        return stats.empty(n=0, note="no model has samples in this role")
    columns = rows.any(axis=0)
    used = np.ix_(has_rows, columns)
    statistic = crossed.per_model(value=hit[used] * 1.0, weight=rows[used] * 1.0)
    if less is not None:
        statistic = crossed.difference(statistic, crossed.per_model(value=less[used] * 1.0, weight=rows[used] * 1.0))
    lacking = int((~has_rows).sum())
    note = f"{lacking} of {len(has_rows)} models have no samples in this role" if lacking else ""
    bounds = (0.0 if less is None else -1.0, 1.0)
    return levels.mean(statistic, **levels.of_some(places, has_rows), n=int(columns.sum()), note=note, bounds=bounds)
