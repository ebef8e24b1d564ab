"""Separation of positive and negative samples by a score: AUC, the cut at a small FPR, the best threshold."""

import numpy as np

from unlearning_audit.stats.estimates import LEVEL, Estimate
from unlearning_audit.stats.intervals import mean_influence, squares_dof, t_quantile
from unlearning_audit.stats.shapes import Flags, Vector


def placements(*, score: Vector, positive: Flags, weight: Vector | None = None) -> Vector:
    """Return the placement value of each row: for a positive among the negatives, for a negative among the positives,
    the share that it is ordered rightly with; ties count half.

    For a positive it is the share of negatives with a lower score, for a negative the share of positives with a higher
    score. The values of positives average to the AUC, and so do the values of negatives. Source: DeLong et al. 1988.

    Parameters
    ----------
    score : float [n]
        Scores, larger for positives.
    positive : bool [n]
        Which rows are positive.
    weight : float [n], optional
        Weights of at least 0; by default equal.

    Returns
    -------
    float64 [n]

    Raises
    ------
    ValueError
        A score is NaN, or positives or negatives are missing or weigh nothing.
    """
    score, positive, weight = _two_sides(score, positive, weight)
    value = np.empty(len(score))
    for judged in (positive, ~positive):  # which rows get values; the others are what they are ordered among
        order = np.argsort(score[~judged])
        opposite = score[~judged][order]
        cumulative = np.append(0.0, np.cumsum(weight[~judged][order]))
        below = cumulative[np.searchsorted(opposite, score[judged], "left")]
        up_to = cumulative[np.searchsorted(opposite, score[judged], "right")]
        value[judged] = (below + up_to) / (2 * cumulative[-1])  # [-1]: the weight of all
    value[~positive] = 1 - value[~positive]
    return value


def auc(*, score: Vector, positive: Flags, weight: Vector | None = None, level: float = LEVEL) -> Estimate:
    """Return the area under the ROC curve with an interval from the placement values; ties count half.

    The variance is DeLong's with the imaginary samples of ``mean_influence``, so that the interval of a perfect
    separation has a width.

    Parameters
    ----------
    score : float [n]
        Scores, larger for positives.
    positive : bool [n]
        Which rows are positive.
    weight : float [n], optional
        Weights of at least 0; by default equal.
    level : float
        Confidence level of the interval.

    Returns
    -------
    Estimate

    Raises
    ------
    ValueError
        A score is NaN, or positives or negatives are missing or weigh nothing.

    Examples
    --------
    >>> estimate = auc(score=np.array([3.0, 2.0, 1.0, 0.0]), positive=np.array([True, True, False, False]))
    >>> estimate.value, round(estimate.low, 2)
    (1.0, 0.27)
    """
    score, positive, weight = _two_sides(score, positive, weight)
    value = placements(score=score, positive=positive, weight=weight)
    mean, above, above_imagined = mean_influence(value=value, weight=weight * positive)
    _mean, below, below_imagined = mean_influence(value=value, weight=weight * ~positive)  # the mean is the AUC again
    influence = np.concatenate([above + below, above_imagined, below_imagined])
    variance = (influence**2).sum()
    half = t_quantile(p=(1 + level) / 2, dof=squares_dof(influence)) * np.sqrt(variance)
    low, high = np.clip([mean - half, mean + half], 0.0, 1.0)
    return Estimate(float(mean), float(low), float(high), int((weight > 0).sum()))


def cut_at_fpr(*, negative_score: Vector, fpr: float, weight: Vector | None = None) -> float:
    """Return the cut with which the decision score > cut has the largest TPR, among the cuts with FPR ≤ ``fpr``.

    Parameters
    ----------
    negative_score : float [n]
        Scores of the negatives, at least one.
    fpr : float
        The false positive rate, at least 0 and below 1.
    weight : float [n], optional
        Weights of the negatives; by default equal.

    Returns
    -------
    float
    """
    weight = np.ones(len(negative_score)) if weight is None else weight
    order = np.argsort(negative_score)[::-1]
    accepted = np.cumsum(weight[order])  # weight of this negative and of all with larger scores
    # The factor allows for rounding, where this weight equals the limit.
    too_many = np.searchsorted(accepted, fpr * accepted[-1] * (1 + 1e-9), "right")
    return float(negative_score[order[too_many]])  # the first that must not be accepted


def unresolved(*, negatives: float, fpr: float) -> str:
    """Return the reason why the TPR at ``fpr`` cannot be given, or "" if it can.

    The TPR cannot be given if ``fpr`` allows less than one false positive among the negatives, whose number,
    ``negatives``, may be fractional.
    """
    if fpr * negatives >= 1 - 1e-9:  # one false positive, in spite of rounding
        return ""
    return f"{negatives:.0f} negatives cannot resolve a false positive rate of {fpr:g}"


def best_threshold(*, value: Vector, positive: Flags, weight: Vector | None = None) -> float:
    """Return the observed value t for which the decision value ≥ t has the largest ½(TPR + TNR), in O(n log n).

    Of equally good values the one that comes first in ``value`` is kept (Song and Mittal 2021, whose lists start with
    the members).

    Parameters
    ----------
    value : float [n]
        Values, larger for positives.
    positive : bool [n]
        Which rows are positive.
    weight : float [n], optional
        Weights of at least 0; by default equal.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        A value is NaN, or positives or negatives are missing or weigh nothing.
    """
    value, positive, weight = _two_sides(value, positive, weight)
    distinct, first, group = np.unique(value, return_index=True, return_inverse=True)
    # For each distinct value, the weight of positives, and of negatives, with at least this value.
    hits = np.bincount(group, weight * positive)[::-1].cumsum()[::-1]
    alarms = np.bincount(group, weight * ~positive)[::-1].cumsum()[::-1]
    # TPR − FPR times the weights of all positives, hits[0], and of all negatives, alarms[0]. Without weights these are
    # whole numbers, so that ties are ties.
    gain = hits * alarms[0] - alarms * hits[0]
    best = np.flatnonzero(gain == gain.max())
    # ``first``: where each distinct value stands first in ``value``.
    return float(distinct[best[np.argmin(first[best])]])


def _two_sides(
    score: np.ndarray, positive: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arguments as float64 scores, bool labels and float64 weights, [n] each; weights of None become equal
    ones.

    Raises ValueError for NaN scores, and if positives or negatives have no weight.
    """
    score, positive = np.asarray(score, dtype=np.float64), np.asarray(positive)
    if np.isnan(score).any():
        raise ValueError("scores hold NaN and cannot be ordered")
    weight = np.ones(len(score)) if weight is None else np.asarray(weight, dtype=np.float64)
    if not (weight[positive].sum() > 0 and weight[~positive].sum() > 0):
        raise ValueError("both sides, positive and negative, need at least one row of positive weight")
    return score, positive, weight
