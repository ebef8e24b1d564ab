"""One-dimensional densities in log space: Gaussians and Gaussian kernels."""

import numpy as np

SMALLEST_SPREAD = 1e-6
"""Logits are float32: phi carries rounding of about this size, and a spread below it is no spread."""


def gaussian(x: np.ndarray, centre: np.ndarray | float, spread: np.ndarray | float) -> np.ndarray:
    """Return the log-density at ``x`` of a Gaussian with mean ``centre`` and standard deviation ``spread``, all
    broadcast. A spread below ``SMALLEST_SPREAD``, 1e-6, is raised to it."""
    spread = np.maximum(spread, SMALLEST_SPREAD)
    return np.asarray(-0.5 * ((x - centre) / spread) ** 2 - np.log(spread) - 0.5 * np.log(2 * np.pi))


def silverman(points: np.ndarray) -> float:
    """Return the bandwidth (4/3n)^⅕ · sd for ``points`` [n], at least ``SMALLEST_SPREAD``, 1e-6. The standard deviation
    sd has the divisor n − 1; that of a single point is 0.

    Silverman (1986), equation 3.28; equal to ``bw_method="silverman"`` of scipy.
    """
    n = len(points)
    sd = points.std(ddof=1) if n > 1 else 0.0
    return float(max((4.0 / (3.0 * n)) ** 0.2 * sd, SMALLEST_SPREAD))


def kernel(points: np.ndarray, x: np.ndarray, *, bandwidth: float, bins: float = 10.0) -> np.ndarray:
    """Return the log of the Gaussian kernel density of ``points`` at ``x``, float64 of the shape of ``x``.

    The line is divided into cells. Points of one cell are merged into one kernel with their number, mean and variance.
    So the cost grows with the spread of the points and not with their number. The result differs from the full sum
    (``bins=inf``) by less than 2e-5 · max(1, |result|) up to two bandwidths from a point, and by less than 1e-3 ·
    |result| at thirty. The result is finite everywhere: far from all points, the nearest kernels decide.

    Parameters
    ----------
    points
        float64 [n]: the points, each of which has a Gaussian kernel.
    x
        Where the density is computed, any shape.
    bandwidth
        The standard deviation of the kernel.
    bins
        The number of cells per bandwidth.
    """
    # Without merging, every point is a cell of its own.
    cell = np.arange(len(points)) if np.isinf(bins) else np.floor(points * (bins / bandwidth))
    _, cell, count = np.unique(cell, return_inverse=True, return_counts=True)
    centre = np.bincount(cell, weights=points) / count
    within = np.bincount(cell, weights=(points - centre[cell]) ** 2) / count
    variance = bandwidth**2 + within
    # The logarithm of each kernel at its centre, with the share of points in its cell.
    height = np.log(count / len(points)) - 0.5 * np.log(2 * np.pi * variance)
    flat = np.asarray(x, dtype=np.float64).ravel()
    result = np.empty_like(flat)
    rows = max(1, 32_000 // len(centre))  # 256 KB of float64 at a time fit into a processor's cache
    for start in range(0, len(flat), rows):
        chunk = flat[start : start + rows, None]
        exponent = height - 0.5 * (chunk - centre) ** 2 / variance
        largest = exponent.max(axis=1)  # subtracted before exp and added after log, so that nothing overflows
        result[start : start + rows] = largest + np.log(np.exp(exponent - largest[:, None]).sum(axis=1))
    return result.reshape(np.shape(x))
