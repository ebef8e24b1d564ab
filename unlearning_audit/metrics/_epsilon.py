"""ε of one sample: the best threshold attack on phi between unlearned and retrained models (competition, eq. 1)."""

from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import numpy as np

from unlearning_audit import stats

Rule = Literal["exact", "grid"]

#: The published box: how far thresholds may lie from the ends of phi, how many of the grid there are per unit of phi,
#: and the ε that stands for separated ranges.
BUFFER, PER_UNIT, CAP = 2.0, 100, 50.0
SPREAD_RATIO = 0.01  # ranges that differ by more than this factor count as separated (published rule)
ROUNDING = 1e-9  # tolerance of the box, so that rounding excludes no interval of the grid


def epsilon_of_rates(fpr: np.ndarray, fnr: np.ndarray, delta: float) -> np.ndarray:
    """Return ε of attacks by their error rates: max(ln((1 − δ − FPR)/FNR), ln((1 − δ − FNR)/FPR), 0), float64. ``fpr``
    and ``fnr`` are broadcast against each other. inf where one rate is 0 and the other is below 1 − δ."""
    with np.errstate(divide="ignore", invalid="ignore"):  # ``fmax`` ignores NaN
        ratio = np.fmax(np.log(1 - delta - fpr) - np.log(fnr), np.log(1 - delta - fnr) - np.log(fpr))
    return np.asarray(np.fmax(ratio, 0.0))


@lru_cache(maxsize=16)
def epsilon_table(positives: int, negatives: int, delta: float) -> np.ndarray:
    """Return ε (competition, equation 1) of every attack on ``positives`` positives and ``negatives`` negatives, two
    counts: float64 [(positives + 1) · (negatives + 1)], read-only.

    Entry ``tp · (negatives + 1) + fp`` belongs to an attack that accepts ``tp`` of the positives and ``fp`` of the
    negatives. The entry is inf for perfect separation, and −inf (discarded) if exactly one error rate is zero. All
    other entries are at least 0.
    """
    fnr = (positives - np.arange(positives + 1)[:, None]) / positives
    fpr = np.arange(negatives + 1)[None, :] / negatives
    value = epsilon_of_rates(fpr, fnr, delta)
    value[np.broadcast_to((fpr == 0) ^ (fnr == 0), value.shape)] = -np.inf
    value[positives, 0] = np.inf
    value.setflags(write=False)
    return value.ravel()


def epsilons(*, unlearned: np.ndarray, retrained: np.ndarray, rule: Rule = "exact", delta: float = 1e-5) -> np.ndarray:
    """Return ε of each forget sample, the strongest of all single- and double-threshold attacks: float64 [samples].

    An attack says of each model to which population it belongs. With a single threshold t, it assigns phi ≥ t to the
    population of larger median. With a double threshold (l, r), it assigns l ≤ phi ≤ r to the population of smaller
    range w. The published box limits l and r: r lies within `BUFFER` of the maximum of that population, and r − l
    within `BUFFER` of w.

    ``rule="grid"`` takes the published thresholds, `PER_UNIT` of them per unit of phi. ``"exact"`` takes every set of
    scores that any thresholds of the box select; its ε is never below that of "grid", and it costs less. Either way, ε
    is at most `CAP`. It is `CAP` where the range of one population is below a hundredth of the range of the other, or
    both ranges are 0, and 0 where every attack is discarded or all phi of a sample are equal.

    Parameters
    ----------
    unlearned, retrained
        float [models, samples]: phi of the two populations. Their numbers of models may differ; an error rate is the
        share of the models of one population.

    Raises
    ------
    ValueError
        For fewer than two models of a population, no sample, or phi that is not finite.
    """
    check_phi(unlearned, retrained)
    u, r = (np.asarray(phi, np.float64).T for phi in (unlearned, retrained))
    range_u, range_r = np.ptp(u, axis=1), np.ptp(r, axis=1)
    narrow, wide = np.minimum(range_u, range_r), np.maximum(range_u, range_r)
    # What a sample gets for which no thresholds are searched: 0 if all phi are equal, else `CAP`.
    result = np.where(np.ptp(np.hstack([u, r]), axis=1) == 0, 0.0, CAP)
    searched = (wide > 0) & (narrow >= SPREAD_RATIO * wide)
    u_higher = np.median(u, axis=1) >= np.median(r, axis=1)
    u_inner = np.where(u_higher, range_u < range_r, range_u <= range_r)  # whether u is the population of smaller range
    for inner, outer, samples in ((u, r, searched & u_inner), (r, u, searched & ~u_inner)):
        # The last array: whether ``inner`` has the larger median. Then u is inner and higher, or r is both.
        arrays = inner[samples], outer[samples], u_higher[samples] == u_inner[samples]
        if rule == "exact":
            epsilon = _exact(*arrays, delta)
        else:
            epsilon = np.array([_grid(*sample, delta) for sample in zip(*arrays, strict=True)])
        result[samples] = np.minimum(epsilon, CAP)
    return result


