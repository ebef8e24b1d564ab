"""The last hidden layer of models on a limited number of samples."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from unlearning_audit.evaluation import queries
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.stored import Stored

#: The largest number of samples of each model: forgotten and held out (each), and retained.
SIDE, RETAINED = 1000, 2000


@dataclass(frozen=True)
class Features(Stored):
    """``signals.npz`` of one batch: the inputs of the models' last layers.

    Parameters
    ----------
    features
        float32 [models, rows, width]: the input of a model's last layer.
    index
        int64 [models, rows]: the sample of each row, −1 for none. Models are the defender's, in the order of the
        memberships.
    """

    DIVERGES = True

    features: Annotated[np.ndarray, "f models rows width"]
    index: Annotated[np.ndarray, "iu models rows"]


def sample_index(member: Membership) -> np.ndarray:
    """Return the samples for which the last hidden layer of each model is computed, int64 [models, rows]
    (`queries.draw`)."""
    roles = {"forget": (member.forget, SIDE), "heldout": (member.heldout, SIDE), "retain": (member.retain, RETAINED)}
    return queries.draw(member, "features", roles)
