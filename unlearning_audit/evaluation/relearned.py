"""Answers of models while they relearn a part of what they forgot, and after their weights are rounded."""

from dataclasses import dataclass, field
from typing import ClassVar

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
    FIELDS: ClassVar = {
        "steps": ("iu", "points"), "phi": ("f", "models points rows"), "right": ("b", "models points rows"),
        "taught": ("b", "models rows"), "index": ("iu", "rows"), "bits": ("iu", "bits"),
        "phi_rounded": ("f", "rounded bits answers"), "right_rounded": ("b", "rounded bits answers"),
    }  # fmt: skip

    steps: np.ndarray
    phi: np.ndarray
    right: np.ndarray
    taught: np.ndarray
    index: np.ndarray
    bits: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    phi_rounded: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0), np.float32))
    right_rounded: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0), bool))

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
