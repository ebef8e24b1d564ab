"""IAM: where a model lies between never having seen a sample and knowing it as before unlearning (Wang et al. 2025).

The gap between shadow models that never saw a sample and the model before unlearning is divided into even steps. The
more of these steps lie below the model after unlearning, the more of the sample it kept. A model below all of them was
over-unlearned.
"""

import numpy as np
from scipy import special

from unlearning_audit.attacks import Score, Shadow, signals, thresholds

NEEDS = ("before", "reference_logp")

#: The largest log p of a sample under models that never saw it; larger ones are cut.
SUREST = -1e-12
#: The number of values α from 0 to 1, by which the gap is divided into one step fewer.
ALPHAS = 100


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, before: np.ndarray, reference_logp: np.ndarray) -> Score:
    """Return 1 − `share_kept` as the score: a larger score says that a model lost more of what it knew of the sample.

    The decision is whether the score is at least the threshold of the class, at which ½(TPR + TNR) is largest on the
    shadow models' samples of this class, or on all if the class has no members or no non-members.

    Parameters
    ----------
    logits
        float [models, samples, classes]: logits of the audited models.
    y
        int [samples] or [models, samples]: labels.
    shadow
        Logits, labels, ``before`` and ``reference_logp`` of models with known members, on which the attack learns.
    before
        float64 [models, samples]: φ of the audited models before unlearning.
    reference_logp
        float64 [models, samples]: mean log p of the label under shadow models that never saw the sample, NaN if there
        is none.

    Raises
    ------
    ValueError
        For samples that all shadow models saw, if logits and labels do not fit each other, if the shadow models have
        other classes than the audited models, or if they have no members or no non-members.
    """
    if np.isnan(reference_logp).any():
        raise ValueError(f"{int(np.isnan(reference_logp).any(axis=0).sum())} samples were seen by every shadow model")
    value = 1 - share_kept(signals.per_model(signals.phi, logits, y), before, reference_logp)
    shadow_after = signals.per_model(signals.phi, shadow.logits, shadow.y)
    shadow_value = 1 - share_kept(shadow_after, shadow.before, shadow.reference_logp)
    return thresholds.learned(value, shadow_value, logits, y, shadow)


def share_kept(after: np.ndarray, before: np.ndarray, unseen_logp: np.ndarray, count: int = ALPHAS) -> np.ndarray:
    """Return how much of each sample a model kept, float64 [models, samples] from 0 to 1; NaN where ``unseen_logp`` is
    NaN.

    Centres are taken at evenly spaced values α, ``count`` in all, from the φ of ``unseen_logp`` (α = 0) to ``before``
    (α = 1, at which no centre is taken). At each, the normal distribution function says how far ``after`` lies above
    the centre, in standard deviations of the centre over the samples of a model (in units of 1 if that is 0). The
    result is the weighted mean of these values, where the weight of a centre is the next value of α.

    The published code (iam_score.py) takes its "fixed variance" of the mean signal over shadow models and samples
    together. By default that code uses a Gumbel distribution of −log(.01 − log(p + 1e-5)). This function equals the
    variant ``p_IPapprox_carlogi_simp`` of that code only with one shadow model.

    Parameters
    ----------
    after, before
        The logit-scaled confidence φ of the same models after and before unlearning, float64 [models, samples].
    unseen_logp
        The mean log p of models that never saw the sample.
    count
        How many values α has, 0 and 1 included.
    """
    logp = np.minimum(unseen_logp, SUREST)
    unseen = logp - np.log(-np.expm1(logp))  # φ = log p − log(1 − p)
    alphas = np.linspace(0.0, 1.0, count)
    kept = np.zeros(after.shape)
    for alpha, weight in zip(alphas[:-1], alphas[1:] / alphas[1:].sum(), strict=True):
        centre = unseen + alpha * (before - unseen)
        spread = np.nanstd(centre, axis=1, keepdims=True)
        kept += weight * special.ndtr((after - centre) / np.where(spread > 0, spread, 1.0))
    return kept
