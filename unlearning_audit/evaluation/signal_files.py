"""Files of signals: what models are evaluated for besides logits, as a number or an array for each sample."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from unlearning_audit.evaluation.stored import Stored
from unlearning_audit.store.files import Check, read_arrays


@dataclass(frozen=True)
class Gradients(Stored):
    """``signals.npz`` of one batch: squared norms of gradients.

    Parameters
    ----------
    squared_norms
        float64 [models, forget rows] or [models, samples]: the squared norm of each sample's gradient, in the order of
        the data.
    mean_squared_norm
        float64 [models]: the squared norm of the mean gradient of the forget samples.
    """

    squared_norms: Annotated[np.ndarray, "f models rows"]
    mean_squared_norm: Annotated[np.ndarray, "f models"]


@dataclass(frozen=True)
class BySample(Stored):
    """``signals.npz`` of one batch: a signal with a value, or an array, for each sample.

    Parameters
    ----------
    signal
        The name of the signal.
    values
        float [models, rows, …]: NaN where there is no value.
    index
        int64 [rows]: the sample of each row in the data.
    """

    SHARED = ("signal", "index")
    GAPS = ("values",)

    signal: Annotated[str, "U"]
    values: Annotated[np.ndarray, "f models rows ..."]
    index: Annotated[np.ndarray, "iu rows"]


def read(path: str | Path, models: int) -> Gradients | BySample:
    """Read a file of signals: one with a field ``values`` is `BySample`, any other `Gradients`.

    ``models`` is the number of models that the file must hold. Raises ArtifactError for a wrong file, and FailedError
    if there are no models.
    """
    check = Check(path, read_arrays(path))
    kind = BySample if "values" in check.arrays else Gradients
    return kind(**kind.checked(check, models=models))