def check_phi(unlearned: np.ndarray, retrained: np.ndarray) -> None:
    """Raise ValueError if φ [models, samples] of a population is not finite, or if there are fewer than two models of
    either or no sample."""
    if min(len(unlearned), len(retrained)) < 2 or not unlearned.shape[1]:
        raise ValueError("ε needs at least two unlearned and two retrained models and one forget sample")
    if not (np.isfinite(unlearned).all() and np.isfinite(retrained).all()):
        raise ValueError("phi has NaN or infinite values; look at the logits of these models first")


def _exact(inner: np.ndarray, outer: np.ndarray, higher: np.ndarray, delta: float) -> np.ndarray:
    """Return ε of each sample, float64 [samples]: the largest over all attacks with a single threshold, and over all
    with a double threshold in the published box. 0 if every attack is discarded, inf for perfect separation.

    Let t be the scores (phi) of both populations in rising order, top and width the maximum and the range of ``inner``,
    and b = `BUFFER`. The box asks of a double threshold (l, r), which accepts the scores from l to r, that r lies in
    [top − b, top + b] and r − l in [width − b, width + b]. Now (l, r) accepts exactly t_i … t_j if l lies in (t_{i−1},
    t_i] and r in [t_j, t_{j+1}), of which the box leaves [max(t_j, top − b), min(t_{j+1}, top + b)]. As l and r vary in
    these two intervals, r − l takes every value between its least and its largest one. So some (l, r) in them is in the
    box if this range meets [width − b, width + b].

    Parameters
    ----------
    inner
        float64 [samples, models]: phi of the population of smaller range, which is to be accepted.
    outer
        float64 [samples, other models]: phi of the other population.
    higher
        bool [samples]: whether ``inner`` has the larger median.
    """
    # Step 1: the scores t [samples, scores], and which of them may be the first and the last of an accepted set.
    both = np.hstack([inner, outer])
    order = np.argsort(both, axis=1, kind="stable")
    t = np.take_along_axis(both, order, 1)
    rises, edge = t[:, 1:] > t[:, :-1], np.ones((len(t), 1), bool)  # ``edge``: a column of ones
    starts, ends = np.hstack([edge, rises]), np.hstack([rises, edge])  # equal scores are accepted together
    # Step 2: where ``table`` has ε of an attack. ``below`` has the entry for accepting all scores below t_i, and in the
    # last column that for accepting all: each score of ``inner`` adds one to tp, each of ``outer`` one to fp. The entry
    # for accepting t_i … t_j is the difference below[j + 1] − below[i].
    table = epsilon_table(inner.shape[1], outer.shape[1], delta)
    step = np.where(order < inner.shape[1], outer.shape[1] + 1, 1)
    below = np.hstack([np.zeros((len(t), 1), np.int64), np.cumsum(step, axis=1)])
    # Step 3: single thresholds. One accepts t_i and all scores above it if ``higher``, else all scores below t_i.
    of_single = np.where(higher[:, None], below[:, -1:] - below[:, :-1], below[:, :-1])
    best: np.ndarray = np.where(starts, table[of_single], 0.0).max(1)
    # Step 4: double thresholds. The least and the largest r of the box for each last score t_j.
    top, width = inner.max(1, keepdims=True), np.ptp(inner, axis=1)[:, None]
    slack = ROUNDING * np.abs(t).max(1, keepdims=True)
    # t_{i−1} and t_{j+1}
    before, after = np.hstack([-np.inf * edge, t[:, :-1]]), np.hstack([t[:, 1:], np.inf * edge])
    least_r, most_r = np.maximum(t, top - BUFFER), np.minimum(after, top + BUFFER)
    ends &= least_r <= most_r + slack
    # The least and the largest r that the box allows for each first score t_i, so for an l in (t_{i−1}, t_i].
    low, high = before + width - BUFFER - slack, t + width + BUFFER + slack
    # Only scores that end a set in some sample are tried as t_j; in large populations, these are few.
    last = np.flatnonzero(ends.any(axis=0))
    ends, least_r, most_r, up_to = ends[:, last], least_r[:, last], most_r[:, last], below[:, last + 1]
    # The best of all sets that begin at t_i, for one i after the other.
    for i in range(last.max(initial=-1) + 1):
        j = slice(np.searchsorted(last, i), None)  # all ends at i or above
        allowed = starts[:, [i]] & ends[:, j] & (most_r[:, j] >= low[:, [i]]) & (least_r[:, j] <= high[:, [i]])
        best = np.maximum(best, np.where(allowed, table[up_to[:, j] - below[:, [i]]], 0.0).max(1))
    return best


