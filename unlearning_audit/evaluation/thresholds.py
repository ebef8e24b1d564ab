"""Attacks that compare a statistic with a threshold per class learned on the shadow models (Song & Mittal 2021)."""

import numpy as np

from unlearning_audit import stats
from unlearning_audit.evaluation import signals
from unlearning_audit.evaluation.shadow import Shadow


def fit(*, value: np.ndarray, label: np.ndarray, member: np.ndarray, classes: int, per_class: bool) -> np.ndarray:
    """Return the threshold of each class, float64 [classes]: "member" means value ≥ threshold.

    The threshold of a class is the value of one of its rows, the first if several do, that maximises ½(TPR + TNR) over
    the rows of this class. A class without members or without non-members gets the threshold of all rows together. If
    ``per_class`` is false, every class gets the threshold of all rows. Raises ValueError without any members, or
    without any non-members.

    Parameters
    ----------
    value
        float64 [rows]: the statistic.
    label
        int64 [rows]: the class.
    member
        bool [rows]: whether the row is a member.
    classes
        The number of classes.
    per_class
        Whether every class has a threshold of its own.
    """
    thresholds = np.full(classes, stats.best_threshold(value=value, positive=member), dtype=np.float64)
    if per_class:
        order = np.argsort(label, kind="stable")  # one sort for all classes; rows of a class keep their order
        for rows in np.split(order, np.flatnonzero(np.diff(label[order])) + 1):
            if member[rows].any() and not member[rows].all():
                thresholds[label[rows[0]]] = stats.best_threshold(value=value[rows], positive=member[rows])
    return thresholds


def score(
    statistic: signals.Statistic, logits: np.ndarray, y: np.ndarray, shadow: Shadow
) -> tuple[np.ndarray, np.ndarray]:
    """Return score and decision of an attack that thresholds ``statistic(logits [n, classes], y [n])``.

    The score is the statistic itself, float64 [models, samples], comparable across samples and classes. The decision,
    bool of the same shape, is whether it reaches the threshold of its label that has the largest ½(TPR + TNR) on the
    shadow models (`fit`). Raises ValueError if logits, labels or the shadow models have a wrong shape or values.
    """
    rows = signals.statistics(statistic, shadow, classes=logits.shape[-1])
    value = signals.per_model(statistic, logits, y)
    return value, decide(value, rows, logits, y)


def learned(
    value: np.ndarray, of_shadow: np.ndarray, logits: np.ndarray, y: np.ndarray, shadow: Shadow, per_class: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return score and decision of an attack whose statistic, larger for members, is computed already, each [models,
    samples].

    Parameters
    ----------
    value
        float64 [models, samples]: the statistic of the audited models, which is the score.
    of_shadow
        float64 [models, samples]: the statistic of the shadow models.
    logits
        [models, samples, classes]: the logits of the audited models.
    y
        [samples] or [models, samples]: the labels of the audited models.
    shadow
        The shadow models, whose rows give the threshold of each label: that with the largest ½(TPR + TNR) (`fit`).
    per_class
        Whether every class has a threshold of its own.
    """
    rows = signals.known_values(of_shadow, shadow, classes=logits.shape[-1])
    return value, decide(value, rows, logits, y, per_class=per_class)


def decide(
    value: np.ndarray, rows: signals.KnownRows, logits: np.ndarray, y: np.ndarray, *, per_class: bool = True
) -> np.ndarray:
    """Return whether each value reaches (is at least) the threshold of its label that has the largest ½(TPR + TNR) on
    ``rows`` (`fit`), bool [models, samples].

    Parameters
    ----------
    value
        float64 [models, samples]: the statistic of the audited models.
    rows
        The rows of shadow models whose membership is known.
    logits
        [models, samples, classes]: the logits of the audited models.
    y
        [samples] or [models, samples]: the labels of the audited models.
    per_class
        Whether every class has a threshold of its own.

    Raises
    ------
    ValueError
        If logits and labels do not fit each other.
    """
    labels, classes = signals.labels(logits, y), logits.shape[-1]
    cuts = fit(value=rows.value, label=rows.label, member=rows.member, classes=classes, per_class=per_class)
    return np.asarray(value >= cuts[labels])
