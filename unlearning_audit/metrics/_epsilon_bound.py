"""A lower bound on ε that holds at a stated confidence (competition document, equation 2)."""

from functools import lru_cache

import numpy as np

from unlearning_audit import stats
from unlearning_audit.metrics._epsilon import strongest


@lru_cache(maxsize=16)
def bound_table(positives: int, negatives: int, delta: float, confidence: float) -> np.ndarray:
    """Tabulate the lower bound on ε for every pair of counts: float64 [positives + 1, negatives + 1], read-only, at
    least 0.

    Entry [tp, fp]: ε ≥ max(ln((1 − δ − FPR)/FNR), ln((1 − δ − FNR)/FPR)) decreases in both rates. So both are set to
    their Clopper–Pearson upper limits, each at half of 1 − ``confidence``; then both bounds hold together. (The printed
    equation puts a lower limit in the denominator, which would bound nothing.)
    """
    fnr, fpr = (
        np.array([stats.clopper_pearson(successes=k, n=n, level=confidence).high for k in range(n + 1)])
        for n in (positives, negatives)
    )
    value = strongest(fpr, fnr[::-1, None], delta)
    value.setflags(write=False)
    return value


def epsilon_bounds(
    unlearned: tuple[np.ndarray, np.ndarray], retrained: tuple[np.ndarray, np.ndarray], confidence: float, delta: float
) -> np.ndarray:
    """Return a lower bound on each forget sample's ε, float64 [samples]; each holds with probability ≥ ``confidence``.

    ``unlearned`` and ``retrained`` are two disjoint halves of a population each, phi float64 [models, samples]. The
    rule (single or double threshold, and which population it calls positive) is chosen on the first halves. Its rates
    are bounded on the second halves, so the choice needs no correction. The largest bound of S samples does need one:
    pass 1 − (1 − confidence)/S (Bonferroni).
    """
    samples = zip(*(half.T for half in (*unlearned, *retrained)), strict=True)
    return np.array([_bound(u, u_test, r, r_test, delta, confidence) for u, u_test, r, r_test in samples])


def _bound(
    u: np.ndarray, u_test: np.ndarray, r: np.ndarray, r_test: np.ndarray, delta: float, confidence: float
) -> float:
    """Return the lower bound on ε of one sample; the arrays are phi [models] of the choosing and testing halves."""
    value, low, high, *test = max(
        (*_best_interval(u, r, delta, confidence), u_test, r_test),
        (*_best_interval(r, u, delta, confidence), r_test, u_test),
        key=lambda rule: rule[0],
    )
    if not value:
        return 0.0
    tp, fp = (int(((low <= side) & (side <= high)).sum()) for side in test)
    return float(bound_table(*map(len, test), delta, confidence)[tp, fp])


def _best_interval(
    positive: np.ndarray, negative: np.ndarray, delta: float, confidence: float
) -> tuple[float, float, float]:
    """Return the largest lower bound on ε over all rules "phi lies in an interval", and the ends of the best interval,
    midway between scores.

    ``positive`` and ``negative`` float [models]: phi of the models that the rule should and should not accept. An
    interval may be open on a side, so single thresholds are included. An interval that begins and ends at positives is
    never worse than the same interval widened to negatives, so only those are compared.
    """
    t = np.unique(np.concatenate([positive, negative]))
    edges = np.concatenate([[-np.inf], (t[:-1] + t[1:]) / 2, [np.inf]])
    below_p, below_n = (np.searchsorted(np.sort(side), edges) for side in (positive, negative))
    ends = np.flatnonzero(np.diff(below_p))
    tp = below_p[ends + 1] - below_p[ends, None]
    fp = below_n[ends + 1] - below_n[ends, None]
    table = bound_table(len(positive), len(negative), delta, confidence)
    value = table[np.maximum(tp, 0), np.maximum(fp, 0)]  # 0 without a positive
    i, j = np.unravel_index(value.argmax(), value.shape)
    return float(value[i, j]), float(edges[ends[i]]), float(edges[ends[j] + 1])
