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


def brute_force(u: np.ndarray, r: np.ndarray, buffer: float = 2.0) -> float:
    """The largest ε over all thresholds of the published box, one set of scores after the other."""
    positive, negative = (r, u) if np.median(r) > np.median(u) else (u, r)
    best = 0.0

    def consider(is_positive):
        nonlocal best
        value = equation_1(np.mean(is_positive(negative)), 1 - np.mean(is_positive(positive)))
        best = max(best, 0.0 if math.isnan(value) else value)

    t = np.unique(np.concatenate([u, r]))
    for cut in t:
        consider(lambda x, cut=cut: x >= cut)
    if np.ptp(positive) >= np.ptp(negative):
        positive, negative = negative, positive
    width, top = np.ptp(positive), positive.max()
    for i in range(len(t)):
        for j in range(i, len(t)):
            left = (t[i - 1] if i else -np.inf), t[i]
            right = max(t[j], top - buffer), min(t[j + 1] if j + 1 < len(t) else np.inf, top + buffer)
            reach = right[0] - left[1], right[1] - left[0]
            if right[0] <= right[1] and reach[0] <= width + buffer + 1e-9 and reach[1] >= width - buffer - 1e-9:
                consider(lambda x, i=i, j=j: (t[i] <= x) & (x <= t[j]))
    return min(best, 50.0)


def published_grid(u: np.ndarray, r: np.ndarray) -> float:
    """The same on the published thresholds, every rate counted one threshold at a time."""
    positive, negative = (r, u) if np.median(r) > np.median(u) else (u, r)
    low, high = min(u.min(), r.min()), max(u.max(), r.max())
    t = np.linspace(low, high, math.ceil((high - low) * 100))[:, None]
    rates = [((negative >= t).mean(1), (positive < t).mean(1))]
    if np.ptp(positive) >= np.ptp(negative):
        positive, negative = negative, positive
    width, top = np.ptp(positive), positive.max() + 2
    start = positive.min() + width - 2
    for right in np.linspace(start, top, math.ceil((top - start) * 100)):
        left = np.linspace(right - width - 2, right - width + 2, 400)[:, None]
        hit = (left <= positive) & (positive <= right), (left <= negative) & (negative <= right)
        rates.append((hit[1].mean(1), (~hit[0]).mean(1)))
    bounds = {equation_1(*rate) for fpr, fnr in rates for rate in zip(fpr, fnr, strict=True)}
    return min(max(0.0, max((e for e in bounds if not math.isnan(e)), default=0.0)), 50.0)
