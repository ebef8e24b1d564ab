"""A classifier of membership, trained on the outputs of shadow models (Shokri et al. 2017)."""

import numpy as np

from unlearning_audit.attacks import Score, Shadow, signals
from unlearning_audit.evaluation import logistic

#: Log-probabilities are cut at −20, and phi at −20 and 20: beyond, a model is certain, and larger values would only
#: pull the fit towards a few samples.
BOUND = 20.0


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow) -> Score:
    """Return as the score the log-odds of membership at equal priors, by a logistic regression on a sample's sorted
    log-probabilities, φ and label (`features`); the decision is whether the score exceeds 0.

    Members and non-members weigh the same in the fit.

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
    return logistic.score(features, logits, y, shadow)


def features(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the inputs of the classifier, float64 [n, 2·classes + 1], from ``logits`` [n, classes] and labels ``y``
    int [n].

    Each row holds the log-probabilities from the largest to the smallest, cut below at −`BOUND`, then phi, cut at
    ±`BOUND`, then the label, one-hot.
    """
    log_p = -np.sort(-np.maximum(signals.log_probabilities(logits), -BOUND), axis=1)  # largest first
    phi = np.clip(signals.phi(logits, y), -BOUND, BOUND)
    return np.column_stack([log_p, phi, np.eye(logits.shape[1])[y]])
