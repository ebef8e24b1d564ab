"""The last hidden layer of models on a limited number of samples."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unlearning_audit.evaluation import queries
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.store.files import Arrays, Check, read_arrays

#: The largest number of samples of each model: forgotten and held out (each), and retained.
SIDE, RETAINED = 1000, 2000


@dataclass(frozen=True)
class Features(Arrays):
    """``signals.npz`` of one batch: ``features`` float32 [models, rows, width], the input of a model's last layer;
    ``index`` int64 [models, rows], the sample of each row, −1 for none. Models are the defender's, in the order of the
    memberships."""

    features: np.ndarray
    index: np.ndarray

    @classmethod
    def read(cls, path: str | Path, models: int, samples: int) -> "Features":
        """Read a file and check it against the number of the defender's models and of the data's samples.

        Raises ArtifactError for a wrong file, FailedError if there are no models, and NotFiniteError for values that
        are not finite.
        """
        check = Check(path, read_arrays(path), may_diverge=True)
        index = check.field("index", "iu", (models, None)).astype(np.int64)
        features = check.field("features", "f", (*index.shape, None))
        if index.size and not -1 <= index.min() <= index.max() < samples:
            check.fail("index", f"has samples outside 0 … {samples - 1}, which the data do not have")
        return cls(features, index)


def sample_index(member: Membership) -> np.ndarray:
    """Return the samples for which the last hidden layer of each model is computed, int64 [models, rows]
    (`queries.draw`)."""
    roles = {"forget": (member.forget, SIDE), "heldout": (member.heldout, SIDE), "retain": (member.retain, RETAINED)}
    return queries.draw(member, "features", roles)
