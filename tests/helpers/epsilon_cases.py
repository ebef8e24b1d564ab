"""ε by brute force, one set of scores or one threshold after the other."""

import math

import numpy as np

DELTA = 1e-5


def equation_1(fpr: float, fnr: float, delta: float = DELTA) -> float:
    """Algorithm 1 of the document for one attack; NaN if it is discarded."""
    if fpr == 0 and fnr == 0:
        return math.inf
    if fpr == 0 or fnr == 0:
        return math.nan
    bounds = [math.log(1 - delta - a) - math.log(b) for a, b in ((fpr, fnr), (fnr, fpr)) if 1 - delta - a > 0]
    return max(bounds, default=math.nan)


def strongest(attacks) -> float:
    """The largest ε of attacks; each is whom it accepts of the positives and of the negatives, bool […, models]."""
    bounds = [0.0]
    for positive, negative in attacks:
        rates = np.atleast_1d(negative.mean(-1)), np.atleast_1d(1 - positive.mean(-1))
        bounds += [equation_1(*rate) for rate in set(zip(*rates, strict=True))]
    return min(max(bound for bound in bounds if not math.isnan(bound)), 50.0)


def populations(u: np.ndarray, r: np.ndarray):
    """The population of larger median and the other; then that of smaller range and the other."""
    by_median = (r, u) if np.median(r) > np.median(u) else (u, r)
    return by_median, by_median if np.ptp(by_median[0]) < np.ptp(by_median[1]) else by_median[::-1]


def brute_force(u: np.ndarray, r: np.ndarray) -> float:
    """The largest ε over all thresholds of the published box, one set of scores after the other."""
    by_median, by_range = populations(u, r)
    t = np.unique(np.concatenate([u, r]))
    attacks = [[side >= cut for side in by_median] for cut in t]
    width, top, ends = np.ptp(by_range[0]), by_range[0].max(), np.r_[-np.inf, t, np.inf]
    for i in range(len(t)):
        for j in range(i, len(t)):
            low, high = max(t[j], top - 2), min(ends[j + 2], top + 2)  # of the right threshold
            if low <= high and low - t[i] <= width + 2 + 1e-9 and high - ends[i] >= width - 2 - 1e-9:
                attacks.append([(t[i] <= side) & (side <= t[j]) for side in by_range])
    return strongest(attacks)


def published_grid(u: np.ndarray, r: np.ndarray) -> float:
    """The same on the published thresholds, every rate counted one threshold at a time."""
    by_median, by_range = populations(u, r)
    low, high = min(u.min(), r.min()), max(u.max(), r.max())
    cuts = np.linspace(low, high, math.ceil((high - low) * 100))[:, None]
    attacks = [[side >= cuts for side in by_median]]
    width, top = np.ptp(by_range[0]), by_range[0].max() + 2
    start = by_range[0].min() + width - 2
    for right in np.linspace(start, top, math.ceil((top - start) * 100)):
        left = np.linspace(right - width - 2, right - width + 2, 400)[:, None]
        attacks.append([(left <= side) & (side <= right) for side in by_range])
    return strongest(attacks)
