"""Differences between audited and reference models that do not form pairs, for any numbers on the same samples.

One audited model may be compared with ten retrained ones. If it is like them, it differs from their mean as they differ
from each other: by s·√(1 + 1/n) with n − 1 degrees of freedom, whatever the samples are. Where audited and reference
models have the same (pair, split) combinations, differences are taken within each of them first and then averaged. The
level is exact for normal numbers; for numbers of Student's t with three degrees of freedom it is at most .08.

One retrained model suffices where the standard deviation σ over retrained models is known. σ² then replaces their
estimated variance, and a normal quantile replaces Student's. If m audited models are like retrained ones, they differ
from the one by σ·√(1/m + 1), which the test uses. The interval has h² = t²·S_audited/m + z²·σ² + t²·S_samples with m −
1 degrees of freedom, a sum of squared half-widths as in `stats.paired`. For a single audited model, σ² replaces
S_audited too. If σ is at least the true standard deviation, neither test errs with more than α.
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
    """K numbers of each of some models, with the influence of each sample on them.

    ``value`` float64 [K, models], ``influence`` float64 [K, models, samples] and ``imagined`` float64 [K, models, k],
    the influence of imaginary samples; ``unit`` and ``split`` int [models]: where each model belongs; ``covariance``
    float64 [K, K]: the known covariance between models, for models that do not repeat each other (None: unknown).
    """

    value: Float[np.ndarray, "K models"]
    influence: Float[np.ndarray, "K models samples"]
    imagined: Float[np.ndarray, "K models k"]
    unit: Int[np.ndarray, "models"]
    split: Int[np.ndarray, "models"]
    covariance: Float[np.ndarray, "K K"] | None = None

    @property
    def places(self) -> set[tuple[int, int]]:
        """Return every (unit, split) that has a model."""
        return set(zip(self.unit.tolist(), self.split.tolist(), strict=True))


def differences(*, audited: Models, reference: Models) -> tuple[Distances, Distances]:
    """Return audited − reference of K numbers twice: with the errors that both groups of models show, and with those if
    both are alike.

    Let S be the variance between models of one (unit, split), and m and n the numbers of audited and reference models
    there. The first result, for intervals, has variance S_audited/m + S_reference/n. Its degrees of freedom are the
    smaller of both (Welch's lie between that and their sum). A group without repeats is assumed to vary as the other.
    Differences between units and splits add to this variance. The second result, for tests, has S_reference·(1/m +
    1/n), from the reference alone if it has repeats. If neither group has repeats, the variance of models is unknown
    and ``dof`` is 0, unless a ``covariance`` is given.

    Parameters
    ----------
    audited, reference : Models
        The two groups, with the same K numbers of the same samples.

    Returns
    -------
    shown, alike : Distances
        K differences each.

    Raises
    ------
    ValueError
        The groups differ in their numbers or samples.
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
    """Return the index in ``places`` of each model's (unit, split), int64 [models]; all 0 unless both groups of models
    have the same ones (``shared``)."""
    if not shared:
        return np.zeros(len(side.unit), np.int64)
    number = {place: at for at, place in enumerate(places)}
    return np.array([number[place] for place in zip(side.unit.tolist(), side.split.tolist(), strict=True)])


def _means(side: Models, group: np.ndarray, places: int) -> tuple[np.ndarray, ...]:
    """Return the means of ``value``, ``influence`` and ``imagined`` over the models of each (unit, split).

    ``group`` int64 [models]: the index of each model's (unit, split), of ``places`` in all.
    """
    average = (group == np.arange(places)[:, None]) / np.bincount(group, minlength=places)[:, None]
    return side.value @ average.T, average @ side.influence, average @ side.imagined


def _moved(
    influence: np.ndarray, imagined: np.ndarray, share: np.ndarray, **sides: tuple[Models, np.ndarray, np.ndarray]
) -> np.ndarray:
    """Return the influence of samples, imaginary ones last, on the means over (unit, split): float64 [K, samples + …].

    ``influence`` and ``imagined`` float64 [K, places, …]: of the difference in each (unit, split), whose weights are
    ``share`` float64 [places]. ``sides``: for audited and reference models, the models, the index of each one's (unit,
    split), int64 [models], and the number of models in each (unit, split), int64 [places].
    """
    moved = np.einsum("p,kps->ks", share, influence)
    alone = np.zeros(len(moved))
    for side, group, count in sides.values():
        alone = alone + (side.influence**2).sum(axis=2) @ (share**2 / count**2)[group]
    imaginary = crossed.averaged(share[:, None] * imagined, moved, alone=alone)
    return np.concatenate([moved, imaginary.reshape(len(moved), -1)], axis=1)


def _spread(side: Models, group: np.ndarray, places: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the covariance between models of one (unit, split), float64 [K, K]; how much of it is noise of single
    samples in single models, float64 [K, K]; and its degrees of freedom.

    Where no two models repeat each other, the known covariance is returned, or zeros with 0 degrees of freedom.
    ``group`` int64 [models]: the index of each model's (unit, split), of ``places`` in all.
    """
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
    """Return the covariance over models of the difference twice: as both groups of models show it, and as it is if both
    are alike.

    ``spread``: for audited and reference models, the results of `_spread`; ``scale``: the factors that turn these
    variances between models into variances of a mean; ``sampled`` float64 [K, K]: the covariance over samples.
    """
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
    """Count the samples that influence some number of the audited or of the reference models."""
    return int(((audited.influence != 0).any(axis=(0, 1)) | (reference.influence != 0).any(axis=(0, 1))).sum())
