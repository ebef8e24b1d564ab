"""Statistics that metrics and attacks share: phi, ROC curves, thresholds, intervals, rank correlations."""

from dataclasses import dataclass

import numpy as np
from scipy import special

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A number, its confidence limits, the count it rests on, and why it is empty where it is NaN."""

    value: float
    low: float
    high: float
    n: int
    note: str = ""


def empty(*, n: int, note: str) -> Estimate:
    """An estimate that cannot be given: NaN with limits NaN, and the reason."""
    return Estimate(np.nan, np.nan, np.nan, n, note)


def phi(*, logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Logit-scaled confidence of the label, float64 [...]: z_y − log Σ_{c≠y} exp z_c = log p_y/(1 − p_y).

    ``logits`` float [..., classes ≥ 2]; ``y`` int, broadcast over the leading dimensions. Exact where softmax
    saturates. Raises ValueError for fewer than two classes and for labels outside them.
    Source: Carlini et al. 2022, eq. 4, without its clipping.
    """
    rest = np.array(logits, dtype=np.float64)
    classes = rest.shape[-1]
    y = np.asarray(y)
    if classes < 2:
        raise ValueError(f"phi needs logits of at least two classes, not {classes}")
    if y.size and not 0 <= y.min() <= y.max() < classes:
        raise ValueError(f"phi needs labels in 0…{classes - 1}, the classes of the logits")
    label = np.broadcast_to(y, rest.shape[:-1])[..., None]
    own = np.take_along_axis(rest, label, axis=-1)
    np.put_along_axis(rest, label, -np.inf, axis=-1)
    top = rest.max(axis=-1, keepdims=True)
    shift = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(rest - shift).sum(axis=-1, keepdims=True))
    return ((own - shift) - total)[..., 0]


def normal_quantile(p):
    """Quantile of the standard normal distribution, elementwise."""
    return special.ndtri(p)


def normal_probability(z):
    """Probability that a standard normal variable is at most ``z``, elementwise."""
    return special.ndtr(z)


def t_quantile(*, p, dof):
    """Quantile of Student's t with ``dof`` degrees of freedom (may be fractional or inf), elementwise."""
    return special.stdtrit(dof, p)


def mean_interval(*, values: np.ndarray, level: float = LEVEL) -> Estimate:
    """Mean of independent ``values`` [n] with Student's t interval; below n = 2 the limits are NaN."""
    values = np.asarray(values, dtype=np.float64)
    n = len(values)
    if n == 0:
        return empty(n=0, note="no values")
    mean = float(values.mean())
    if n == 1:
        return Estimate(mean, np.nan, np.nan, 1, "one value has no interval")
    half = float(t_quantile(p=(1 + level) / 2, dof=n - 1) * values.std(ddof=1) / np.sqrt(n))
    return Estimate(mean, mean - half, mean + half, n)


def sd_interval(*, values: np.ndarray, level: float = LEVEL) -> Estimate:
    """Standard deviation (n − 1) of normal ``values`` [n] with its chi-square interval; NaN below n = 2."""
    values = np.asarray(values, dtype=np.float64)
    n = len(values)
    if n < 2:
        return empty(n=n, note="a standard deviation needs at least two values")
    sd = float(values.std(ddof=1))
    tails = special.chdtri(n - 1, [(1 - level) / 2, (1 + level) / 2])
    low, high = sd * np.sqrt((n - 1) / tails)
    return Estimate(sd, float(low), float(high), n)


def clopper_pearson(*, successes: int, n: int, level: float = LEVEL) -> Estimate:
    """A rate with its exact binomial interval (Clopper and Pearson 1934).

    Raises ValueError unless 0 ≤ successes ≤ n and n ≥ 1.
    """
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"a rate needs 0 ≤ successes ≤ n and n ≥ 1, not {successes} of {n}")
    tail = (1 - level) / 2
    low = special.betaincinv(successes, n - successes + 1, tail) if successes > 0 else 0.0
    high = special.betaincinv(successes + 1, n - successes, 1 - tail) if successes < n else 1.0
    return Estimate(successes / n, float(low), float(high), n)


