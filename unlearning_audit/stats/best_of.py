"""Unbiased estimates of the largest of k draws from n ≥ k draws, by order statistics."""

from math import comb

import numpy as np

from unlearning_audit.stats.shapes import Float


def weights(*, draws: int, best_of: int) -> Float[np.ndarray, "draws"]:
    """Return the probability that each of n ``draws``, in rising order, is the largest of k = ``best_of`` that are
    chosen among them at random: C(i − 1, k − 1)/C(n, k) for the i-th, float64 [n].

    Raises ValueError unless 1 ≤ k ≤ n.
    """
    if not 1 <= best_of <= draws:
        raise ValueError(f"the best of {best_of} needs as many draws, and there are {draws}")
    # ``smaller`` = i − 1: how many draws come before the i-th.
    return np.array([comb(smaller, best_of - 1) / comb(draws, best_of) for smaller in range(draws)])


def largest(*, values: Float[np.ndarray, "... draws"], best_of: int) -> Float[np.ndarray, "..."]:
    """Return an estimate of the expected largest of k independent draws, from n ≥ k of them.

    The estimate is the mean over all choices of k among the n draws, which is unbiased for any distribution (a
    U-statistic: Hoeffding 1948). For values 0 and 1, c of them 1, it is 1 − C(n − c, k)/C(n, k), the pass@k of Chen et
    al. 2021.

    Parameters
    ----------
    values : float [..., draws]
        The n draws, in any order.
    best_of : int
        The number k.

    Returns
    -------
    float64 [...]
        NaN where a draw is NaN.

    Raises
    ------
    ValueError
        k is below 1 or above n.

    Examples
    --------
    >>> largest(values=np.array([0.0, 1.0, 0.5]), best_of=2).round(3).tolist()
    0.833
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=-1)  # NaN last, where the weight is above 0
    expected: np.ndarray = ordered @ weights(draws=ordered.shape[-1], best_of=best_of)
    return expected
