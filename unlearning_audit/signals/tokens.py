"""Of every scored token of a sample log p, mean and standard deviation of log p under the model's own prediction, and
its rank from 0: float32 [models, samples, most, 4] in the order of `unlearning_audit.evaluation.reference.LOGP` and so
on, NaN after a sample's last one."""

from typing import Any

import numpy as np

from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.training.lazy import Bank

OF_TEXTS = True


def read(bank: Bank, member: Membership, rows: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
    """Raises ValueError for models that predict no tokens."""
    from unlearning_audit.training import tokens

    return tokens.readings(bank, rows)
