"""Kernel densities of phi for members and non-members: RULI's test without per-sample models (2025)."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, PositiveFloat

from unlearning_audit.attacks import Score, Settings, Shadow, density, signals


class Options(Settings):
    """``bandwidth``: a rule or a number in units of phi (RULI's code: 1.0); ``clip``: the probability below which, and
    above whose complement, p_y is cut before phi is taken (RULI's code: 1e-6; None: not at all)."""

    bandwidth: Literal["silverman"] | PositiveFloat = "silverman"
    clip: Annotated[float, Field(gt=0, lt=0.5)] | None = None


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, options: Options) -> Score:
    """Return as the score log f(phi | member) − log f(phi | non-member) with kernel densities f; the decision is
    whether the score exceeds 0.

    Far from all values of the shadow models, the density with the larger bandwidth is the larger one, whether it is of
    members or of non-members: a known limit of kernel density estimates.

    Raises ValueError if logits and labels do not fit each other, if the shadow models have other classes than the
    audited models, or if they have no members or no non-members.

    Parameters
    ----------
    logits
        float [models, samples, classes]: logits of the audited models.
    y
        int [samples] or [models, samples]: labels.
    shadow
        Logits and labels of models with known members, on which the attack learns.
    """
    bound = np.inf if options.clip is None else np.log1p(-options.clip) - np.log(options.clip)

    def clipped_phi(z: np.ndarray, label: np.ndarray) -> np.ndarray:
        """Return φ, float64 [n], from logits ``z`` [n, classes], cut at ± ``bound``: φ of the largest probability that
        ``options.clip`` leaves."""
        return np.asarray(np.clip(signals.phi(z, label), -bound, bound))

    rows = signals.statistics(clipped_phi, shadow, classes=logits.shape[-1])
    phi = signals.per_model(clipped_phi, logits, y)
    value = np.zeros_like(phi)
    for learned, sign in ((rows.member, 1.0), (~rows.member, -1.0)):
        points = rows.value[learned]
        bandwidth = density.silverman(points) if options.bandwidth == "silverman" else options.bandwidth
        value += sign * density.kernel(points, phi, bandwidth=bandwidth)
    return value, value > 0
