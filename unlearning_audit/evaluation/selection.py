"""How strongly models memorise each sample, by which scenarios select their target samples."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from unlearning_audit.evaluation.stored import Stored


@dataclass(frozen=True)
class Selection(Stored):
    """``selection.npz``: how strongly models memorise each sample of the data.

    Parameters
    ----------
    vulnerable
        bool [samples]: an attack recognises the sample in most models that saw it.
    protected
        bool [samples]: in most of them it cannot. No sample is both.
    ratio
        float64 [samples]: mean over the models that saw the sample of log p(in) − log p(out), 0 for samples that no
        model saw.
    """

    vulnerable: Annotated[np.ndarray, "b samples"]
    protected: Annotated[np.ndarray, "b samples"]
    ratio: Annotated[np.ndarray, "f samples"]
