"""Answers of models while they relearn a part of what they forgot, and after their weights are rounded."""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from unlearning_audit.evaluation.stored import Stored


@dataclass(frozen=True)
class Relearned(Stored):
    """``signals.npz``: answers of models after some numbers of steps of relearning, and with rounded weights.

    Parameters
    ----------
    steps
        int64 [points]: the numbers of steps of relearning, the first of them 0.
    phi
        float32 [models, points, rows]: φ = log(p/(1 − p)) of the label that a model was trained with.
    right
        bool [models, points, rows]: whether the model predicts that label.
    taught
        bool [models, rows]: the samples that a model relearned.
    index
        int64 [rows]: the sample of each row in the data. Models are the defender's, in the order of the memberships.
    bits
        int64 [bits]: the numbers of bits to which weights were rounded, before the models relearn anything. Empty if a
        study does not evaluate rounded models.
    phi_rounded
        float32 [models, bits, rows]: φ of the rounded models.
    right_rounded
        bool [models, bits, rows]: whether the rounded models predict the label.
    """

    SHARED = ("steps", "index", "bits")

    steps: Annotated[np.ndarray, "iu points"]
    phi: Annotated[np.ndarray, "f models points rows"]
    right: Annotated[np.ndarray, "b models points rows"]
    taught: Annotated[np.ndarray, "b models rows"]
    index: Annotated[np.ndarray, "iu rows"]
    bits: Annotated[np.ndarray, "iu bits"] = field(default_factory=lambda: np.zeros(0, np.int64))
    # The axes m and n are those of models and of rows, and 0 long without bits.
    phi_rounded: Annotated[np.ndarray, "f m bits n"] = field(default_factory=lambda: np.zeros((0, 0, 0), np.float32))
    right_rounded: Annotated[np.ndarray, "b m bits n"] = field(default_factory=lambda: np.zeros((0, 0, 0), bool))

    @classmethod
    def empty(cls, steps: np.ndarray, index: np.ndarray, bits: np.ndarray) -> "Relearned":
        """Return the record of a batch without a defender's model, such as one of shadow models alone.

        Parameters
        ----------
        steps
            int64 [points]: the numbers of steps of relearning.
        index
            int64 [rows]: the sample of each row in the data.
        bits
            int64 [bits]: the numbers of bits to which weights were rounded.
        """
        curves = (0, len(steps), len(index))
        rounded = (0, len(bits), len(index)) if len(bits) else (0, 0, 0)
        return cls(
            steps=steps, phi=np.zeros(curves, np.float32), right=np.zeros(curves, bool), index=index, bits=bits,
            taught=np.zeros((0, len(index)), bool),
            phi_rounded=np.zeros(rounded, np.float32), right_rounded=np.zeros(rounded, bool),
        )  # fmt: skip
