"""The shadow models that an attack learns from, which the adversary trained itself, with known members."""

from dataclasses import dataclass, field
from types import ModuleType

import numpy as np

from unlearning_audit.plugins import registry
from unlearning_audit.plugins.declarations import OFFERS

#: The form of attacks that compare each model with what it was before unlearning.
BOTH = "both"

#: What an attack returns: score, a number, and decision, bool, each [models, samples].
Score = tuple[np.ndarray, np.ndarray]

#: Positions in the last axis of tokens: log p; mean and standard deviation of log p under the model; rank from 0.
LOGP, MEAN, SPREAD, RANK = range(4)


def needs(attack: ModuleType) -> tuple[str, ...]:
    """Return the signals that ``NEEDS`` of an attack's file names, without its requirements on a protocol; () if it
    names none."""
    return tuple(name for name in registry.declared_in(attack) if name not in OFFERS)


def known_mask(signal: dict[str, np.ndarray]) -> np.ndarray:
    """Return the rows on which all signals are known, bool [models, rows]; a single True without signals.

    A signal with several values per row is unknown only if all of these are NaN.

    Parameters
    ----------
    signal
        Name → [models, rows, …]. A value is NaN where it was not computed, or where all shadow models saw the sample,
        so that none of them shows how a non-member looks.
    """
    mask = np.array(True)  # broadcasts against any mask
    for value in signal.values():
        mask = mask & ~np.isnan(value).all(axis=tuple(range(2, value.ndim)))
    return mask


@dataclass(frozen=True)
class Shadow:
    """Models whose membership the adversary knows, because it trained them on its own half of the data.

    Parameters
    ----------
    logits
        float32 [models, samples, classes].
    y
        int64 [samples] or [models, samples]: the observed labels.
    member, nonmember
        bool [models, samples]: the rows that an attack may learn from, as members and as non-members.
    index
        int64 [samples]: the samples of the data to which the columns belong, or None if unknown.
    signals
        Name → array, for the signals that an attack names in NEEDS (`unlearning_audit.signals`). Each signal is an
        attribute as well: ``shadow.tokens``.
    """

    logits: np.ndarray
    y: np.ndarray
    member: np.ndarray
    nonmember: np.ndarray
    index: np.ndarray | None = None
    signals: dict[str, np.ndarray] = field(default_factory=dict)

    def __getattr__(self, name: str) -> np.ndarray:
        """Return the signal ``name``. Raises AttributeError if the attack does not name it in NEEDS."""
        try:
            signal: np.ndarray = self.__dict__["signals"][name]
        except KeyError:
            raise AttributeError(f"the shadow models have no {name}; an attack names what it reads in NEEDS") from None
        return signal
