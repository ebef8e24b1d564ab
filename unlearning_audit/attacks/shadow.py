"""A classifier of membership, trained on the outputs of shadow models (Shokri et al. 2017)."""

import numpy as np

from unlearning_audit.attacks import NoOptions as Options
from unlearning_audit.attacks import Score, Shadow, signals
from unlearning_audit.evaluation import logistic

BOUND = 20.0
"""Log-probabilities below −20 and |phi| above 20 say the same thing: certain; unclipped they would be leverage."""


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, options: Options, rng: np.random.Generator) -> Score:
    """Return as the score the log-odds of membership at equal priors, by a logistic regression on `features`; the
    decision is whether it exceeds 0.

    Members and non-members weigh the same in the fit.
    """
    return logistic.score(features, logits, y, shadow)


def features(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the inputs of the classifier, float64 [n, 2·classes + 1].

    Each row holds the log-probabilities from the largest to the smallest and phi, all cut at ``BOUND``, then the label,
    one-hot.
    """
    log_p = -np.sort(-np.maximum(signals.log_probabilities(logits), -BOUND), axis=1)
    phi = np.clip(signals.phi(logits, y), -BOUND, BOUND)
    return np.column_stack([log_p, phi, np.eye(logits.shape[1])[y]])
