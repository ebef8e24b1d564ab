"""Neighbour classes: how a model distributes the probability that the label does not get among the other classes.

Where a whole class is forgotten, its samples go to the classes that look most like it. The model's confidence in the
label alone does not show whether it can still distinguish them (Ebrahimpour-Boroojeny et al. 2026).
"""

import numpy as np

from unlearning_audit.attacks import Score, Shadow, signals
from unlearning_audit.evaluation import logistic


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow) -> Score:
    """Return as the score the log-odds of membership at equal priors, by one logistic regression for each class, on φ
    and on how the rest of the probability is divided among the other classes (`features`); the decision is whether the
    score exceeds 0.

    A class of which shadow models have no members or no non-members is judged by a regression on φ alone, fitted to all
    classes. Raises ValueError if logits and labels do not fit each other, if the shadow models have other classes than
    the audited models, or if they have no members or no non-members.

    Parameters
    ----------
    logits
        float [models, samples, classes]: logits of the audited models.
    y
        int [samples] or [models, samples]: labels.
    shadow
        Logits and labels of models with known members, on which the attack learns.
    """
    rows = signals.statistics(features, shadow, classes=logits.shape[-1])
    of_all = logistic.fit(rows.value[:, :1], rows.member)  # column 0 of the features is φ
    of_class = {}
    for label in np.unique(rows.label):
        of_label = rows.label == label
        if rows.member[of_label].any() and not rows.member[of_label].all():
            of_class[label] = logistic.fit(rows.value[of_label], rows.member[of_label])

    def log_odds(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the log-odds of membership of one model's samples, float64 [samples]: by the regression of each
        sample's class in ``of_class`` or, for a class without one, by ``of_all``."""
        x = features(logits, y)
        value = of_all.log_odds(x[:, :1])
        for label, regression in of_class.items():
            value[y == label] = regression.log_odds(x[y == label])
        return value

    value = signals.per_model(log_odds, logits, y)
    return value, value > 0


def features(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return φ of the label, then log p_c/(1 − p_y) of every class c, 0 at the label itself: float64 [rows, 1 +
    classes].

    With two classes, the other class has all the rest, so its value is exactly 0.

    Parameters
    ----------
    logits, y
        float [rows, classes] and int [rows]: the logits and labels of some samples.
    """
    # A softmax without the label, whose logit is −∞; the largest logit is subtracted first, so that no exponential
    # overflows.
    log_share = logits.astype(np.float64)
    np.put_along_axis(log_share, y[:, None], -np.inf, axis=1)
    log_share -= log_share.max(axis=1, keepdims=True)
    log_share -= np.log(np.exp(log_share).sum(axis=1, keepdims=True))
    np.put_along_axis(log_share, y[:, None], 0.0, axis=1)
    return np.column_stack([signals.phi(logits, y), log_share])
