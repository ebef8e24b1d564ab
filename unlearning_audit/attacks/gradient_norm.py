"""The norm of a sample's gradient in all weights: a white-box attack (Nasr et al. 2019; Rezaei & Liu 2021).

Training brings members close to a minimum of the loss, where their gradients are small.
"""

from dataclasses import replace

import numpy as np
from numpy.random import Generator

from unlearning_audit import stats
from unlearning_audit.attacks import NoOptions as Options
from unlearning_audit.attacks import Score, Shadow, signals, thresholds

NEEDS = "squared_norms"

SMALLEST = np.finfo(np.float64).tiny


def score(
    logits: np.ndarray, y: np.ndarray, shadow: Shadow, options: Options, rng: Generator, squared_norms: np.ndarray
) -> Score:
    """Return as the score −log ‖∂ log p_y/∂θ‖, or its negative where members of the shadow models have the larger norms
    (unlearning by gradient ascent leaves them there). The decision is whether it reaches the threshold of the class,
    learned on the shadow models.

    ``squared_norms`` float64 [models, samples] is the signal of the audited models. Raises ValueError if the shadow
    models have other classes than the audited models, or if logits and labels do not fit each other.

    ``logits`` float [models, samples, classes] and labels ``y`` int are those of the audited models; ``shadow`` holds
    logits and labels of models with known members.
    """
    examples = signals.known_values(smallness(shadow.squared_norms), shadow, classes=logits.shape[-1])
    value = smallness(squared_norms)
    if stats.auc(score=examples.value, positive=examples.member).value < 0.5:  # members have the larger norms
        examples, value = replace(examples, value=-examples.value), -value
    return value, thresholds.decide(value, examples, logits, y)


def smallness(squared_norms: np.ndarray) -> np.ndarray:
    """Return −log of the norm from ``squared_norms``, float64 of their shape; 354, the largest value, where the norm is
    0."""
    return np.asarray(-0.5 * np.log(np.maximum(squared_norms, SMALLEST)))
