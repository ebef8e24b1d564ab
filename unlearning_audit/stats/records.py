"""Which records are still recognised: p-values of single samples, groups of them, and a false discovery rate."""

import numpy as np


def conformal(*, score: np.ndarray, heldout: np.ndarray) -> np.ndarray:
    """p-values that each record is an unseen one, (1 + #{held-out scores ≥ its score})/(1 + n), float64 [records].

    ``score`` float [records] and ``heldout`` float [n], larger = more likely a forgotten member. Exact where forgotten
    and held-out records are a fair draw, whatever the scores are. Raises ValueError for scores that are NaN and without
    held-out ones. Source: Vovk, Gammerman and Shafer 2005.
    """
    values, unseen = np.asarray(score, dtype=np.float64), np.sort(np.asarray(heldout, dtype=np.float64))
    if not len(unseen) or np.isnan(values).any() or np.isnan(unseen).any():
        raise ValueError("p-values of records need held-out scores, and none that is NaN")
    return (1 + len(unseen) - np.searchsorted(unseen, values, "left")) / (1 + len(unseen))


def discoveries(*, p: np.ndarray, rate: float = 0.1) -> np.ndarray:
    """The records of a list of which at most ``rate`` are false on average, bool [records].

    Benjamini and Hochberg 1995; it holds for conformal p-values, which depend on each other through the held-out scores
    (Bates et al. 2023). Raises ValueError for p-values outside [0, 1] and rates outside (0, 1).
    """
    p = np.asarray(p, dtype=np.float64)
    if not (((p >= 0) & (p <= 1)).all() and 0 < rate < 1):
        raise ValueError("p-values must lie in [0, 1], and the rate between 0 and 1")
    order = np.sort(p)
    below = np.flatnonzero(order <= rate * (1 + np.arange(len(p))) / max(len(p), 1))
    return p <= order[below[-1]] if len(below) else np.zeros(len(p), dtype=bool)
