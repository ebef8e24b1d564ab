"""The likelihood-ratio attack with Gaussians of phi for every sample (Carlini et al. 2022).

Column j of the shadow models' logits is the same sample as column j of the audited logits. ``shadow.member[m, j]`` says
whether shadow model m is "in" for it: trained on it, or trained on it and made to forget it. ``nonmember[m, j]`` says
whether the model is "out". An audited model is never one of its own shadow models.
"""

from statistics import NormalDist
from typing import Literal

import numpy as np
from pydantic import Field

from unlearning_audit.attacks import Score, Settings, Shadow, density, per_sample, signals

NEEDS = "same_samples"


class Options(Settings):
    """Shadow models that were trained on a sample are "in", those that were not are "out". ``mode``: ``online``
    compares in with out; ``offline`` tests against out alone, one-sided as in the paper, and ``offline_density`` takes
    how unlikely phi is under out, whether high or low, as TensorFlow Privacy and LeakPro do; ``spread`` of the
    Gaussians: of each sample, pooled ``within`` samples, or ``global`` over all values (the published "fixed
    variance"), for in and for out separately; ``minimum``: how many in models, and out models, a sample needs;
    ``false_positive_rate``: the level of the offline decision.
    """

    mode: Literal["online", "offline", "offline_density"] = "online"
    spread: Literal["per_sample", "within", "global"] = "per_sample"
    minimum: int = Field(default=2, ge=1)
    false_positive_rate: float = Field(default=0.05, gt=0, lt=1)


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, options: Options) -> Score:
    """Return as the score, float64 [models, samples]: online the log-likelihood ratio of φ under the normal
    distributions of shadow models that were trained on the sample (in) and of those that were not (out); offline the
    z-value of φ under out; for offline_density minus the log-density under out.

    The decision online is whether the ratio exceeds 0. Offline it is a test at ``false_positive_rate``: one-sided of
    the z-value, two-sided for the density. Raises ValueError for samples with fewer than ``minimum`` out models or,
    online, in models, for shadow models of other samples or classes, and for an audited model that is also a shadow
    model.

    Parameters
    ----------
    logits
        float [models, samples, classes]: logits of the audited models.
    y
        int [samples] or [models, samples]: labels.
    shadow
        Logits and labels of models with known members, on which the attack learns.
    """
    signals.same_samples(logits, y, shadow)
    phi = signals.per_model(signals.phi, logits, y)
    shadow_phi = signals.per_model(signals.phi, shadow.logits, shadow.y)
    per_sample.require_models(shadow.nonmember, minimum=options.minimum, side="non-member")
    centre, spread = _gaussian(shadow_phi, shadow.nonmember, options)
    if options.mode == "online":
        per_sample.require_models(shadow.member, minimum=options.minimum, side="member")
        log_p_in = density.gaussian(phi, *_gaussian(shadow_phi, shadow.member, options))
        value = log_p_in - density.gaussian(phi, centre, spread)
        return value, value > 0
    # The paper's one-sided score is Φ of this z-value (1 minus the p-value), which rounds to 1 beyond 8.
    z = (phi - centre) / np.maximum(spread, density.SMALLEST_SPREAD)
    if options.mode == "offline":
        return z, z > NormalDist().inv_cdf(1.0 - options.false_positive_rate)
    limit = NormalDist().inv_cdf(1.0 - options.false_positive_rate / 2)
    return -density.gaussian(phi, centre, spread), np.abs(z) > limit


def _gaussian(phi: np.ndarray, mask: np.ndarray, options: Options) -> tuple[np.ndarray, np.ndarray]:
    """Return the median, float64 [1, samples], and the spread of each sample's φ over the shadow models for which
    ``mask`` is True: by ``options.spread``, each sample's own, [1, samples], or one for all, [1, 1].

    Parameters
    ----------
    phi, mask
        float64 and bool [shadow models, samples].
    """
    return per_sample.median(phi, mask), per_sample.spread(phi, mask, kind=options.spread)
