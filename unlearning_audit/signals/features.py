"""Features: the input of the models' last layer, on a bounded number of samples: a record that metrics read."""

from typing import Any

import numpy as np

from unlearning_audit.evaluation import signal_files
from unlearning_audit.evaluation.signal_files import Features
from unlearning_audit.signals import Data, Membership, ModelStack

RECORD, ROLE = Features, "features"


def settings(kind: str) -> dict[str, Any]:
    """Return the settings of this signal, the same for attacks and metrics (``kind``): its rows are a random draw from
    the forgotten, held-out and retained samples."""
    return {"rows": "drawn"}


def about(member: Membership, data: Data, settings: dict[str, Any]) -> np.ndarray:
    """Return the samples to query for each model, a random draw from its forgotten, held-out and retained samples (at
    most 1000, 1000 and 2000): int64 [models, rows], filled with −1."""
    return signal_files.samples_for_features(member)


def read(stack: ModelStack, member: Membership, rows: np.ndarray, settings: dict[str, Any]) -> Features:
    """Return the input of the last layer of the models in ``stack``, each for its own ``rows`` int64 [models, rows],
    in which −1 stands for no sample."""
    from unlearning_audit.training import features

    return Features(features.readings(stack, rows), rows)


def without_models(rows: np.ndarray, settings: dict[str, Any]) -> Features:
    """Return the record of a batch that has only shadow models: no features, for the samples ``rows`` int64 [0, 0]. No
    setting is used."""
    return Features(np.zeros((0, 0, 0), np.float32), rows)
