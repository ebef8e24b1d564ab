"""How what models are asked for beyond logits is kept, where it is a number or an array for each sample."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unlearning_audit.store.files import Arrays, Check, read_arrays


@dataclass(frozen=True)
class Gradients(Arrays):
    """``signals.npz`` of one batch of models: ``squared_norms`` float64 [models, forget rows] or [models, samples], the
    squared norm of each sample's gradient, in the order of the data; ``mean_squared_norm`` float64 [models], that of
    the mean gradient of the forget samples."""

    squared_norms: np.ndarray
    mean_squared_norm: np.ndarray

    @classmethod
    def checked(cls, check: Check, models: int) -> "Gradients":
        """From the arrays of a file of so many models. Raises ArtifactError."""
        norms = check.field("squared_norms", "f", (models, None))
        return cls(norms, check.field("mean_squared_norm", "f", (models,)))


@dataclass(frozen=True)
class BySample(Arrays):
    """``signals.npz`` of one batch: the ``signal``'s name; ``values`` float [models, rows, …], NaN where there is
    nothing; ``index`` int64 [rows] into the data."""

    SHARED = ("signal", "index")

    signal: np.ndarray
    values: np.ndarray
    index: np.ndarray

    @classmethod
    def checked(cls, check: Check, models: int, samples: int) -> "BySample":
        """From the arrays of a file, of so many models and samples in the data. Raises ArtifactError."""
        signal, index = check.field("signal", "U", ()), check.field("index", "iu", (None,)).astype(np.int64)
        more = (None,) * (check.arrays["values"].ndim - 2)
        values = check.field("values", "f", (models, len(index), *more), finite=False)
        if len(np.unique(index)) != len(index) or not np.isin(index, np.arange(samples)).all():
            check.fail("index", "names a sample twice, or one that the data do not have")
        return cls(signal, values, index)


def read(path: str | Path, models: int, samples: int) -> Gradients | BySample:
    """Read and check against the numbers of models and of samples in the data. Raises as `read_arrays`."""
    check = Check(path, read_arrays(path))
    if "values" in check.arrays:
        return BySample.checked(check, models, samples)
    return Gradients.checked(check, models)
