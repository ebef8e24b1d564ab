"""Gaussians of phi for members and non-members: LiRA's test without per-sample models (Carlini 2022)."""

import numpy as np

from unlearning_audit.attacks import Score, Shadow, density, signals


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow) -> Score:
    """Return as the score how much more likely φ is for members than for non-members of the label's class: the
    difference of two normal log-densities. The decision is whether the score exceeds 0.

    The centre of a class is its median; the standard deviation is pooled over classes, of members and of non-members
    separately. Classes with fewer than two members or non-members have the median of all classes.

    Raises ValueError if logits and labels do not fit each other, if the shadow models have other classes than the
    audited models, or if they have no members or no non-members.

    Parameters
    ----------
    logits
        float [models, samples, classes]: logits of the audited models.
    y
        int [samples] or [models, samples]: labels.
    shadow
        Logits and labels of models with known members, on which the attack learns.
    """
    classes = logits.shape[-1]
    rows = signals.statistics(signals.phi, shadow, classes=classes)
    kinds = (rows.member, ~rows.member)
    # Which classes have two members and two non-members.
    enough = np.min([np.bincount(rows.label[kind], minlength=classes) for kind in kinds], axis=0) >= 2
    label, phi = signals.labels(logits, y), signals.per_model(signals.phi, logits, y)
    fits = [_fit(rows.value[kind], rows.label[kind], enough) for kind in kinds]
    log_p_member, log_p_nonmember = (density.gaussian(phi, centre[label], spread) for centre, spread in fits)
    value = log_p_member - log_p_nonmember
    return value, value > 0


def _fit(phi: np.ndarray, label: np.ndarray, enough: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the normal distributions of φ of members, or of non-members: the centre of each class, float64 [classes],
    and the standard deviation around the means of classes, which is one for all classes.

    Parameters
    ----------
    phi, label
        float [n] and int [n]: φ and label of each member, or of each non-member.
    enough
        bool [classes]: the classes whose centre (median) and mean are their own; all other classes have the centre and
        the mean of all rows.
    """
    centre, residual = np.full(len(enough), np.median(phi)), phi - phi.mean()
    for number in np.flatnonzero(enough):
        rows = label == number
        centre[number] = np.median(phi[rows])
        residual[rows] = phi[rows] - phi[rows].mean()
    return centre, float(np.sqrt(np.mean(residual**2)))
