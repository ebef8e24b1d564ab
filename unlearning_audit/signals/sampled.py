"""Several answers of language models to a sample, drawn from their predicted probabilities: a record that metrics
read."""

from typing import Any

import numpy as np

from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.generations import Sampled
from unlearning_audit.signals.generations import about as about
from unlearning_audit.training.lazy import Bank

RECORD, ROLE, OF_TEXTS = Sampled, "sampled", True


def read(bank: Bank, member: Membership, rows: np.ndarray, settings: dict[str, Any]) -> Sampled:
    """Draw ``settings["answers"]`` answers of each model to each of its ``rows``."""
    from unlearning_audit.training import generation

    return Sampled(generation.sampled(bank, rows, settings["answers"]), rows)


def nothing(rows: np.ndarray, settings: dict[str, Any]) -> Sampled:
    """Return a record without models."""
    return Sampled.empty()
