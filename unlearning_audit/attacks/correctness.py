"""A sample that the model classifies correctly is called a member (Song & Mittal 2021; Yeom et al. 2018)."""

import numpy as np

from unlearning_audit.attacks import Score, signals

#: The attack does not learn from shadow models.
LEARNS = False


def score(logits: np.ndarray, y: np.ndarray) -> Score:
    """Return as the score 1.0 where the largest logit (of equal ones the first) is that of the label, else 0.0; the
    decision is whether it is 1.

    Raises ValueError if logits and labels do not fit each other.

    Parameters
    ----------
    logits
        float [models, samples, classes]: logits of the audited models.
    y
        int [samples] or [models, samples]: labels.
    """
    value = signals.per_model(correct, logits, y)
    return value, value > 0


def correct(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return whether the predicted class is ``y`` int [n], bool [n], from ``logits`` [n, classes]. Of equal largest
    logits the first class is predicted, as for accuracy."""
    return np.asarray(logits.argmax(axis=1) == y)
