"""Log density of phi over reference models, for every sample."""

from typing import Literal

import numpy as np

from unlearning_audit.evaluation import density, per_sample

Kind = Literal["kde", "gaussian", "pooled"]
Bandwidth = Literal["silverman"] | float

#: Spreads of `per_sample.spread` for the Gaussian kinds.
SPREADS = {"gaussian": "per_sample", "pooled": "within"}

CHUNK = 2_000_000  # kernels at a time: 16 MB of float64


def log_density(
    phi: np.ndarray,
    mask: np.ndarray,
    x: np.ndarray,
    *,
    side: str,
    kind: Kind = "kde",
    bandwidth: Bandwidth = "silverman",
    minimum: int = 3,
    audited: np.ndarray | None = None,
) -> np.ndarray:
    """Return the log-density at ``x`` of the phi of the reference models in ``mask``, sample by sample: float64
    [evaluated models, samples], finite everywhere.

    Parameters
    ----------
    phi
        float64 [reference models, samples].
    mask
        bool [reference models, samples]: which models the density of each sample is made of.
    x
        float64 [evaluated models, samples]: phi of the evaluated models.
    side
        What the models in ``mask`` are, such as "in"; only the message of the error contains it.
    kind
        "kde": Gaussian kernels of ``bandwidth``; "gaussian": mean and standard deviation (divisor n) of each sample;
        "pooled": the mean of each sample, and one standard deviation of all samples around their means (for few
        models).
    bandwidth
        A number in units of phi, or Silverman's rule (1986, eq. 3.28) on each sample's own spread.
    minimum
        The fewest models that a density is made of.
    audited
        int [evaluated models]: which reference models the evaluated models are, if they are reference models. Each is
        left out of its own density and bandwidth.

    Raises
    ------
    ValueError
        If a sample has fewer than ``minimum`` models in ``mask``.
    """
    # Functions of `per_sample` return one row. With ``leave_out``, they return a row for each reference model, computed
    # from the other models; ``rows`` then takes those of the evaluated models.
    leave_out = audited is not None
    rows = slice(None) if audited is None else audited
    per_sample.require_models(mask, minimum=minimum, side=side, leave_out=leave_out)
    if kind in SPREADS:
        centre = per_sample.mean(phi, mask, leave_out=leave_out)
        spread = per_sample.spread(phi, mask, kind=SPREADS[kind], leave_out=leave_out)
        return density.gaussian(x, centre[rows], spread[rows])
    squares, count = per_sample.squared_deviations(phi, mask, leave_out=leave_out)
    if bandwidth == "silverman":
        width = np.maximum((4 / (3 * count)) ** 0.2 * np.sqrt(squares / (count - 1)), density.SMALLEST_SPREAD)
    else:
        width = np.full(count.shape, bandwidth)
    count, width = (np.broadcast_to(array[rows], x.shape) for array in (count, width))
    points, result = np.where(mask, phi, np.inf), np.empty(x.shape)  # the kernel of a point at infinity is 0
    columns = max(1, CHUNK // len(phi))  # as many samples are taken at a time, to save memory
    for start in range(0, x.shape[1], columns):
        chunk = slice(start, start + columns)
        for model in range(len(x)):
            others = points[:, chunk] if audited is None else np.delete(points[:, chunk], audited[model], axis=0)
            result[model, chunk] = _kernels(others, x[model, chunk], width[model, chunk], count[model, chunk])
    return result


def _kernels(points: np.ndarray, x: np.ndarray, width: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return the log of the mean Gaussian kernel of ``points`` [models, samples] (inf: absent) at ``x`` [samples]:
    float64 [samples]. ``width`` and ``count`` [samples]: the bandwidth, and how many points are not absent."""
    exponent = -0.5 * ((x - points) / width) ** 2
    largest = exponent.max(axis=0)
    total = np.log(np.exp(exponent - largest).sum(axis=0))
    return np.asarray(largest + total - np.log(count * width) - 0.5 * np.log(2 * np.pi))


def clip(phi: np.ndarray, probability: float | None) -> np.ndarray:
    """Return phi, of any shape, of the label probability cut to [probability, 1 − probability]; unchanged for None.

    The published code of RULI cuts at 1e-6, so its phi lies within ±13.8 and confident models tie there.
    """
    if probability is None:
        return phi
    # log of the clipped p_y minus log of Σ_{c≠y} p_c, which is cut from below only
    log_label = np.clip(-np.logaddexp(0, -phi), np.log(probability), np.log1p(-probability))
    log_rest = np.maximum(-np.logaddexp(0, phi), np.log(probability))
    return np.asarray(log_label - log_rest)
