"""What goes into the last layer of models, on a bounded number of samples: a record that metrics read."""

from typing import Any

import numpy as np

from unlearning_audit.evaluation import features
from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.evaluation.features import Features
from unlearning_audit.training.lazy import Bank

RECORD, ROLE = Features, "features"


def settings(kind: str) -> dict[str, Any]:
    """Rows are drawn, from every role some."""
    return {"rows": "drawn"}


def about(member: Membership, data: Data, settings: dict[str, Any]) -> np.ndarray:
    """int64 [models, rows]."""
    return features.sample_index(member)


def read(bank: Bank, member: Membership, rows: np.ndarray, settings: dict[str, Any]) -> Features:
    """The layer for each model's own ``rows``."""
    from unlearning_audit.training import features

    return Features(features.readings(bank, rows), rows)


def nothing(rows: np.ndarray, settings: dict[str, Any]) -> Features:
    """Of no model."""
    return Features(np.zeros((0, 0, 0), np.float32), rows)
