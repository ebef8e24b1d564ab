"""How strongly models memorise each sample, by which scenarios select their target samples."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unlearning_audit.store.files import Arrays, Check, read_arrays


@dataclass(frozen=True)
class Selection(Arrays):
    """``selection.npz``: how strongly models memorise each sample of the data.

    ``vulnerable`` bool [samples]: an attack recognises the sample in most models that saw it; ``protected`` bool
    [samples]: in most of them it cannot. No sample is both. ``ratio`` float64 [samples]: mean over the models that saw
    the sample of log p(in) − log p(out), 0 for samples that no model saw.
    """

    vulnerable: np.ndarray
    protected: np.ndarray
    ratio: np.ndarray

    @classmethod
    def read(cls, path: str | Path, samples: int) -> "Selection":
        """Read a file and check that it fits ``samples``. Raises ArtifactError that names the file and the field."""
        check = Check(path, read_arrays(path))
        kinds = {"vulnerable": "b", "protected": "b", "ratio": "f"}
        selection = cls(**{name: check.field(name, kind, (samples,)) for name, kind in kinds.items()})
        if (selection.vulnerable & selection.protected).any():
            check.fail("protected", "holds samples that are vulnerable as well")
        return selection
