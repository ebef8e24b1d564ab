"""The samples that may be forgotten or held out: all, those of some classes, or those that models memorise most or
least."""

from typing import Literal

import numpy as np

from unlearning_audit.protocols import Data, Selection, Settings


class Candidates(Settings):
    """Only samples of ``classes`` are forgotten or held out (empty = of all classes), as many as the protocol needs or
    as there are. ``memorised``: of these the ``most`` or the ``least`` memorised, by the models of the scenario
    ``select_from``; null = chosen at random.

    Forgotten and held-out samples stay exchangeable, because chance alone divides the chosen samples.
    """

    classes: tuple[int, ...] = ()
    memorised: Literal["most", "least"] | None = None
    select_from: str | None = None


def selects_from(options: Candidates) -> str | None:
    """Return the scenario whose selection of samples is needed; "" if a selection is needed but no scenario is named;
    None if no selection is needed."""
    return (options.select_from or "") if options.memorised else None


def candidates(samples: np.ndarray, data: Data, options: Candidates) -> np.ndarray:
    """Return those of ``samples`` (int [n]) that may be forgotten or held out, in the same order: those with a label
    among ``options.classes``, or all if these are empty."""
    return samples[np.isin(data.y[samples], options.classes)] if options.classes else samples


def by_memorisation(allowed: np.ndarray, count: int, options: Candidates, selection: Selection | None) -> np.ndarray:
    """Return the ``count`` samples among ``allowed`` (int [n]) that are memorised most or least, as
    ``options.memorised`` states, the least memorised first; all of ``allowed``, and not ``count`` of them, if it is
    None.

    Parameters
    ----------
    selection
        How strongly samples are memorised: its ``ratio`` is larger if more.

    Raises
    ------
    ValueError
        If ``options.memorised`` is given and ``selection`` is None.
    """
    if options.memorised is None:
        return allowed
    if selection is None:
        raise ValueError(f"memorised: {options.memorised} needs a selection; name its scenario in select_from")
    rank = np.argsort(selection.ratio[allowed], kind="stable")
    return allowed[rank[-count:] if options.memorised == "most" else rank[:count]]
