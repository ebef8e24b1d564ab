"""Attacks: logits and membership in, one score and one decision per (model, sample) out.

``PROBABILITY = True`` in an attack's file says that its score is the probability of membership.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Reference:
    """Models whose membership the adversary knows, because it trained them on its own half of the data.

    ``logits`` float32 [models, samples, classes]; ``y`` int64 [samples] or [models, samples], the observed
    labels; ``member`` and ``nonmember`` bool [models, samples], the rows that the adversary may learn from.
    """

    logits: np.ndarray
    y: np.ndarray
    member: np.ndarray
    nonmember: np.ndarray
