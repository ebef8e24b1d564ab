"""Control: random scores and decisions; an attack must exceed the spread of these."""

import numpy as np

from unlearning_audit.plugins.settings import Settings

#: It learns from no shadow models.
LEARNS = False


class Options(Settings):
    """No options."""


def score(logits, y, reference, options, rng: np.random.Generator):
    """Uniform scores on [0, 1) and the decision score ≥ ½."""
    value = rng.random(logits.shape[:2])
    return value, value >= 0.5