def _grid(inner: np.ndarray, outer: np.ndarray, higher: bool, delta: float) -> float:
    """Return ε of one sample over the published grid of thresholds, `PER_UNIT` of them per unit of phi: 0 if every
    attack is discarded, inf for perfect separation.

    Single thresholds lie between the least and the largest phi. A double threshold has its right end within `BUFFER` of
    the maximum of ``inner``, and its width within `BUFFER` of the range of ``inner``.

    Parameters
    ----------
    inner
        float64 [models]: phi of the population of smaller range, which is to be accepted.
    outer
        float64 [other models]: phi of the other population.
    higher
        Whether ``inner`` has the larger median.
    """
    table = epsilon_table(len(inner), len(outer), delta)

    def grid(low: float, high: float) -> np.ndarray:
        """Return evenly spaced thresholds from ``low`` to ``high``, both included."""
        return np.linspace(low, high, int(np.ceil((high - low) * PER_UNIT)))

    thresholds = grid(min(inner.min(), outer.min()), max(inner.max(), outer.max()))
    width = np.ptp(inner)
    # Every right end with every left end, [right ends, left ends].
    right = grid(inner.min() + width - BUFFER, inner.max() + BUFFER)[:, None]
    left = right - width + grid(-BUFFER, BUFFER)

    def largest(count: Callable[[np.ndarray], np.ndarray]) -> float:
        """Return the largest ε, from ``table``, of some attacks that accept phi of ``inner`` as positives and phi of
        ``outer`` as negatives. ``count``, given sorted phi, returns how many of these each attack accepts."""
        tp, fp = (count(np.sort(phi)) for phi in (inner, outer))
        return float(table[tp * (len(outer) + 1) + fp].max())

    def beyond(scores: np.ndarray) -> np.ndarray:
        """Return how many sorted ``scores`` reach each of the single ``thresholds`` (score ≥ threshold), int
        [thresholds]. If ``higher`` is false, ``inner`` has the smaller median; then return how many lie below each."""
        below = np.searchsorted(scores, thresholds)
        return np.asarray(len(scores) - below if higher else below)

    def between(scores: np.ndarray) -> np.ndarray:
        """Return how many sorted ``scores`` lie between the two thresholds of each double threshold of the grid, from
        ``left`` to ``right``, both included: int [right ends, left ends]."""
        count = np.searchsorted(scores, right, "right") - np.searchsorted(scores, left)
        return np.asarray(np.maximum(count, 0))  # the difference is below 0 where ``right`` lies below ``left``

    return max(largest(beyond), largest(between), 0.0)


def points(epsilon: np.ndarray, *, models: int, width: float = 0.5) -> np.ndarray:
    """Return the competition's points H = 2 / 2ⁿ, where n is the 1-based bin of ε: float64, the shape of ``epsilon``.

    Bins of ``width`` exist while their upper end is at most ⌈ln(models − 1)⌉; beyond them H is 0. (The document prints
    13 bins for 512 models where this gives 14; no finite ε reaches the 14th.)

    Parameters
    ----------
    models
        The number of models of each population from which ε was computed, of the smaller one if they differ.
    """
    bins = np.floor(np.ceil(np.log(models - 1)) / width)
    bin_from_0 = np.floor(np.asarray(epsilon, np.float64) / width)  # n − 1
    return np.where(bin_from_0 < bins, 2.0**-bin_from_0, 0.0)


# ---------------------------------------------------------------- lower bounds (competition document, equation 2)


