"""The confidence p_y in the observed label against a threshold per class (Song & Mittal 2021)."""

import numpy as np

from unlearning_audit.attacks import NoOptions as Options
from unlearning_audit.attacks import Score, Shadow, signals, thresholds

#: Tables that do not name an attack show this one.
CLASSICAL = True


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, options: Options, rng: np.random.Generator) -> Score:
    """Return φ = log p_y/(1 − p_y) as the score; it grows with p_y, so thresholds, decisions and the ROC curve are
    those of p_y.

    The score is not p_y itself, which rounds to 1 for the most confident samples and would tie them.
    """
    return thresholds.score(signals.phi, logits, y, shadow)
