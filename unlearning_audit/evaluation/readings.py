"""What attacks and metrics read of models beyond their logits, computed from stored weights."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unlearning_audit.store.files import Arrays, Check, read_arrays


@dataclass(frozen=True)
class Readings(Arrays):
    """``signals.npz`` of one batch of models: gradients, or single tokens.

    ``squared_norms`` float64 [models, forget rows] or [models, samples]: the squared norm of each sample's gradient, in
    the order of the data; ``mean_squared_norm`` float64 [models]: that of the mean gradient of the forget samples.
    ``tokens`` float32 [models, token rows, most, 4]: of every scored token log p, mean and standard deviation of log p
    under the prediction, and rank (NaN after the last one of a sample); ``token_index`` int64 [token rows] into the
    data.
    """

    SHARED = ("token_index",)

    squared_norms: np.ndarray | None = None
    mean_squared_norm: np.ndarray | None = None
    tokens: np.ndarray | None = None
    token_index: np.ndarray | None = None

    @classmethod
    def read(cls, path: str | Path, models: int, samples: int) -> "Readings":
        """Read and check against the numbers of models and of samples in the data. Raises as `read_arrays`."""
        check = Check(path, read_arrays(path))
        norms = mean = tokens = index = None
        if "squared_norms" in check.arrays:
            norms = check.field("squared_norms", "f", (models, None))
            mean = check.field("mean_squared_norm", "f", (models,))
        if "tokens" in check.arrays:
            index = check.field("token_index", "iu", (None,)).astype(np.int64)
            tokens = check.field("tokens", "f", (models, len(index), None, 4), finite=False)
            if len(np.unique(index)) != len(index) or not np.isin(index, np.arange(samples)).all():
                check.fail("token_index", "names a sample twice, or one that the data do not have")
        if norms is None and tokens is None:
            check.fail("squared_norms", "is missing, and so is 'tokens'")
        return cls(norms, mean, tokens, index)
