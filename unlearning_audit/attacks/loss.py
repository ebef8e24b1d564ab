"""A logistic regression on the cross-entropy: the attack of the unlearning challenge's starting kit."""

import numpy as np

from unlearning_audit.attacks import Score, Shadow, signals
from unlearning_audit.evaluation import logistic
from unlearning_audit.evaluation.shadow import LOGP


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow) -> Score:
    """Return as the score the log-odds of membership at equal priors, by a logistic regression on the cross-entropy of
    the shadow models' samples, in which members and non-members weigh the same; the decision is whether the score
    exceeds 0.

    The starting kit of the NeurIPS 2023 unlearning challenge fits a logistic regression on the cross-entropy within one
    model, on some of its forget and test samples.

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
    return logistic.score(lambda z, label: cross_entropy(z, label)[:, None], logits, y, shadow)


def text_score(tokens: np.ndarray, compressed: np.ndarray | None) -> np.ndarray:
    """Return the mean log p of the scored tokens of each text, float64 [...]; NaN for a text without any.

    Parameters
    ----------
    tokens
        float64 [..., tokens, 4]: four numbers of each token, log p first; NaN after a text's last token.
    compressed
        Not used; other attacks read it.
    """
    return np.asarray(np.nanmean(tokens[..., LOGP], axis=-1))


def cross_entropy(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return −log p_y in nats, float64 [n], from ``logits`` [n, classes] and labels ``y`` [n]. The result is not
    clipped, so it keeps growing where p_y rounds to 0."""
    return -signals.label_logp(logits, y)
