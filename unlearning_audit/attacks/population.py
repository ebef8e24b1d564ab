"""One logistic regression on the pooled phi: the "average-case" attack that RULI is compared with (2025)."""

import numpy as np

from unlearning_audit.attacks import Score, Shadow, signals
from unlearning_audit.evaluation import logistic


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow) -> Score:
    """Return as the score the log-odds of membership at equal priors, by a logistic regression on φ of the shadow
    models' samples, in which members and non-members weigh the same; the decision is whether the score exceeds 0.

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
    return logistic.score(lambda z, label: signals.phi(z, label)[:, None], logits, y, shadow)
