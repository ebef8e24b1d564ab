"""What language models say by themselves on samples that they are asked about: a record that metrics read."""

from typing import Any

import numpy as np

from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.evaluation.generations import Generations, queried
from unlearning_audit.training.lazy import Bank

RECORD, ROLE, OF_TEXTS = Generations, "generated", True


def about(member: Membership, data: Data, settings: dict[str, Any]) -> np.ndarray:
    """int64 [models, rows]."""
    return queried(member, data.part, settings["most"])


def read(bank: Bank, member: Membership, rows: np.ndarray, settings: dict[str, Any]) -> Generations:
    """The likeliest token, one after the other."""
    from unlearning_audit.training import generation

    return Generations(generation.greedy(bank, rows), rows)


def nothing(rows: np.ndarray, settings: dict[str, Any]) -> Generations:
    """Of no model."""
    return Generations.empty()
