"""Control: random scores and decisions; an attack must exceed the spread of these."""

import numpy as np

from unlearning_audit.attacks import NoOptions as Options
from unlearning_audit.attacks import Score, Shadow

#: The attack does not learn from shadow models.
LEARNS = False


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, options: Options, rng: np.random.Generator) -> Score:
    """Return random scores, uniform on [0, 1), and as decisions whether they reach ½.

    ``logits`` float [models, samples, classes] say of how many models and samples; nothing else is used.
    """
    value = rng.random(logits.shape[:2])
    return value, value >= 0.5
