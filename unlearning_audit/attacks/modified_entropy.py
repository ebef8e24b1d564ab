"""The entropy modified to depend on the label, against a threshold per class (Song & Mittal 2021)."""

import numpy as np

from unlearning_audit.attacks import Score, Shadow, signals, thresholds


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow) -> Score:
    """Return minus the modified entropy in nats as the score: 0 for a confident correct prediction, without lower bound
    for a confident wrong one. The decision is whether the score is at least the threshold of the class: that at which
    ½(TPR + TNR) is largest on the shadow models' samples of this class, or on all of their samples if the class has no
    members or no non-members.

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
    return thresholds.score(lambda z, label: -modified_entropy(z, label), logits, y, shadow)


def modified_entropy(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the modified entropy −(1 − p_y) log p_y − Σ_{c≠y} p_c log(1 − p_c) of predictions p with the true class
    ``y`` int [n], float64 [n], from ``logits`` [n, classes]. The result is finite where p rounds to 0 or 1."""
    log_p, log_q = signals.log_probabilities(logits), signals.log_complements(logits)  # log p and log(1 − p)
    terms = np.exp(log_p) * log_q  # of all classes; that of the true class is replaced below
    true_class = np.exp(signals.of_label(log_q, y)) * signals.of_label(log_p, y)
    np.put_along_axis(terms, y[:, None], true_class[:, None], axis=1)
    return np.asarray(-terms.sum(axis=1))
