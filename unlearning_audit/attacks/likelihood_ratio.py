"""Gaussians of phi for members and non-members: LiRA's test without per-sample models (Carlini 2022)."""

from typing import Literal

import numpy as np

from unlearning_audit.attacks import Reference, Score, Settings, density, signals


class Options(Settings):
    """The two Gaussians of each class.

    ``per_class``: a centre for each class and side (false: one for each side); ``centre``: of the phi of a
    group; ``spread``: the standard deviation around the mean of the group, ``global`` pooled over the classes
    of a side or ``per_class``. Classes with fewer than two members or non-members take the pooled values of
    both.
    """

    per_class: bool = True
    centre: Literal["median", "mean"] = "median"
    spread: Literal["global", "per_class"] = "global"


def score(logits: np.ndarray, y: np.ndarray, reference: Reference, options: Options, rng: np.random.Generator) -> Score:
    """Return as the score log N(phi; member) − log N(phi; non-member) for the class of the label; the decision is
    whether it exceeds 0."""
    classes = logits.shape[-1]
    rows = signals.statistics(signals.phi, reference, classes=classes)
    sides = (rows.member, ~rows.member)
    counts = [np.bincount(rows.label[side], minlength=classes) for side in sides]
    separate = np.minimum(*counts) >= 2
    label = signals.labels(logits, y)
    phi = signals.per_model(signals.phi, logits, y)
    member, nonmember = (
        density.gaussian(phi, centre[label], spread[label])
        for centre, spread in (_fit(rows.value[side], rows.label[side], separate, options) for side in sides)
    )
    value = member - nonmember
    return value, value > 0


def _fit(phi: np.ndarray, label: np.ndarray, separate: np.ndarray, options: Options) -> tuple[np.ndarray, np.ndarray]:
    """Fit the Gaussians of φ of members, or of non-members: return centre and spread for each class, float64 [classes]
    each.

    ``phi`` and ``label`` [n] of these rows. ``separate`` bool [classes]: the classes that get values of their own; the
    others get those of all rows.
    """
    middle = np.median if options.centre == "median" else np.mean
    centre = np.full(len(separate), middle(phi))
    spread = np.full(len(separate), phi.std())
    residual = phi - phi.mean()
    for c in np.flatnonzero(separate):
        rows = label == c
        if options.per_class:
            centre[c] = middle(phi[rows])
            residual[rows] = phi[rows] - phi[rows].mean()
        if options.spread == "per_class":
            spread[c] = phi[rows].std()
    if options.spread == "global":
        spread[:] = np.sqrt(np.mean(residual**2))
    return centre, spread
