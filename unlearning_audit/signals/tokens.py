"""Four numbers of every scored token of a sample: its log p, mean and standard deviation of log p under the model's
prediction, and its rank from 0.

float32 [models, samples, most, 4], in the order of the constants `unlearning_audit.evaluation.shadow.LOGP` and
following; NaN after a sample's last token.
"""

from typing import Any

import numpy as np

from unlearning_audit.signals import Membership, ModelStack

OF_TEXTS = True


def read(stack: ModelStack, member: Membership, rows: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
    """Return four numbers of each scored token of the samples ``rows`` int64 [rows] by the models in ``stack``: float32
    [models, rows, most, 4], NaN after a sample's last. They are log p, mean and standard deviation of log p under the
    model's prediction, and rank from 0. ``most``: the largest number of scored tokens of a sample. Raises ValueError
    for models that do not predict tokens."""
    from unlearning_audit.training import tokens

    return tokens.readings(stack, rows)
