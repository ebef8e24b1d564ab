"""Differences between models and others that are no partners of theirs: any numbers of both, read on the same samples.

One audited model may stand against ten retrained ones. If it is one of their kind, it differs from their mean as
they do from each other: s·√(1 + 1/n) with n − 1 degrees of freedom, whatever the samples are. Where both sides have
models in the same places (a pair and a split of it, a block), differences are taken there first and then averaged. The
level is exact for normal numbers; for numbers of Student's t with three degrees of freedom it is at most .08.

One retrained model decides where the standard deviation σ over retrained models is known: σ² then stands for the
variance that they would show, with a normal quantile in place of Student's. If m audited models are of their kind, they
differ from the one by σ·√(1/m + 1), which is the reference of the test. The interval has h² = t²·S_audited/m + z²·σ² +
t²·S_samples with m − 1 degrees of freedom, a sum of squared half-widths as in `stats.paired`; of a single audited model
σ² stands for S_audited too. Where σ is at least what retrained models vary by, neither class is wrong in more than α.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unlearning_audit.stats import crossed
from unlearning_audit.stats.paired import Design, Distances, Layer, independent, products

if TYPE_CHECKING:
    from jaxtyping import Float, Int

#: Degrees of freedom of a variance that is known.
KNOWN = 10**9


@dataclass(frozen=True)
class Models:
    """K numbers of some models: ``value`` float64 [K, models], ``influence`` float64 [K, models, samples] and
    ``imagined`` float64 [K, models, k] as `stats.paired.distances` takes them, ``unit`` and ``split`` int [models];
    ``covariance`` float64 [K, K] of one model and another, for models that do not repeat each other, if it is known."""

    value: Float[np.ndarray, "K models"]
    influence: Float[np.ndarray, "K models samples"]
    imagined: Float[np.ndarray, "K models k"]
    unit: Int[np.ndarray, "models"]
    split: Int[np.ndarray, "models"]
    covariance: Float[np.ndarray, "K K"] | None = None

    @property
    def places(self) -> set[tuple[int, int]]:
        """The (unit, split) that have a model."""
        return set(zip(self.unit.tolist(), self.split.tolist(), strict=True))


def differences(*, audited: Models, reference: Models) -> tuple[Distances, Distances]:
    """audited − reference of K numbers: with the errors that both sides show, and with those if both are of one kind.

    The first has variance S_audited/m + S_reference/n in each place, each side's from its own models, with the smaller
    of both degrees of freedom (Welch's lie between that and their sum); a side without repeats is taken to vary as the
    other.
    The second is the reference of a test: S_reference·(1/m + 1/n), from the reference alone if it has repeats. Places
    differ by their own spread in the first. Where no side has repeats, nothing is known of how models vary and ``dof``
    is 0, unless a ``covariance`` is told. Raises ValueError for sides that do not hold the same numbers of the same
    samples.
    """
    if audited.value.shape[0] != reference.value.shape[0] or audited.influence.shape[2] != reference.influence.shape[2]:
        raise ValueError("both sides must hold the same numbers of the same samples")
    shared = audited.places == reference.places
    places = sorted(audited.places) if shared else [(0, 0)]
    group = [_placed(side, places, shared) for side in (audited, reference)]
    units = np.array([unit for unit, _ in places])
    _, unit = np.unique(units, return_inverse=True)
    splits = np.bincount(unit)
    share = (1 / (len(splits) * splits))[unit]
    counts = [np.bincount(number, minlength=len(places)) for number in group]
    means = [_means(side, number, len(places)) for side, number in zip((audited, reference), group, strict=True)]
    value, influence, imagined = (a - b for a, b in zip(*means, strict=True))
    moved = _moved(
        influence, imagined, share, own=(audited, group[0], counts[0]), other=(reference, group[1], counts[1])
    )
    spread = [_spread(side, number, len(places)) for side, number in zip((audited, reference), group, strict=True)]
    sampled = moved @ moved.T
    join = (unit == np.arange(len(splits))[:, None]) / splits[:, None]
    between = independent(value @ join.T, join @ influence, sampled)
    design = Design(len(splits), float(splits.mean()), float(counts[0].mean()), _met(audited, reference))
    scale = [float((share**2 / count).sum()) for count in counts]
    parts = value @ share, moved
    layers = _layers(spread, scale, sampled)
    separate = Distances(*parts, models=layers[0], units=between, design=design)
    nothing = Layer(np.zeros_like(sampled), np.zeros_like(sampled), 0)
    return separate, Distances(*parts, models=layers[1], units=nothing, design=design)


def _placed(side: Models, places: list[tuple[int, int]], shared: bool) -> np.ndarray:
    """The place of each model, int64 [models]."""
    if not shared:
        return np.zeros(len(side.unit), np.int64)
    number = {place: at for at, place in enumerate(places)}
    return np.array([number[place] for place in zip(side.unit.tolist(), side.split.tolist(), strict=True)])


def _means(side: Models, group: np.ndarray, places: int) -> tuple[np.ndarray, ...]:
    """Value, influence and imagined of every place: means over its models."""
    average = (group == np.arange(places)[:, None]) / np.bincount(group, minlength=places)[:, None]
    return side.value @ average.T, average @ side.influence, average @ side.imagined


def _moved(
    influence: np.ndarray, imagined: np.ndarray, share: np.ndarray, **sides: tuple[Models, np.ndarray, np.ndarray]
) -> np.ndarray:
    """What samples, imaginary ones last, move the means over places by: float64 [K, samples + …]."""
    moved = np.einsum("p,kps->ks", share, influence)
    alone = np.zeros(len(moved))
    for side, group, count in sides.values():
        alone = alone + (side.influence**2).sum(axis=2) @ (share**2 / count**2)[group]
    imaginary = crossed.averaged(share[:, None] * imagined, moved, alone=alone)
    return np.concatenate([moved, imaginary.reshape(len(moved), -1)], axis=1)


def _spread(side: Models, group: np.ndarray, places: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Covariance of one model of a place and another, float64 [K, K]; the part of it that single samples in single
    models explain, [K, K]; degrees of freedom."""
    dof = int((np.bincount(group, minlength=places) - 1).clip(0).sum())
    if not dof:
        nothing = np.zeros((len(side.value),) * 2)
        return (nothing, nothing, 0) if side.covariance is None else (side.covariance, nothing, KNOWN)
    value, influence, _ = _means(side, group, places)
    off, centred = side.value - value[:, group], side.influence - influence[:, group]
    return off @ off.T / dof, products(centred) / dof, dof


def _layers(
    spread: list[tuple[np.ndarray, np.ndarray, int]], scale: list[float], sampled: np.ndarray
) -> tuple[Layer, Layer]:
    """The layers of models as both sides show them, and if both are of one kind."""
    audited, reference = spread
    if not audited[2] and not reference[2]:
        nothing = Layer(np.zeros_like(sampled), sampled, 0)
        return nothing, nothing
    first, second = audited if audited[2] else reference, reference if reference[2] else audited
    noise = first[1] * scale[0] + second[1] * scale[1]
    between, dof = [first[0] * scale[0], second[0] * scale[1]], min(first[2], second[2])
    known = between[1] if dof < second[2] == KNOWN else None
    wide = Layer(between[0] + between[1], sampled - noise, dof, known)
    return wide, Layer(second[0] * sum(scale), np.zeros_like(sampled), second[2])


def _met(audited: Models, reference: Models) -> int:
    return int(((audited.influence != 0).any(axis=(0, 1)) | (reference.influence != 0).any(axis=(0, 1))).sum())