def roc(*, score: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ROC curve of the rules score ≥ threshold: ``fpr``, ``tpr``, ``threshold``, float64 [distinct + 1] each.

    ``score`` float [n], ``positive`` bool [n]. Starts at (0, 0) with threshold inf and ends at (1, 1); equal
    scores are one step. Raises ValueError for NaN scores and when one side is empty.
    """
    score, positive, _ = _two_sides(score, positive, None)
    order = np.argsort(score)[::-1]
    score, positive = score[order], positive[order]
    last = np.append(score[1:] != score[:-1], True)
    hits = np.cumsum(positive)[last]
    alarms = np.flatnonzero(last) + 1 - hits
    fpr, tpr = alarms / alarms[-1], hits / hits[-1]
    return np.append(0.0, fpr), np.append(0.0, tpr), np.append(np.inf, score[last])


def placements(*, score: np.ndarray, positive: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Share of the other side that each row beats, ties half, float64 [n]: its placement value.

    For a positive the share of negatives with a lower score, for a negative the share of positives with a
    higher one; both average to the AUC. Inputs and errors as ``auc``. Source: DeLong et al. 1988.
    """
    score, positive, weight = _two_sides(score, positive, weight)
    value = np.empty(len(score))
    for side in (positive, ~positive):
        other = np.sort(score[~side])
        cumulative = np.append(0.0, np.cumsum(weight[~side][np.argsort(score[~side])]))
        below = cumulative[np.searchsorted(other, score[side], "left")]
        up_to = cumulative[np.searchsorted(other, score[side], "right")]
        value[side] = (below + up_to) / (2 * cumulative[-1])
    value[~positive] = 1 - value[~positive]
    return value


def auc(*, score: np.ndarray, positive: np.ndarray, weight: np.ndarray | None = None, level: float = LEVEL) -> Estimate:
    """Area under the ROC curve, ties half, with an interval from the placement values.

    ``score`` float [n], ``positive`` bool [n], ``weight`` float [n] ≥ 0 or None. The variance is
    DeLong's with the imaginary samples of ``mean_influence``, so a perfect separation keeps an honest width.
    Raises ValueError for NaN scores and when one side is empty or weighs nothing.
    """
    score, positive, weight = _two_sides(score, positive, weight)
    value = placements(score=score, positive=positive, weight=weight)
    mean, above, above_imagined = mean_influence(value=value, weight=weight * positive)
    _, below, below_imagined = mean_influence(value=value, weight=weight * ~positive)
    influence = np.concatenate([above + below, above_imagined, below_imagined])
    variance = (influence**2).sum()
    half = t_quantile(p=(1 + level) / 2, dof=squares_dof(influence)) * np.sqrt(variance)
    low, high = np.clip([mean - half, mean + half], 0.0, 1.0)
    return Estimate(float(mean), float(low), float(high), int((weight > 0).sum()))


def mean_influence(*, value: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weighted mean of values in [0, 1] and how each sample moves it.

    ``value`` and ``weight`` float64 [..., n] with positive total weight. Returns the mean [...], the
    influence of each sample [..., n], and that of two imaginary samples of average weight, one with value 0
    and one with value 1 [..., 2]. The influences sum to zero; the sum of their squares is the variance of
    Agresti and Caffo (2000), which stays above zero when all values agree. The mean counts real samples only.
    """
    total = weight.sum(axis=-1, keepdims=True)
    typical = (weight**2).sum(axis=-1, keepdims=True) / total
    mean = (weight * value).sum(axis=-1, keepdims=True) / total
    centre = (mean * total + typical) / (total + 2 * typical)
    influence = weight / (total + 2 * typical) * (value - centre)
    imagined = typical / (total + 2 * typical) * (np.array([0.0, 1.0]) - centre)
    return mean[..., 0], influence, imagined


def squares_dof(influence: np.ndarray) -> np.ndarray:
    """Degrees of freedom of the variance Σ influence² over the last axis, from its fourth moments.

    Satterthwaite's 2V²/var V with the cautious var V ≤ Σ influence⁴: two per event when a few rare events make
    up the variance, two thirds of n for n normal influences, inf where all are zero.
    """
    square = (influence**2).sum(axis=-1)
    fourth = (influence**4).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(fourth > 0, 2 * square**2 / fourth, np.inf)


def cut_at_fpr(*, negative_score: np.ndarray, fpr: float, weight: np.ndarray | None = None) -> float:
    """The cut of the rule score > cut with the largest TPR among those with FPR ≤ ``fpr``.

    ``negative_score`` float [n ≥ 1], ``weight`` float [n] or None (equal), 0 ≤ fpr < 1.
    """
    weight = np.ones(len(negative_score)) if weight is None else weight
    order = np.argsort(negative_score)[::-1]
    accepted = np.cumsum(weight[order])
    first = np.searchsorted(accepted, fpr * accepted[-1] * (1 + 1e-9), "right")
    return float(negative_score[order[first]])


def unresolved(*, negatives: float, fpr: float) -> str:
    """Why TPR at ``fpr`` must stay empty: not one of the ``negatives`` may be accepted; "" if one may."""
    if fpr * negatives >= 1 - 1e-9:
        return ""
    return f"{negatives:.0f} negatives cannot resolve a false positive rate of {fpr:g}"


def tpr_at_fpr(*, score: np.ndarray, positive: np.ndarray, fpr: float, level: float = LEVEL) -> Estimate:
    """Largest TPR among thresholds with FPR ≤ ``fpr``, with the Clopper–Pearson interval at that threshold.

    ``score`` float [n], ``positive`` bool [n]; ``n`` of the result counts positives. NaN with the reason when
    1/negatives > fpr. Raises ValueError as ``roc`` and unless 0 < fpr < 1.
    """
    if not 0 < fpr < 1:
        raise ValueError(f"fpr must lie between 0 and 1, not {fpr}")
    score, positive, _ = _two_sides(score, positive, None)
    n = int(positive.sum())
    if reason := unresolved(negatives=len(positive) - n, fpr=fpr):
        return empty(n=n, note=reason)
    cut = cut_at_fpr(negative_score=score[~positive], fpr=fpr)
    return clopper_pearson(successes=int((score[positive] > cut).sum()), n=n, level=level)


def best_threshold(*, value: np.ndarray, positive: np.ndarray, weight: np.ndarray | None = None) -> float:
    """The observed value t for which the rule value ≥ t has the largest ½(TPR + TNR), in O(n log n).

    ``value`` float [n], ``positive`` bool [n], ``weight`` float [n] ≥ 0 or None. Of equally good values
    the one that comes first in ``value`` is kept (Song and Mittal 2021, whose lists start with the members).
    Raises ValueError for NaN values and when one side is empty or weighs nothing.
    """
    value, positive, weight = _two_sides(value, positive, weight)
    distinct, first, group = np.unique(value, return_index=True, return_inverse=True)
    hits = np.bincount(group, weight * positive)[::-1].cumsum()[::-1]
    alarms = np.bincount(group, weight * ~positive)[::-1].cumsum()[::-1]
    # TPR − FPR over a common denominator: whole numbers without weights, so that ties are ties
    gain = hits * alarms[0] - alarms * hits[0]
    best = np.flatnonzero(gain == gain.max())
    return float(distinct[best[np.argmin(first[best])]])


def spearman(*, x: np.ndarray, y: np.ndarray, level: float = LEVEL) -> Estimate:
    """Spearman's rank correlation (ties get mean ranks) with the interval of Bonett and Wright (2000).

    ``x`` and ``y`` float [n]; NaN when one of them is constant, limits NaN below n = 4.
    """
    x, y = _mean_ranks(x), _mean_ranks(y)
    n = len(x)
    x, y = x - x.mean(), y - y.mean()
    scale = np.sqrt((x @ x) * (y @ y))
    if scale == 0:
        return empty(n=n, note="a rank correlation needs two lists that vary")
    value = float(np.clip(x @ y / scale, -1, 1))
    return _fisher(value, n, (1 + value**2 / 2) / (n - 3) if n > 3 else np.nan, level)


def kendall(*, x: np.ndarray, y: np.ndarray, level: float = LEVEL) -> Estimate:
    """Kendall's τ-b with the interval of Fieller et al. (1957). O(n²), meant for short rankings.

    ``x`` and ``y`` float [n]; NaN when one of them is constant, limits NaN below n = 5.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    n = len(x)
    above = np.triu_indices(n, 1)
    a = np.sign(x[:, None] - x[None, :])[above]
    b = np.sign(y[:, None] - y[None, :])[above]
    scale = np.sqrt((a @ a) * (b @ b))
    if scale == 0:
        return empty(n=n, note="a rank correlation needs two lists that vary")
    value = float(np.clip(a @ b / scale, -1, 1))
    return _fisher(value, n, 0.437 / (n - 4) if n > 4 else np.nan, level)


def _fisher(value: float, n: int, variance: float, level: float) -> Estimate:
    """Interval of a correlation, symmetric in artanh; a perfect one keeps only its own end."""
    if np.isnan(variance):
        return Estimate(value, np.nan, np.nan, n, f"{n} pairs are too few for an interval")
    half = normal_quantile((1 + level) / 2) * np.sqrt(variance)
    bounded = np.clip(value, -1 + 1e-15, 1 - 1e-15)
    low, high = np.tanh(np.arctanh(bounded) + np.array([-half, half]))
    return Estimate(value, float(min(low, value)), float(max(high, value)), n)


def _mean_ranks(values: np.ndarray) -> np.ndarray:
    _, group, count = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[group]


def _two_sides(score, positive, weight) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    score, positive = np.asarray(score, dtype=np.float64), np.asarray(positive)
    if score.ndim != 1 or positive.shape != score.shape or positive.dtype != bool:
        raise ValueError(
            f"scores and bool labels must be two lists of one length, not {score.shape} and {positive.shape}"
        )
    if np.isnan(score).any():
        raise ValueError("scores hold NaN and cannot be ordered")
    weight = np.ones(len(score)) if weight is None else np.asarray(weight, dtype=np.float64)
    if weight.shape != score.shape or not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("weights must be finite, at least 0, and one per score")
    if not (weight[positive].sum() > 0 and weight[~positive].sum() > 0):
        raise ValueError("both sides, positive and negative, need at least one row of positive weight")
    return score, positive, weight
