"""Similarity of two representations of the same samples: centred kernel alignment (CKA), and each sample's influence on
it."""

import numpy as np

from unlearning_audit.stats.shapes import Float

#: The fewest samples for which unbiased centring leaves something of a kernel.
LEAST = 4

#: Share of a kernel's size below which a representation counts as the same for all samples.
ROUNDING = 1e-10


def linear_cka(
    *, x: Float[np.ndarray, "samples features"], y: Float[np.ndarray, "samples others"]
) -> tuple[float, Float[np.ndarray, "samples"]]:
    """Return the unbiased linear CKA of two representations of the same samples, and the influence of each sample on
    it.

    CKA is HSIC(K, L)/√(HSIC(K, K) HSIC(L, L)) with K = XXᵀ, L = YYᵀ (Kornblith et al. 2019, section 3). HSIC is the
    unbiased estimate (Song et al. 2012, equation 5), so that few samples of many features do not look alike. CKA is 1
    for representations that differ by rotation, reflection, scale and shift, and 0 on average for independent ones. The
    result is NaN if a representation is equal for all samples, or if there are fewer than `LEAST` samples.

    Parameters
    ----------
    x : float [samples, features]
        One representation.
    y : float [samples, others]
        The other representation; its number of features may differ.

    Returns
    -------
    value : float
        The CKA, in [−1, 1].
    influence : float64 [samples]
        The influence of each sample. The squares sum to the variance of the value.
    """
    k_x, k_y = _centred(x.astype(np.float64)), _centred(y.astype(np.float64))
    if k_x is None or k_y is None:
        return np.nan, np.full(len(x), np.nan)
    # What each sample adds to HSIC(K, L), HSIC(K, K) and HSIC(L, L), up to a common factor.
    both, of_x, of_y = ((a * b).sum(axis=1) for a, b in ((k_x, k_y), (k_x, k_x), (k_y, k_y)))
    scale = np.sqrt(of_x.sum() * of_y.sum())
    value = both.sum() / scale
    influence = 2 * both / scale - value * (of_x / of_x.sum() + of_y / of_y.sum())
    return float(min(max(value, -1.0), 1.0)), influence


def _centred(x: np.ndarray) -> np.ndarray | None:
    """Return the kernel XXᵀ, centred so that rows and columns sum to 0 and the diagonal is 0 (Székely and Rizzo 2014),
    float64 [samples, samples].

    ``x`` float64 [samples, features]. Return None if ``x`` is, up to rounding, the same for all samples, or if there
    are fewer than `LEAST` samples, 4.
    """
    n, deviation = len(x), x - x.mean(axis=0)
    if n < LEAST or (deviation**2).sum() <= ROUNDING * (x**2).sum():
        return None
    kernel: np.ndarray = deviation @ deviation.T
    np.fill_diagonal(kernel, 0.0)
    rows = kernel.sum(axis=1)
    kernel -= (rows[:, None] + rows) / (n - 2)
    kernel += rows.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(kernel, 0.0)
    return kernel
