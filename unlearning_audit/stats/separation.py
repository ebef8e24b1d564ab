"""How well a score separates two sides of samples in many models: AUC and TPR at small FPR, one value per model."""

import numpy as np

from unlearning_audit import stats
from unlearning_audit.stats import crossed


def auc(*, score: np.ndarray, positive: np.ndarray, negative: np.ndarray) -> crossed.PerModel:
    """AUC of positive against negative samples for each model, ties half.

    ``score`` float64 [models, samples], without NaN on either side; ``positive`` and ``negative`` float64 [models,
    samples], the weights of the two sides (0 elsewhere). Influence: the placement values (DeLong et al. 1988).
    """
    placement = np.zeros(score.shape)
    for m in range(len(score)):
        rows = (positive[m] > 0) | (negative[m] > 0)
        placement[m, rows] = stats.placements(
            score=score[m, rows], positive=positive[m, rows] > 0, weight=(positive + negative)[m, rows]
        )
    beaten, beating = (crossed.per_model(value=placement, weight=weight) for weight in (positive, negative))
    return crossed.PerModel(
        beaten.value,
        beaten.influence + beating.influence,
        np.concatenate([beaten.imagined, beating.imagined], axis=1),
    )


def tpr_at_fpr(
    *, score: np.ndarray, positive: np.ndarray, negative: np.ndarray, fpr: float
) -> tuple[crossed.PerModel, np.ndarray]:
    """Largest TPR among thresholds with FPR ≤ ``fpr`` for each model, and its optimism; inputs as ``auc``.

    Influence: a threshold held at its FPR moves the TPR, to first order, by the slope of the ROC curve,
    measured over the spread that the FPR itself has. The optimism, float64 [models]: of n negatives the
    threshold may stay just above the one that would be too many, number j = ⌊n·fpr⌋ + 1 from the top, and of
    new negatives a share of j/(n + 1) > fpr lies above that one; the TPR gains by the slope.
    """
    accepted, slope, optimism = np.zeros(score.shape), np.zeros(len(score)), np.zeros(len(score))
    for m in range(len(score)):
        rows = negative[m] > 0
        weights = negative[m, rows]
        n = effective_count(weights)
        spread = np.sqrt(fpr * (1 - fpr) / n)
        low, high = max(fpr - spread, 0.0), fpr + spread
        cut = {
            level: stats.cut_at_fpr(negative_score=score[m, rows], weight=weights, fpr=level)
            for level in (low, fpr, high)
        }
        rise = positive[m] @ (score[m] > cut[high]) - positive[m] @ (score[m] > cut[low])
        slope[m] = rise / positive[m].sum() / (high - low)
        optimism[m] = slope[m] * ((np.floor(n * fpr + 1e-9) + 1) / (n + 1) - fpr)
        accepted[m] = score[m] > cut[fpr]
    hits, alarms = (crossed.per_model(value=accepted, weight=weight) for weight in (positive, negative))
    moved = crossed.difference(hits, alarms, slope)
    return crossed.PerModel(hits.value, moved.influence, moved.imagined), optimism


def effective_count(weight: np.ndarray) -> np.ndarray:
    """Kish's effective number of samples over the last axis; their number where weights are equal."""
    return weight.sum(axis=-1) ** 2 / (weight**2).sum(axis=-1)
