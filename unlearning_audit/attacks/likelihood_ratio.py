"""Gaussians of phi for members and non-members: LiRA's test without per-sample models (Carlini 2022)."""

import numpy as np

from unlearning_audit.attacks import NoOptions as Options
from unlearning_audit.attacks import Score, Shadow, density, signals


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, options: Options, rng: np.random.Generator) -> Score:
    """Return as the score log N(phi; member) − log N(phi; non-member) for the class of the label; the decision is
    whether it exceeds 0.

    The centre of a class is its median; the standard deviation is pooled over the classes of a side. Classes with fewer
    than two members or non-members have the median of all classes.
    """
    classes = logits.shape[-1]
    rows = signals.statistics(signals.phi, shadow, classes=classes)
    sides = (rows.member, ~rows.member)
    separate = np.min([np.bincount(rows.label[side], minlength=classes) for side in sides], axis=0) >= 2
    label = signals.labels(logits, y)
    phi = signals.per_model(signals.phi, logits, y)
    member, nonmember = (
        density.gaussian(phi, centre[label], spread)
        for centre, spread in (_fit(rows.value[side], rows.label[side], separate) for side in sides)
    )
    value = member - nonmember
    return value, value > 0


def _fit(phi: np.ndarray, label: np.ndarray, separate: np.ndarray) -> tuple[np.ndarray, float]:
    """Fit the Gaussians of φ of members, or of non-members: return the centre of each class, float64 [classes], and the
    standard deviation around the means of classes.

    ``phi`` and ``label`` [n] of these rows. ``separate`` bool [classes]: the classes that get values of their own; the
    others get those of all rows.
    """
    centre, residual = np.full(len(separate), np.median(phi)), phi - phi.mean()
    for c in np.flatnonzero(separate):
        rows = label == c
        centre[c] = np.median(phi[rows])
        residual[rows] = phi[rows] - phi[rows].mean()
    return centre, float(np.sqrt(np.mean(residual**2)))
