"""What the adversary learns from: models that it trained itself, so that it knows their members."""

from dataclasses import dataclass

import numpy as np

#: What models can be asked for besides logits, of every sample: ‖∂ log p_y/∂θ‖², float64 [models, samples].
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
