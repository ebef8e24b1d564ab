"""The entropy of the prediction against a threshold per class (Song & Mittal 2021)."""

import numpy as np

from unlearning_audit.attacks import Score, Shadow, signals, thresholds


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow) -> Score:
    """Return as the score Σ_c p_c log p_c in nats, the negative entropy, which is higher for members. The decision is
    whether the score is at least the threshold of the class, at which ½(TPR + TNR) is largest on the shadow models'
    samples of this class, or on all of their samples if the class has no members or no non-members.

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
    return thresholds.score(negative_entropy, logits, y, shadow)


def negative_entropy(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return Σ_c p_c log p_c, float64 [n], between −log(classes) and 0, from ``logits`` [n, classes]. The labels ``y``
    are not used."""
    log_p = signals.log_probabilities(logits)
    return np.asarray((np.exp(log_p) * log_p).sum(axis=1))
