"""Separation of positive and negative samples by a score in many models: AUC and TPR at small FPR, one value per
model."""

from dataclasses import replace

import numpy as np

from unlearning_audit import stats
from unlearning_audit.stats import crossed
from unlearning_audit.stats.shapes import Float, Matrix

#: The largest false positive rate at which a threshold is sought.
MOST = 1 - 1e-6


def auc(*, score: Matrix, positive: Matrix, negative: Matrix) -> crossed.PerModel:
    """Return the AUC of positive against negative samples for each model; ties count half.

    The influences are the placement values (DeLong et al. 1988). Imaginary samples are added to both classes, so that
    an AUC of 0 or 1 has a variance (`stats.mean_influence`).

    Parameters
    ----------
    score : float64 [models, samples]
        Scores, larger for positives, without NaN where a sample is positive or negative.
    positive, negative : float64 [models, samples]
        The weights of positive and of negative samples, 0 elsewhere.

    Returns
    -------
    PerModel
    """
    placement = np.zeros(score.shape)
    for m in range(len(score)):
        rows = (positive[m] > 0) | (negative[m] > 0)
        placement[m, rows] = stats.placements(
            score=score[m, rows], positive=positive[m, rows] > 0, weight=(positive + negative)[m, rows]
        )
    # The mean placement value of the positives, and that of the negatives, are both the AUC.
    of_positives, of_negatives = (crossed.per_model(value=placement, weight=weight) for weight in (positive, negative))
    # Influences [models, samples] have one column for each sample and are added; each class has imaginary samples of
    # its own, whose columns are joined.
    imagined = np.concatenate([of_positives.imagined, of_negatives.imagined], axis=1)
    return crossed.PerModel(of_positives.value, of_positives.influence + of_negatives.influence, imagined)


def tpr_at_fpr(
    *, score: Matrix, positive: Matrix, negative: Matrix, fpr: float
) -> tuple[crossed.PerModel, Float[np.ndarray, "models"]]:
    """Return the largest TPR among thresholds with FPR ≤ ``fpr`` for each model, and how much too high it is expected
    to be (its optimism).

    Influence: that of TPR − slope·FPR, because a sample that moves the threshold moves the TPR by the slope of the ROC
    curve there. The slope is measured from one standard error of the FPR below ``fpr`` to one above, where the latter
    is rounded up to a whole number of negatives. Optimism: the threshold lies just above a negative, number j =
    ⌊n·fpr⌋ + 1 of n from the top. Of new negatives an expected share j/(n + 1) > fpr lies above it, so the TPR is too
    high by the slope times j/(n + 1) − fpr.

    Parameters
    ----------
    score : float64 [models, samples]
        Scores, larger for positives, without NaN where a sample is positive or negative.
    positive, negative : float64 [models, samples]
        The weights of positive and of negative samples, 0 elsewhere.
    fpr : float
        The false positive rate.

    Returns
    -------
    tpr : PerModel
    optimism : float64 [models]
        How much too high each TPR is expected to be.
    """
    accepted, slope, optimism = np.zeros(score.shape), np.zeros(len(score)), np.zeros(len(score))
    for m in range(len(score)):
        rows = negative[m] > 0
        weights = negative[m, rows]
        n = float(effective_count(weights))
        error = float(np.sqrt(fpr * (1 - fpr) / n))
        # Where the slope of the ROC curve is measured: cuts admit whole negatives, so a part of one would say nothing.
        low, high = max(fpr - error, 0.0), min(float(np.ceil(n * (fpr + error))) / n, MOST)
        negatives = {"negative_score": score[m, rows], "weight": weights}
        cut = {level: stats.cut_at_fpr(**negatives, fpr=level) for level in (low, fpr, high)}
        rise = positive[m] @ (score[m] > cut[high]) - positive[m] @ (score[m] > cut[low])
        slope[m] = rise / positive[m].sum() / (high - low)
        # 1e-9 keeps a rounding error from taking a false positive away.
        optimism[m] = slope[m] * ((np.floor(n * fpr + 1e-9) + 1) / (n + 1) - fpr)
        accepted[m] = score[m] > cut[fpr]
    hits, alarms = (crossed.per_model(value=accepted, weight=weight) for weight in (positive, negative))
    # Only the influences are those of TPR − slope·FPR; the value is the TPR itself.
    return replace(crossed.difference(hits, alarms, slope), value=hits.value), optimism


def effective_count(weight: Float[np.ndarray, "... n"]) -> Float[np.ndarray, "..."]:
    """Return Kish's effective number of samples, float64 [...]; with equal weights this is their number.

    Parameters
    ----------
    weight
        float64 [..., n]: the weights of samples, on the last axis.
    """
    count: np.ndarray = weight.sum(axis=-1) ** 2 / (weight**2).sum(axis=-1)
    return count
