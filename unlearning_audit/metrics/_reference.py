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
    at: np.ndarray,
    *,
    side: str,
    kind: Kind = "kde",
    bandwidth: Bandwidth = "silverman",
    minimum: int = 3,
) -> np.ndarray:
    """Return log p(at | the phi of the models in ``mask``), sample by sample: float64 [evaluated models, samples].

    ``phi`` float64 and ``mask`` bool [reference models, samples]; ``at`` float64 [evaluated models, samples]. ``kind``
    "kde": Gaussian kernels of ``bandwidth``, a number in units of phi or Silverman's rule (1986, eq. 3.28) on each
    sample's own spread; "gaussian": mean and standard deviation (divisor n); "pooled": mean, and a standard deviation
    around the means of all samples (for few models). Finite everywhere. Raises ValueError when a sample has fewer than
    ``minimum`` models in ``mask``; the message names the ``side``.
    """
    per_sample.require(mask, minimum=minimum, side=side)
    if kind in SPREADS:
        return density.gaussian(at, per_sample.mean(phi, mask), per_sample.spread(phi, mask, kind=SPREADS[kind]))
    count, width = _count_and_bandwidth(phi, mask, bandwidth, leave_out=False)
    return _kde(phi, mask, at, np.broadcast_to(width, at.shape), np.broadcast_to(count, at.shape), None)


def log_density_of_its_own(
    phi: np.ndarray,
    mask: np.ndarray,
    audited: np.ndarray,
    *,
    side: str,
    kind: Kind = "kde",
    bandwidth: Bandwidth = "silverman",
    minimum: int = 3,
) -> np.ndarray:
    """Return the log density of phi of reference models themselves, each computed without that model: float64 [audited
    models, samples].

    ``audited`` int: which rows of ``phi`` are evaluated. The bandwidth, too, is that of the other models. Other
    arguments are those of `log_density`.
    """
    per_sample.require(mask, minimum=minimum, side=side, leave_out=True)
    at = phi[audited]
    if kind in SPREADS:
        centre = per_sample.mean(phi, mask, leave_out=True)
        spread = per_sample.spread(phi, mask, kind=SPREADS[kind], leave_out=True)
        return density.gaussian(at, centre[audited], spread[audited])
    count, width = _count_and_bandwidth(phi, mask, bandwidth, leave_out=True)
    return _kde(phi, mask, at, np.broadcast_to(width, phi.shape)[audited], count[audited], audited)


def _count_and_bandwidth(
    phi: np.ndarray, mask: np.ndarray, rule: Bandwidth, *, leave_out: bool
) -> tuple[np.ndarray, np.ndarray | float]:
    """Return the number of models and the bandwidth of each sample, [1, samples] or with ``leave_out`` [models,
    samples]."""
    squares, count = per_sample.squares(phi, mask, leave_out=leave_out)
    if rule != "silverman":
        return count, float(rule)
    spread = np.sqrt(squares / (count - 1))
    return count, np.maximum((4 / (3 * count)) ** 0.2 * spread, density.SMALLEST_SPREAD)


def _kde(
    phi: np.ndarray,
    mask: np.ndarray,
    at: np.ndarray,
    width: np.ndarray,
    count: np.ndarray,
    excluded: np.ndarray | None,
) -> np.ndarray:
    """Return the log kernel density of reference models' phi at ``at``, float64 [evaluated models, samples].

    ``phi`` float64 and ``mask`` bool [reference models, samples]; ``width`` and ``count``: bandwidth and number of
    models, of the shape of ``at``. If ``excluded`` int [evaluated models] is given, row k leaves out the reference
    model ``excluded``[k].
    """
    points = np.where(mask, phi, np.inf)
    result = np.empty(at.shape)
    columns = max(1, CHUNK // len(phi))
    for start in range(0, at.shape[1], columns):
        block = slice(start, start + columns)
        chunk = points[:, block].copy()
        for k in range(len(at)):
            if excluded is not None:
                column = chunk[excluded[k]].copy()
                chunk[excluded[k]] = np.inf
            result[k, block] = _kernels(chunk, at[k, block], width[k, block], count[k, block])
            if excluded is not None:
                chunk[excluded[k]] = column
    return result


def _kernels(points: np.ndarray, at: np.ndarray, width: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return the log of the mean Gaussian kernel of ``points`` [models, samples] (inf: absent) at ``at`` [samples]."""
    exponent = -0.5 * ((at - points) / width) ** 2
    largest = exponent.max(axis=0)
    total = np.log(np.exp(exponent - largest).sum(axis=0))
    density: np.ndarray = largest + total - np.log(count * width) - 0.5 * np.log(2 * np.pi)
    return density


def clip(phi: np.ndarray, probability: float | None) -> np.ndarray:
    """Return phi of the label probability cut to [probability, 1 − probability]; unchanged for None.

    The published code of RULI cuts at 1e-6, so its phi lies within ±13.8 and confident models tie there.
    """
    if probability is None:
        return phi
    # log of the clipped p_y minus log of Σ_{c≠y} p_c, which is cut from below only
    log_own = np.clip(-np.logaddexp(0, -phi), np.log(probability), np.log1p(-probability))
    log_rest = np.maximum(-np.logaddexp(0, phi), np.log(probability))
    ratio: np.ndarray = log_own - log_rest
    return ratio
