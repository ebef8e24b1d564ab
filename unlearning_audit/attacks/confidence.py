"""The confidence p_y in the observed label against a threshold per class (Song & Mittal 2021)."""

import numpy as np

from unlearning_audit.attacks import Score, Shadow, signals, thresholds

#: Tables that do not name an attack show this one.
CLASSICAL = True


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow) -> Score:
    """Return φ = log p_y/(1 − p_y) as the score, p_y the probability of the label. The decision is whether the score is
    at least the threshold of the class, at which ½(TPR + TNR) is largest on the shadow models' samples of this class,
    or on all of their samples if the class has no members or no non-members.

    φ grows with p_y, so thresholds, decisions and the ROC curve are those of p_y. The score is not p_y itself, which
    rounds to 1 for the most confident samples and would tie them.

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
    return thresholds.score(signals.phi, logits, y, shadow)
