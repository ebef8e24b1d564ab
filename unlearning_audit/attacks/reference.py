"""Reference: the loss of a model minus that of models that never saw the sample (Watson et al. 2022).

The paper is "On the importance of difficulty calibration in membership inference attacks"; for language models see
Mireshghallah et al. 2022.
"""

import numpy as np

from unlearning_audit.attacks import Score, Shadow, signals, thresholds

NEEDS = "reference_logp"


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, reference_logp: np.ndarray) -> Score:
    """Return as the score log p of the label minus its mean over the adversary's models that never saw the sample. The
    decision is whether the score is at least the threshold, one for all classes, at which ½(TPR + TNR) is largest on
    the shadow models.

    For a language model, log p is the mean over scored tokens. Raises ValueError if no sample was left unseen by two
    shadow models: the mean for one shadow model is taken over other shadow models. Raises ValueError too if logits and
    labels do not fit each other, if the shadow models have other classes than the audited models, or if they have no
    members.

    Parameters
    ----------
    logits
        float [models, samples, classes]: logits of the audited models.
    y
        int [samples] or [models, samples]: labels.
    shadow
        Logits, labels and ``reference_logp`` of models with known members, on which the attack learns.
    reference_logp
        float64 [models, samples]: the mean that is subtracted for each audited model. Where it is NaN, so is the score,
        and the decision is False.
    """
    if shadow.member.any() and not shadow.nonmember.any():
        raise ValueError(
            "shadow.nonmember is empty: what one shadow model never saw, all others did; set shadow_models_per_split: 2"
        )
    value = calibrated(logits, y, reference_logp)
    shadow_value = calibrated(shadow.logits, shadow.y, shadow.reference_logp)
    return thresholds.learned(value, shadow_value, logits, y, shadow, per_class=False)


def calibrated(logits: np.ndarray, y: np.ndarray, reference_logp: np.ndarray) -> np.ndarray:
    """Return log p of the label minus ``reference_logp``, float64 [models, samples], its mean over models that never
    saw the sample. ``logits`` [models, samples, classes]; ``y`` [samples] or [models, samples]."""
    return np.asarray(signals.per_model(signals.label_logp, logits, y) - reference_logp)
