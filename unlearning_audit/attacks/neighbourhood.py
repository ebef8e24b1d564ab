"""Neighbourhood: a text against others that differ from it in a few tokens (Mattern et al. 2023).

The option ``neighbours`` of the data says how many of these other texts are made.
"""

import numpy as np

from unlearning_audit.attacks import Score, Shadow, signals, thresholds

NEEDS = "neighbours"


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, neighbours: np.ndarray) -> Score:
    """Return as the score the mean log p of a text's scored tokens minus the average over its neighbours of their mean
    log p. The decision is whether the score is at least the threshold, one for all classes, at which ½(TPR + TNR) is
    largest on the shadow models.

    Raises ValueError if logits and labels do not fit each other, if the shadow models have other classes than the
    audited models, or if they have no members or no non-members.

    Parameters
    ----------
    logits
        float [models, samples, classes]: logits of the audited models.
    y
        int [samples] or [models, samples]: labels.
    shadow
        Logits, labels and ``neighbours`` of models with known members, on which the attack learns.
    neighbours
        float64 [models, samples, views]: the mean log p of each neighbour's tokens by the audited models, NaN where a
        sample has fewer neighbours.
    """
    value = above_neighbours(logits, y, neighbours)
    shadow_value = above_neighbours(shadow.logits, shadow.y, shadow.neighbours)
    return thresholds.learned(value, shadow_value, logits, y, shadow, per_class=False)


def above_neighbours(logits: np.ndarray, y: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """Return log p of each sample minus the mean log p of its neighbours, float64 [models, samples], from ``logits``
    [models, samples, classes] and labels ``y`` [samples] or [models, samples]. ``neighbours`` float64 [models, samples,
    views]: log p of the neighbours, NaN where a sample has fewer."""
    return np.asarray(signals.per_model(signals.label_logp, logits, y) - np.nanmean(neighbours, -1))
