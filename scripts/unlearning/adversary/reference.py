"""What the adversary learns from: shadow models that it trained itself, with known members."""

from dataclasses import dataclass

import numpy as np

#: Signals besides logits that attacks may need: ‖∂ log p_y/∂θ‖² of every sample, float64 [models, samples].
SIGNALS = ("squared_norms",)


@dataclass(frozen=True)
class Reference:
    """Models whose membership the adversary knows, because it trained them on its own half of the data.

    ``logits`` float32 [models, samples, classes]; ``y`` int64 [samples] or [models, samples], the observed
    labels; ``member`` and ``nonmember`` bool [models, samples], the rows that the adversary may learn from;
    ``squared_norms`` float64 [models, samples] or None, for attacks that need them.
    """

    logits: np.ndarray
    y: np.ndarray
    member: np.ndarray
    nonmember: np.ndarray
    squared_norms: np.ndarray | None = None
