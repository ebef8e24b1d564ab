"""Control: random scores and decisions; an attack must exceed the spread of these."""

import numpy as np

from unlearning_audit.attacks import NoOptions as Options
from unlearning_audit.attacks import Score, Shadow

#: The attack does not learn from shadow models.
LEARNS = False


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, options: Options, rng: np.random.Generator) -> Score:
    """Return random scores, uniform on [0, 1), and as decisions whether they reach ½.

    Of ``logits`` float [models, samples, classes] only the numbers of models and samples are used, and no other
    argument but the generator ``rng``.
    """
    value = rng.random(logits.shape[:2])
    return value, value >= 0.5
