"""Files of signals: what models are evaluated for besides logits, as a number or an array for each sample."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unlearning_audit.store.files import Arrays, Check, read_arrays


@dataclass(frozen=True)
class Gradients(Arrays):
    """``signals.npz`` of one batch: ``squared_norms`` float64 [models, forget rows] or [models, samples], the squared
    norm of each sample's gradient, in the order of the data; ``mean_squared_norm`` float64 [models], the squared norm
    of the mean gradient of the forget samples."""

    squared_norms: np.ndarray
    mean_squared_norm: np.ndarray

    @classmethod
    def checked(cls, check: Check, models: int) -> "Gradients":
        """Return the gradients in a file of ``models`` models. Raises ArtifactError."""
        norms = check.field("squared_norms", "f", (models, None))
        return cls(norms, check.field("mean_squared_norm", "f", (models,)))


@dataclass(frozen=True)
class BySample(Arrays):
    """``signals.npz`` of one batch: the name of the ``signal``; ``values`` float [models, rows, …], NaN where there is
    no value; ``index`` int64 [rows], the sample of each row in the data."""

    SHARED = ("signal", "index")

    signal: np.ndarray
    values: np.ndarray
    index: np.ndarray

    @classmethod
    def checked(cls, check: Check, models: int, samples: int) -> "BySample":
        """Return the signal in a file, checked against the number of ``models`` and of the data's ``samples``. Raises
        ArtifactError."""
        signal, index = check.field("signal", "U", ()), check.field("index", "iu", (None,)).astype(np.int64)
        more = (None,) * (check.arrays["values"].ndim - 2)
        values = check.field("values", "f", (models, len(index), *more), finite=False)
        if len(np.unique(index)) != len(index) or not np.isin(index, np.arange(samples)).all():
            check.fail("index", "names a sample twice, or one that the data do not have")
        return cls(signal, values, index)


def read(path: str | Path, models: int, samples: int) -> Gradients | BySample:
    """Read a file of signals and check it against the number of ``models`` and of the data's ``samples``.

    Raises ArtifactError for a wrong file, and FailedError if there are no models.
    """
    check = Check(path, read_arrays(path))
    if "values" in check.arrays:
        return BySample.checked(check, models, samples)
    return Gradients.checked(check, models)
