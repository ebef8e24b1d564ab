"""KLOM: divergence of a sample's margins over unlearned models from those over retrained ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

BINS = 20
LEAST = 1e-5  # probability of an empty bin


def divergence(
    *,
    margin: Float[np.ndarray, "models samples"],
    reference: Float[np.ndarray, "others samples"],
    bins: int = BINS,
    least: float = LEAST,
) -> Float[np.ndarray, "samples"]:
    """Return KL(reference ‖ models) of each sample's binned margins in nats, float64 [samples], at least 0.

    ``margin`` float [models, samples] and ``reference`` float [others, samples]: logits of the true class against all
    others (φ). ``bins`` of equal width span both. Every bin has a share of at least ``least`` before normalisation. The
    value depends on the number of models, so compare only numbers from equally many models. Source: Georgiev et al.,
    ICLR 2025. Raises ValueError if the two sides have different samples, and for margins that are not finite.
    """
    first, second = _shares(margin, reference, bins, least)
    divergence: np.ndarray = (second * np.log(second / first)).sum(axis=0)
    return divergence


def of_empty_bins(
    *, margin: Float[np.ndarray, "models samples"], reference: Float[np.ndarray, "others samples"]
) -> Float[np.ndarray, "samples"]:
    """Return the part of `divergence` from bins that have reference models but no others, float64 [samples].

    There `LEAST` replaces a share of 0. Raises ValueError as `divergence`.
    """
    first, second = _shares(margin, reference, BINS, LEAST)
    empty = (first <= LEAST) & (second > LEAST)
    part: np.ndarray = np.where(empty, second * np.log(second / first), 0.0).sum(axis=0)
    return part


def _shares(margin: np.ndarray, reference: np.ndarray, bins: int, least: float) -> list[np.ndarray]:
    """Return the shares of the models in each bin, for ``margin`` and for ``reference``, float64 [bins, samples]
    each."""
    both = [np.asarray(x, dtype=np.float64) for x in (margin, reference)]
    if both[0].ndim != 2 or both[1].ndim != 2 or both[0].shape[1] != both[1].shape[1]:
        raise ValueError(f"margins must be [models, samples] of the same samples, not {both[0].shape}, {both[1].shape}")
    if not all(np.isfinite(x).all() for x in both):
        raise ValueError("margins are not finite")
    low = np.minimum(both[0].min(axis=0), both[1].min(axis=0))
    width = np.maximum(both[0].max(axis=0), both[1].max(axis=0)) - low
    width = np.where(width > 0, width, 1.0)
    shares = []
    for x in both:
        bin_ = np.minimum(((x - low) / width * bins).astype(np.int64), bins - 1)
        count = np.stack([(bin_ == k).sum(axis=0) for k in range(bins)])
        share = np.maximum(count / len(x), least)
        shares.append(share / share.sum(axis=0))
    return shares
