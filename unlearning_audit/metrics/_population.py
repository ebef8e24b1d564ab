"""phi and memberships of models that were trained and then unlearned, as RULI uses them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unlearning_audit.metrics import _reference


@dataclass(frozen=True)
class Population:
    """phi and memberships of models that were trained and then unlearned.

    ``original`` and ``unlearned`` float64 [models, samples]: phi before and after unlearning; ``train``, ``forget`` and
    ``heldout`` bool [models, samples]; ``retrained`` float64 [models, samples]: phi of models trained anew without each
    model's forget set, needed of targets only.
    """

    original: np.ndarray
    unlearned: np.ndarray
    train: np.ndarray
    forget: np.ndarray
    heldout: np.ndarray
    retrained: np.ndarray | None = None

    def columns(self, keep: np.ndarray) -> "Population":
        """Return the population with the samples ``keep`` only."""
        return self._changed(lambda values: values[:, keep])

    def models(self, keep: np.ndarray) -> "Population":
        """Return the population with the models ``keep`` only."""
        return self._changed(lambda values: values[keep])

    def _changed(self, change: Callable[[np.ndarray], np.ndarray]) -> "Population":
        """Return the population with ``change`` applied to every array."""
        arrays: dict[str, Any] = {name: None if of is None else change(of) for name, of in vars(self).items()}
        return Population(**arrays)


def clipped(population: Population, probability: float | None) -> Population:
    """Return the population with phi cut where p_y falls below ``probability`` or exceeds its complement; unchanged if
    ``probability`` is None."""
    return population._changed(lambda of: of if of.dtype == bool else _reference.clip(of, probability))


def check(name: str, population: Population) -> None:
    """Raise ValueError if a population holds phi that is not finite; ``name`` is for the message."""
    for field, value in vars(population).items():
        if value is not None and not np.isfinite(value).all():
            raise ValueError(f"{name}.{field} holds NaN or infinite phi: the models that made them cannot be scored")


def never_its_own_reference(targets: Population, shadows: Population) -> None:
    """Raise ValueError if a target has the same phi as a shadow model, which must not be its own reference."""
    for name in ("original", "unlearned"):
        audited, pool = getattr(targets, name), getattr(shadows, name)
        for m, values in enumerate(audited):
            if (pool == values).all(axis=1).any() and np.ptp(values) > 0:
                raise ValueError(f"target {m} is also a shadow model ({name}): leave it out of its own reference")