@lru_cache(maxsize=16)
def bound_table(positives: int, negatives: int, delta: float, confidence: float) -> np.ndarray:
    """Return the lower bound on ε that each attack shows: float64 [positives + 1, negatives + 1], read-only, at least
    0.

    Entry [tp, fp] is of an attack that accepts tp of the positives and fp of the negatives. The bound max(ln((1 − δ −
    FPR)/FNR), ln((1 − δ − FNR)/FPR)) decreases in both rates. So both are set to their Clopper–Pearson upper limits,
    each at half of 1 − ``confidence``; then both limits hold together. (The printed equation puts a lower limit in the
    denominator, which would bound nothing.)
    """

    def limits(n: int) -> np.ndarray:
        """Return the Clopper–Pearson upper limits, at level ``confidence``, of a rate of which 0 to ``n`` of n were
        observed: float64 [n + 1]."""
        return np.array([stats.clopper_pearson(successes=k, n=n, level=confidence).high for k in range(n + 1)])

    fnr = limits(positives)[::-1]  # reversed: with tp accepted, ``positives`` − tp are missed
    value = epsilon_of_rates(limits(negatives), fnr[:, None], delta)
    value.setflags(write=False)
    return value


def epsilon_bounds(
    unlearned: tuple[np.ndarray, np.ndarray], retrained: tuple[np.ndarray, np.ndarray], confidence: float, delta: float
) -> np.ndarray:
    """Return a lower bound on each forget sample's ε, float64 [samples]; each holds with probability ≥ ``confidence``.

    For each sample an attack (single or double threshold, and which population it calls positive) is chosen on the
    first half of each population. The rates of this attack are bounded on the second halves, so the choice needs no
    correction. The largest bound of S samples does need one: pass 1 − (1 − confidence)/S (Bonferroni).

    Parameters
    ----------
    unlearned, retrained
        The two disjoint halves of each population: phi, float64 [models, samples].
    """
    samples = zip(*(half.T for half in (*unlearned, *retrained)), strict=True)
    return np.array([_bound(u, u_test, r, r_test, delta, confidence) for u, u_test, r, r_test in samples])


def _bound(
    u: np.ndarray, u_test: np.ndarray, r: np.ndarray, r_test: np.ndarray, delta: float, confidence: float
) -> float:
    """Return the lower bound on ε of one sample. It is 0 if no attack shows a bound above 0 on the models by which the
    attack is chosen.

    An attack accepts an interval of phi, as phi of an unlearned or as phi of a retrained model.

    Parameters
    ----------
    u, r
        float64 [models]: phi of the unlearned and of the retrained models by which the attack is chosen.
    u_test, r_test
        float64 [models]: phi of the unlearned and of the retrained models on which the rates of the attack are bounded.
    """
    # Each attack is (bound on ε, low, high). The larger bound is chosen; of equal ones that for unlearned models.
    for_u, for_r = _best_interval(u, r, delta, confidence), _best_interval(r, u, delta, confidence)
    chosen = (for_u, u_test, r_test) if for_u[0] >= for_r[0] else (for_r, r_test, u_test)
    (value, low, high), positive, negative = chosen
    if not value:
        return 0.0
    tp, fp = (int(((low <= phi) & (phi <= high)).sum()) for phi in (positive, negative))
    return float(bound_table(len(positive), len(negative), delta, confidence)[tp, fp])


def _best_interval(
    positive: np.ndarray, negative: np.ndarray, delta: float, confidence: float
) -> tuple[float, float, float]:
    """Return the largest lower bound on ε over all attacks that accept an interval of phi, and the lower and upper end
    of the best interval.

    Ends lie midway between two scores (phi), or are infinite, so that single thresholds are included. Only intervals
    whose first and last score are of positives are compared, because widening one to negatives never makes it better.

    Parameters
    ----------
    positive, negative
        float [models]: phi of the models that the attack should accept, and of those that it should not.
    """
    scores = np.unique(np.concatenate([positive, negative]))
    edges = np.concatenate([[-np.inf], (scores[:-1] + scores[1:]) / 2, [np.inf]])
    positives_below, negatives_below = (np.searchsorted(np.sort(phi), edges) for phi in (positive, negative))
    ends = np.flatnonzero(np.diff(positives_below))  # the scores of positives; one lies between edges[k] and edges[k+1]
    # [first score, last score] of an interval; below 0 where the last comes before the first
    tp, fp = (below[ends + 1] - below[ends, None] for below in (positives_below, negatives_below))
    table = bound_table(len(positive), len(negative), delta, confidence)
    value = table[np.maximum(tp, 0), np.maximum(fp, 0)]  # 0 without a positive
    i, j = np.unravel_index(value.argmax(), value.shape)
    return float(value[i, j]), float(edges[ends[i]]), float(edges[ends[j] + 1])
