"""What the adversary learns from: shadow models that it trained itself, with known members."""

from dataclasses import dataclass, field

import numpy as np

from unlearning_audit.plugins.declarations import OFFERS

#: The form of attacks that compare each model with what it was before unlearning.
BOTH = "both"

#: What an attack returns: score, a number, and decision, bool, each [models, samples].
Score = tuple[np.ndarray, np.ndarray]

#: Places in the last axis of tokens: log p; mean and standard deviation of log p under the model; rank from 0.
LOGP, MEAN, SPREAD, RANK = range(4)


def needs(declared: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """The signals that ``NEEDS`` of a file names, without what it asks of a protocol."""
    names = (declared,) if isinstance(declared, str) else declared or ()
    return tuple(name for name in names if name not in OFFERS)


def mask_of(signal: dict[str, np.ndarray]) -> np.ndarray:
    """Of which rows the signals are known, bool [models, rows] (or [], all): no token is of those that models were not
    asked about, and no reference of those that all shadow models saw."""
    mask = np.array(True)
    for value in signal.values():
        mask = mask & ~np.isnan(value).all(axis=tuple(range(2, value.ndim)))
    return mask


@dataclass(frozen=True)
class Reference:
    """Models whose membership the adversary knows, because it trained them on its own half of the data.

    ``logits`` float32 [models, samples, classes]; ``y`` int64 [samples] or [models, samples], the observed
    labels; ``member`` and ``nonmember`` bool [models, samples], the rows that the adversary may learn from;
    ``index`` int64 [samples], which samples of the data the columns are, or None where nobody says; ``signals``: those
    that an attack names in its NEEDS (`unlearning_audit.signals`), which are attributes as well: ``reference.tokens``.
    """

    logits: np.ndarray
    y: np.ndarray
    member: np.ndarray
    nonmember: np.ndarray
    index: np.ndarray | None = None
    signals: dict[str, np.ndarray] = field(default_factory=dict)

    def __getattr__(self, name: str) -> np.ndarray:
        """A signal."""
        try:
            signal: np.ndarray = self.__dict__["signals"][name]
        except KeyError:
            raise AttributeError(f"the reference has no {name}; an attack names what it reads in NEEDS") from None
        return signal
