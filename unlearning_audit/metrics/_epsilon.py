"""ε of one sample: the best threshold attack on phi between unlearned and retrained models (competition, eq. 1)."""

from functools import lru_cache
from typing import Literal

import numpy as np

Rule = Literal["exact", "grid"]

SPREAD_RATIO = 0.01  # ranges that differ by more than this factor count as separated (published rule)
ROUNDING = 1e-9  # tolerance of the box, so that rounding excludes no interval of the grid
MOST_AT_ONCE = 24  # models up to which all sets of scores of all samples are tried together, which is quicker


@lru_cache(maxsize=16)
def epsilon_table(positives: int, negatives: int, delta: float) -> np.ndarray:
    """Tabulate equation (1) for every pair of counts: float64 [(positives + 1) · (negatives + 1)], read-only.

    Entry ``tp · (negatives + 1) + fp`` belongs to a rule that calls ``tp`` of the positives and ``fp`` of the negatives
    positive. It is inf for perfect separation, −inf (discarded) if exactly one error rate is zero, and otherwise at
    least 0.
    """
    fnr = (positives - np.arange(positives + 1)[:, None]) / positives
    fpr = np.arange(negatives + 1)[None, :] / negatives
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.fmax(np.log(1 - delta - fpr) - np.log(fnr), np.log(1 - delta - fnr) - np.log(fpr))
    value: np.ndarray = np.fmax(ratio, 0.0)
    value[np.broadcast_to((fpr == 0) ^ (fnr == 0), value.shape)] = -np.inf
    value[positives, 0] = np.inf
    value.setflags(write=False)
    return value.ravel()


