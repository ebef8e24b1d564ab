"""Kernel two-sample tests of models by squared maximum mean discrepancies (MMD²; Gretton et al. 2012), and the nearer
of two groups of models."""

import numpy as np
from scipy.spatial import distance

from unlearning_audit.stats.shapes import Float, Int

#: The kernel of every two points, and the indices of any number of them.
Kernel = Float[np.ndarray, "n n"]
Places = Int[np.ndarray, "some"]


def gram(*, points: Float[np.ndarray, "models numbers"]) -> Float[np.ndarray, "models models"]:
    """Return the Gaussian kernel exp(−|x − y|²/2h²) of every two points.

    The square of the width h is the median squared distance of two different points. All points contribute equally to
    h, so that permutation tests stay exact. The kernel is 1 everywhere if no two points differ.

    Parameters
    ----------
    points : float [models, numbers]
        One point for each model.

    Returns
    -------
    float64 [models, models]
    """
    squares = distance.pdist(np.asarray(points, dtype=np.float64), "sqeuclidean")  # squared distances of every two
    h_squared = np.median(squares[squares > 0]) if (squares > 0).any() else 1.0
    return np.asarray(np.exp(-distance.squareform(squares) / (2 * h_squared)))


def discrepancy(*, kernel: Kernel, x: Places, y: Places) -> float:
    """Return the unbiased squared MMD between two groups of points; it may be negative (Gretton et al. 2012, lemma 6).

    Parameters
    ----------
    kernel : float64 [n, n]
        The kernel of every two points, from `gram`.
    x, y : int [≥ 2]
        Indices of the points of each group.

    Returns
    -------
    float
    """
    # The mean kernel of two different points of one group, summed over both groups: without the diagonal.
    inside = sum(
        (kernel[np.ix_(some, some)].sum() - kernel[some, some].sum()) / (len(some) * (len(some) - 1)) for some in (x, y)
    )
    return float(inside - 2 * kernel[np.ix_(x, y)].mean())


def p_value(*, kernel: Kernel, x: Places, y: Places, rng: np.random.Generator, draws: int) -> float:
    """Return the permutation p-value of the hypothesis that two groups of points come from one distribution.

    The p-value is (1 + the number of draws whose MMD is at least that of the two groups)/(1 + ``draws``), which is
    exact for any number of points. MMD is the maximum mean discrepancy.

    Parameters
    ----------
    kernel : float64 [n, n]
        The kernel of every two points, from `gram`.
    x, y : int [≥ 2]
        Indices of the points of each group.
    rng : Generator
        Draws the permutations.
    draws : int
        The number of permutations.

    Returns
    -------
    float
    """
    observed, points = discrepancy(kernel=kernel, x=x, y=y), np.concatenate([x, y])
    among = kernel[np.ix_(points, points)]
    orders = rng.permuted(np.tile(np.arange(len(points)), (draws, 1)), axis=1)
    in_first = np.zeros((draws, len(points)))  # 1 for the points of the first group of each draw, else 0
    np.put_along_axis(in_first, orders[:, : len(x)], 1.0, axis=1)
    in_second, diagonal = 1.0 - in_first, np.diag(among)
    # For the first and for the second group: the sum of the kernel over every two different points, float64 [draws].
    sums = [((group @ among) * group).sum(axis=1) - group @ diagonal for group in (in_first, in_second)]
    between = ((in_first @ among) * in_second).sum(axis=1)
    inside = sum(s / (n * (n - 1)) for s, n in zip(sums, (len(x), len(y)), strict=True))
    discrepancies = inside - 2 * between / (len(x) * len(y))  # as `discrepancy` computes them, of all draws at once
    # 1e-12: a draw that equals the observed groups counts in spite of rounding.
    return float((1 + (discrepancies >= observed - 1e-12).sum()) / (1 + draws))


def nearer(*, kernel: Kernel, u: Places, r: Places, o: Places) -> float:
    """Return how much nearer the points ``u`` are to ``r`` than to ``o``: (MMD²(u, o) − MMD²(u, r))/MMD²(r, o).

    The value is 1 where u is like r, and −1 where u is like o (Bounliphone et al. 2016 test its sign).

    Parameters
    ----------
    kernel : float64 [n, n]
        The kernel of every two points, from `gram`.
    u, r, o : int [≥ 2]
        Indices of the points of each group, such as unlearned, retrained and original models.

    Returns
    -------
    float
        NaN where MMD²(r, o) is not above 0.
    """
    to_o, to_r, between = (discrepancy(kernel=kernel, x=a, y=b) for a, b in ((u, o), (u, r), (r, o)))
    return (to_o - to_r) / between if between > 0 else float("nan")
