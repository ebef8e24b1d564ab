"""Update: what unlearning changed, from both models, before and after (Chen et al. 2021; Salem et al. 2020).

The model before unlearning knows the forgotten samples. So the difference reveals them even if the model after
unlearning was retrained. To see how much of this is due to the method, compare with retrained models.
"""

import numpy as np

from unlearning_audit.attacks import Score, Shadow, signals, thresholds

NEEDS = "before"


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, before: np.ndarray) -> Score:
    """Return as the score φ before − φ after unlearning: by how much the confidence in the label fell. What makes a
    sample hard for the model both before and after unlearning cancels in the difference.

    The decision is whether the score is at least the threshold of the class, at which ½(TPR + TNR) is largest on the
    shadow models' samples of this class, or on all if the class has no members or no non-members. Without shadow
    models, it is whether the score exceeds 0.

    Raises ValueError if logits and labels do not fit each other, if shadow models have other classes than the
    audited models, or if they have no members or no non-members.

    Parameters
    ----------
    logits
        float [models, samples, classes]: logits of the audited models.
    y
        int [samples] or [models, samples]: labels.
    shadow
        Logits, labels and ``before`` of models with known members, on which the attack learns, if there are any.
    before
        float64 [models, samples]: φ of the audited models before unlearning.
    """
    fall = before - signals.per_model(signals.phi, logits, y)
    if "before" not in shadow.signals:
        return fall, fall > 0
    shadow_fall = shadow.before - signals.per_model(signals.phi, shadow.logits, shadow.y)
    return thresholds.learned(fall, shadow_fall, logits, y, shadow)