def counts_below(values: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Return how many of ``values`` lie below each of the ascending ``cuts``, then how many there are in all: [cuts +
    1]."""
    return np.append(np.searchsorted(np.sort(values), cuts, "left"), len(values))


def epsilons(
    *,
    unlearned: np.ndarray,
    retrained: np.ndarray,
    rule: Rule = "exact",
    delta: float = 1e-5,
    buffer: float = 2.0,
    per_unit: int = 100,
    cap: float = 50.0,
) -> np.ndarray:
    """Return ε of each forget sample, the strongest of all single- and double-threshold attacks: float64 [samples].

    ``unlearned`` float [models, samples] and ``retrained`` float [other models, samples] hold phi. The two numbers of
    models may differ; each rate is taken over its own. A single threshold calls phi ≥ t "positive", the population of
    larger median. A double threshold calls l ≤ phi ≤ r "positive", the population of smaller range w, with r in [max −
    buffer, max + buffer] of that population and r − l in [w − buffer, w + buffer].

    ``rule="grid"`` takes the published thresholds, ``per_unit`` of them per unit of phi. ``"exact"`` takes every set of
    scores that any thresholds of the same box select; it is never below the grid and costs less. Both give ``cap``
    where one range is below a hundredth of the other, and 0 where every attack is discarded.

    Raises ValueError for shapes that do not match, fewer than two models on a side, or phi that is not finite.
    """
    unlearned, retrained = (np.asarray(x, np.float64) for x in (unlearned, retrained))
    check_phi(unlearned, retrained)
    if rule not in ("exact", "grid"):
        raise ValueError(f"rule must be exact or grid, not {rule!r}")
    u, r = unlearned.T.copy(), retrained.T.copy()
    spreads = np.stack([np.ptp(u, axis=1), np.ptp(r, axis=1)])
    narrow, wide = spreads.min(0), spreads.max(0)
    result = np.where(np.ptp(np.concatenate([u, r], axis=1), axis=1) == 0, 0.0, cap)
    swap = np.median(r, axis=1) > np.median(u, axis=1)
    searched = (wide > 0) & (narrow >= SPREAD_RATIO * wide)
    small = rule == "exact" and u.shape[1] + r.shape[1] <= MOST_AT_ONCE
    for positive, negative, rows in ((u, r, searched & ~swap), (r, u, searched & swap)):
        if small:
            result[rows] = np.minimum(_exact_of_few(positive[rows], negative[rows], delta, buffer), cap)
            continue
        for sample in np.flatnonzero(rows):
            pair = positive[sample], negative[sample]
            epsilon = _exact(*pair, delta, buffer) if rule == "exact" else _grid(*pair, delta, buffer, per_unit)
            result[sample] = min(epsilon, cap)
    return result


def check_phi(unlearned: np.ndarray, retrained: np.ndarray) -> None:
    """Raise ValueError unless both are finite [models ≥ 2, samples ≥ 1] over the same samples."""
    if unlearned.ndim != 2 or retrained.ndim != 2 or unlearned.shape[1] != retrained.shape[1]:
        raise ValueError(
            "phi of unlearned and retrained models must be [models, samples] over the same samples, "
            f"not {unlearned.shape} and {retrained.shape}"
        )
    if min(len(unlearned), len(retrained)) < 2 or not unlearned.shape[1]:
        raise ValueError("ε needs at least two unlearned and two retrained models and one forget sample")
    if not (np.isfinite(unlearned).all() and np.isfinite(retrained).all()):
        raise ValueError("phi has NaN or infinite values; look at the logits of these models first")


def _exact(positive: np.ndarray, negative: np.ndarray, delta: float, buffer: float) -> float:
    """Return ε of one sample over all sets of scores that the thresholds of the box can select.

    ``positive`` and ``negative`` float [models]: phi of the population of larger median and of the other.
    """
    t = np.unique(np.concatenate([positive, negative]))
    below_p, below_n = counts_below(positive, t), counts_below(negative, t)
    best = _single(below_p, below_n, delta)
    if np.ptp(positive) >= np.ptp(negative):
        positive, negative, below_p, below_n = negative, positive, below_n, below_p
    table = epsilon_table(len(positive), len(negative), delta)
    # a set of consecutive scores t_i … t_j holds code[j + 1] − code[i], which the table reads as (tp, fp)
    code = (below_p * (len(negative) + 1) + below_n).astype(np.int32)
    first, last = _reachable(t, positive.max(), np.ptp(positive), buffer)
    ends = np.flatnonzero(np.diff(below_p))
    inside = (first[ends, None] <= ends) & (ends <= last[ends, None])
    best = max(best, table[(code[ends + 1] - code[ends, None]) * inside].max())
    i, j = _exceptions(first, last, np.diff(below_p) == 0, np.diff(below_n) > 0)
    return float(max(best, table[code[j + 1] - code[i]].max(initial=0.0)))


def _exact_of_few(positive: np.ndarray, negative: np.ndarray, delta: float, buffer: float) -> np.ndarray:
    """Return ε of every sample, float64 [samples], by trying every set of consecutive scores.

    ``positive`` and ``negative`` float [samples, models]. The result equals `_exact` of each sample, and is quicker for
    few models.
    """
    _, below_p, below_n, starts, _ = _sorted(positive, negative)
    p, n = positive.shape[1], negative.shape[1]
    table = epsilon_table(p, n, delta)
    best: np.ndarray = np.where(starts, table[(p - below_p[:, :-1]) * (n + 1) + n - below_n[:, :-1]], 0.0).max(1)
    wider = np.ptp(positive, axis=1) >= np.ptp(negative, axis=1)
    for inner, outer, rows in ((positive, negative, ~wider), (negative, positive, wider)):
        best[rows] = np.maximum(best[rows], _double_of_few(inner[rows], outer[rows], delta, buffer))
    return best


def _double_of_few(inner: np.ndarray, outer: np.ndarray, delta: float, buffer: float) -> np.ndarray:
    """Return ε of the best double threshold for each sample, float64 [samples]; ``inner`` is the population of smaller
    range.

    The allowed thresholds are those of `_reachable`.
    """
    t, below_p, below_n, starts, ends = _sorted(inner, outer)
    top, width = inner.max(1, keepdims=True), np.ptp(inner, axis=1)[:, None]
    slack = ROUNDING * np.abs(t).max(1, keepdims=True)
    edge = np.full((len(t), 1), np.inf)
    before, after = np.hstack([-edge, t[:, :-1]]), np.hstack([t[:, 1:], edge])
    least, most = np.maximum(t, top - buffer), np.minimum(after, top + buffer)
    low, high = (before + width - buffer - slack)[:, :, None], (t + width + buffer + slack)[:, :, None]
    inside = (starts[:, :, None] & (ends & (least <= most + slack))[:, None]) & np.tri(t.shape[1], dtype=bool).T
    inside &= (most[:, None] >= low) & (least[:, None] <= high)
    code = below_p * (outer.shape[1] + 1) + below_n
    table = epsilon_table(inner.shape[1], outer.shape[1], delta)
    sets = np.where(inside, code[:, None, 1:] - code[:, :-1, None], 0)
    largest: np.ndarray = table[sets].max((1, 2), initial=0.0)
    return largest


def _sorted(positive: np.ndarray, negative: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sort the scores of each sample and count how many of both populations precede each.

    Returns the sorted scores float64 [samples, n]; how many positives and how many negatives precede each and the end,
    int [samples, n + 1] each; and whether a run of equal scores starts and ends there, bool [samples, n] each.
    """
    both = np.hstack([positive, negative])
    order = np.argsort(both, axis=1, kind="stable")
    t = np.take_along_axis(both, order, 1)
    none = np.zeros((len(t), 1), np.int64)
    below_p = np.hstack([none, np.cumsum(order < positive.shape[1], axis=1)])
    steps, edge = t[:, 1:] > t[:, :-1], np.ones((len(t), 1), bool)
    return t, below_p, np.arange(t.shape[1] + 1) - below_p, np.hstack([edge, steps]), np.hstack([steps, edge])


def _exceptions(
    first: np.ndarray, last: np.ndarray, no_positive: np.ndarray, has_negative: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sets of scores that may be best although they begin or end with a score of negatives alone: i and j,
    int [sets] each.

    Dropping such an end keeps tp and lowers fp, which never lowers ε. There are two exceptions: the smaller set leaves
    the box (``j`` below ``first`` of the next i, or equal to its own), or no false positive is left, which equation (1)
    discards. There are about as many exceptions as scores. All other sets begin and end with a positive.
    """
    scores = np.arange(len(first))
    negatives = np.flatnonzero(has_negative)
    edges = np.concatenate([[-1], negatives, [len(scores)]])
    following, preceding = edges[np.searchsorted(edges, scores, "right")], edges[np.searchsorted(edges, scores) - 1]
    alone = scores[no_positive]
    pairs = [
        _ranges(scores, first, np.append(first[1:], len(scores)) - 1),
        (scores, first),
        _ranges(alone, alone, following[alone] - 1),
        _ranges(alone, preceding[alone] + 1, alone)[::-1],
    ]
    i, j = (np.concatenate(side) for side in zip(*pairs, strict=True))
    inside = (i <= j) & (first[i] <= j) & (j <= last[i])
    return i[inside], j[inside]


def _ranges(of: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pair each number of ``of`` with all from its low to its high, inclusive: two int [pairs]."""
    length = np.maximum(high - low + 1, 0)
    start = np.cumsum(length) - length
    return np.repeat(of, length), np.arange(length.sum()) - np.repeat(start - low, length)


def _single(below_p: np.ndarray, below_n: np.ndarray, delta: float) -> float:
    """Return ε of the best single threshold from the counts of positives and negatives below each."""
    positives, negatives = below_p[-1], below_n[-1]
    table = epsilon_table(int(positives), int(negatives), delta)
    return float(table[(positives - below_p[:-1]) * (negatives + 1) + negatives - below_n[:-1]].max())


def _reachable(t: np.ndarray, top: float, width: float, buffer: float) -> tuple[np.ndarray, np.ndarray]:
    """Return for each i the first and last j such that some (l, r) of the box selects exactly t_i … t_j: int [len(t)].

    That needs l in (t_{i−1}, t_i] and r in [max(t_j, top − buffer), min(t_{j+1}, top + buffer)]. Over this rectangle r
    − l takes every value between its two ends, so only the ends have to meet [width − buffer, width + buffer].
    """
    slack = ROUNDING * np.abs(t).max()
    before, after = np.append(-np.inf, t[:-1]), np.append(t[1:], np.inf)
    least, most = np.maximum(t, top - buffer), np.minimum(after, top + buffer)  # both ascend with j
    allowed = np.flatnonzero(least <= most + slack)  # t_j = top is always among them
    first = np.searchsorted(most, before + width - buffer - slack, "left")
    last = np.searchsorted(least, t + width + buffer + slack, "right") - 1
    return np.maximum(np.maximum(first, allowed[0]), np.arange(len(t))), np.minimum(last, allowed[-1])


def _grid(positive: np.ndarray, negative: np.ndarray, delta: float, buffer: float, per_unit: int) -> float:
    """Return ε of one sample over the published grid of thresholds, ``per_unit`` of them per unit of phi."""
    low, high = min(positive.min(), negative.min()), max(positive.max(), negative.max())
    t = np.linspace(low, high, int(np.ceil((high - low) * per_unit)))
    best = _single(counts_below(positive, t), counts_below(negative, t), delta)
    if np.ptp(positive) >= np.ptp(negative):
        positive, negative = negative, positive
    width = np.ptp(positive)
    lowest, highest = positive.min() + width - buffer, positive.max() + buffer
    right = np.linspace(lowest, highest, int(np.ceil((highest - lowest) * per_unit)))[:, None]
    left = right - width + np.linspace(-buffer, buffer, int(np.ceil(2 * buffer * per_unit)))

    def inside(values: np.ndarray) -> np.ndarray:
        """Count the ``values`` between each pair of a left and a right threshold."""
        values = np.sort(values)
        counts: np.ndarray = np.maximum(
            np.searchsorted(values, right, "right") - np.searchsorted(values, left, "left"), 0
        )
        return counts

    table = epsilon_table(len(positive), len(negative), delta)
    return max(float(best), float(table[inside(positive) * (len(negative) + 1) + inside(negative)].max()), 0.0)


def points(epsilon: np.ndarray, *, models: int, width: float = 0.5) -> np.ndarray:
    """Return the competition's points H = 2 / 2ⁿ, where n is the 1-based bin of ε: float64, the shape of ``epsilon``.

    Bins of ``width`` exist while their upper end is at most ⌈ln(models − 1)⌉; beyond them H is 0. (The document prints
    13 bins for 512 models where this gives 14; no finite ε reaches the 14th.)
    """
    epsilon = np.asarray(epsilon, np.float64)
    bins = np.floor(np.ceil(np.log(models - 1)) / width)
    n = np.floor(epsilon / width)
    return np.where(n < bins, 2.0**-n, 0.0)
