"""Which samples may be forgotten or held out: all, those of some classes, those that models memorise most or least."""

import numpy as np

from unlearning_audit.evaluation.arrays import Data
from unlearning_audit.evaluation.selection import Selection
from unlearning_audit.protocols._options import Candidates


def selects_from(options: Candidates) -> str | None:
    """The scenario whose selection is needed, "" if it is needed and not named, None if it is not."""
    return (options.select_from or "") if options.memorised else None


def candidates(samples: np.ndarray, data: Data, options: Candidates) -> np.ndarray:
    """Those of ``samples`` (int [n]) that may be forgotten or held out, in the same order."""
    return samples[np.isin(data.y[samples], options.classes)] if options.classes else samples


def draw(allowed: np.ndarray, count: int, options: Candidates, selection: Selection | None) -> np.ndarray:
    """``count`` of the ``allowed`` samples where memorisation decides, else all of them; int [n].

    Raises ValueError where a selection is needed and none was given.
    """
    if options.memorised is None:
        return allowed
    if selection is None:
        raise ValueError(f"memorised: {options.memorised} needs a selection; name its scenario in select_from")
    rank = np.argsort(selection.ratio[allowed], kind="stable")
    return allowed[rank[-count:] if options.memorised == "most" else rank[:count]]
