"""KLOM: divergence of a sample's margins (φ) over unlearned models from its margins over retrained models."""

import numpy as np

from unlearning_audit.stats.shapes import Float

#: The margin φ, the logit of the true class against all others, of each sample by each model of a group of any size.
Margins = Float[np.ndarray, "group samples"]

BINS = 20
LEAST = 1e-5  # probability of an empty bin


def divergence(
    *, margin: Margins, reference: Margins, bins: int = BINS, least: float = LEAST
) -> Float[np.ndarray, "samples"]:
    """Return KL(retrained ‖ unlearned models) of each sample's binned margins in nats, at least 0 (Georgiev et al.,
    ICLR 2025).

    A margin is the logit of the true class against all others (φ). Bins of equal width span the margins of both groups
    of models. The value depends on the number of models, so compare only numbers from equally many models.

    Parameters
    ----------
    margin : float [models, samples]
        φ by unlearned models.
    reference : float [retrained models, samples]
        φ by retrained models.
    bins : int
        The number of bins.
    least : float
        The share that every bin has at least, before normalisation.

    Returns
    -------
    float64 [samples]

    Raises
    ------
    ValueError
        A margin is not finite.
    """
    share, of_reference = _shares(margin, reference, bins, least)
    return np.asarray((of_reference * np.log(of_reference / share)).sum(axis=0))


def of_empty_bins(*, margin: Margins, reference: Margins) -> Float[np.ndarray, "samples"]:
    """Return the part of `divergence` that comes from bins with retrained models but without unlearned ones, whose
    share of 0 is raised to `LEAST`.

    Parameters
    ----------
    margin : float [models, samples]
        φ by unlearned models.
    reference : float [retrained models, samples]
        φ by retrained models.

    Returns
    -------
    float64 [samples]

    Raises
    ------
    ValueError
        A margin is not finite.
    """
    share, of_reference = _shares(margin, reference, BINS, LEAST)
    empty = (share <= LEAST) & (of_reference > LEAST)
    return np.asarray(np.where(empty, of_reference * np.log(of_reference / share), 0.0).sum(axis=0))


def _shares(margin: np.ndarray, reference: np.ndarray, bins: int, least: float) -> list[np.ndarray]:
    """Return the share of models in each bin, float64 [bins, samples], twice: of the unlearned models, then of the
    retrained ones.

    The bins of a sample have equal widths from its smallest to its largest margin in both groups. Shares below
    ``least`` are raised to it; then all shares of a sample in one group are divided by their sum. Raises ValueError if
    a margin is not finite.

    Parameters
    ----------
    margin, reference
        float [models, samples] and float [retrained models, samples]: margins by unlearned and by retrained models.
    bins
        The number of bins.
    least
        The share that every bin has at least, before normalisation.
    """
    groups = [np.asarray(margins, dtype=np.float64) for margins in (margin, reference)]
    both = np.concatenate(groups)
    if not np.isfinite(both).all():
        raise ValueError("margins are not finite")
    low, width = both.min(axis=0), np.ptp(both, axis=0)
    width = np.where(width > 0, width, 1.0)
    shares = []
    for margins in groups:
        bin_ = np.minimum(((margins - low) / width * bins).astype(np.int64), bins - 1)
        count = np.stack([(bin_ == k).sum(axis=0) for k in range(bins)])
        share = np.maximum(count / len(margins), least)
        shares.append(share / share.sum(axis=0))
    return shares
