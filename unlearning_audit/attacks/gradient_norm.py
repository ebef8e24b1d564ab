"""The norm of a sample's gradient in all weights: a white-box attack (Nasr et al. 2019; Rezaei & Liu 2021).

Training brings members close to a minimum of the loss, where their gradients are small.
"""

from dataclasses import replace

import numpy as np

from unlearning_audit import stats
from unlearning_audit.attacks import Score, Shadow, signals, thresholds

NEEDS = "squared_norms"

SMALLEST = np.finfo(np.float64).tiny


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, squared_norms: np.ndarray) -> Score:
    """Return as the score minus the log of the norm of a sample's gradient of log p_y in the weights: members usually
    have small norms. If members of the shadow models have the larger norms (AUC below ½), as unlearning by gradient
    ascent leaves them, the score is its negative. The decision is whether the score is at least the threshold of the
    class, at which ½(TPR + TNR) is largest on the shadow models' samples of this class, or on all if the class has no
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
        Logits, labels and squared gradient norms of models with known members, on which the attack learns.
    squared_norms
        float64 [models, samples]: the squared norm of each sample's gradient by the audited models.
    """
    examples = signals.known_values(smallness(shadow.squared_norms), shadow, classes=logits.shape[-1])
    value = smallness(squared_norms)
    if stats.auc(score=examples.value, positive=examples.member).value < 0.5:  # members have the larger norms
        examples, value = replace(examples, value=-examples.value), -value
    return value, thresholds.decide(value, examples, logits, y)


def smallness(squared_norms: np.ndarray) -> np.ndarray:
    """Return minus the log of norms, from ``squared_norms``, float64 of their shape. A squared norm below `SMALLEST`
    counts as that, which gives the largest value, 354."""
    return np.asarray(-0.5 * np.log(np.maximum(squared_norms, SMALLEST)))
