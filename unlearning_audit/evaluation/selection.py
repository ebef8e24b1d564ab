"""Which samples models memorise; other scenarios choose their target samples by it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unlearning_audit.store.files import Arrays, Check, read_arrays


@dataclass(frozen=True)
class Selection(Arrays):
    """``selection.npz``: two verdicts on every sample of the data, bool [samples], and the ratio behind them.

    ``vulnerable``: an attack recognises it in most models that saw it; ``protected``: in most of them the attack
    cannot tell; no sample is both. ``ratio`` float64 [samples]: mean over the models that saw it of
    log p(in) − log p(out), 0 for samples that no model saw.
    """

    vulnerable: np.ndarray
    protected: np.ndarray
    ratio: np.ndarray

    @classmethod
    def read(cls, path: str | Path, samples: int) -> "Selection":
        """Read and check that it fits ``samples``. Raises ArtifactError that names the file and the field."""
        check = Check(path, read_arrays(path))
        kinds = {"vulnerable": "b", "protected": "b", "ratio": "f"}
        selection = cls(**{name: check.field(name, kind, (samples,)) for name, kind in kinds.items()})
        if (selection.vulnerable & selection.protected).any():
            check.fail("protected", "holds samples that are vulnerable as well")
        return selection
