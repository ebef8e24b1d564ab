"""Control: random scores and decisions; an attack must exceed the spread of these."""

import numpy as np

from unlearning_audit.attacks import Score

#: The attack does not learn from shadow models.
LEARNS = False


def score(logits: np.ndarray, rng: np.random.Generator) -> Score:
    """Return random scores, uniform on [0, 1), and as decisions whether they reach ½.

    Of ``logits`` float [models, samples, classes] only the numbers of models and samples are used.
    """
    value = rng.random(logits.shape[:2])
    return value, value >= 0.5
