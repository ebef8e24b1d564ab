"""Reference: the loss of a model minus that of models that never saw the sample (Watson et al. 2022, "On the importance
of difficulty calibration in membership inference attacks"; for language models Mireshghallah et al. 2022)."""

import numpy as np
from numpy.random import Generator

from unlearning_audit.evaluation import signals
from unlearning_audit.evaluation import tokens as of_tokens
from unlearning_audit.evaluation.reference import Reference, Score
from unlearning_audit.plugins.settings import Settings

NEEDS = "reference_logp"


class Options(Settings):
    """Nothing to choose."""


def score(
    logits: np.ndarray,
    y: np.ndarray,
    reference: Reference,
    options: Options,
    rng: Generator,
    reference_logp: np.ndarray,
) -> Score:
    """Score: log p of the label, of a language model the mean over scored tokens, minus the mean of it over the
    adversary's models that never saw the sample; decision: at or above the threshold learned on the reference.
    Raises ValueError where no sample that a shadow model never saw was missed by another one too."""
    if reference.member.any() and not reference.nonmember.any():
        raise ValueError(
            "reference.nonmember is empty: what one shadow model never saw, all others did; "
            "set shadow_models_per_split: 2"
        )
    value = calibrated(logits, y, reference_logp)
    reference_value = calibrated(reference.logits, reference.y, reference.reference_logp)
    return of_tokens.thresholded(value, reference_value, logits, y, reference)


def calibrated(logits: np.ndarray, y: np.ndarray, reference_logp: np.ndarray) -> np.ndarray:
    """log p − log p of the reference models, float64 [models, samples]; ``reference_logp`` a signal."""
    difference: np.ndarray = signals.per_model(signals.label_logp, logits, y) - reference_logp
    return difference
