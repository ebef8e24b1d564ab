"""Inputs of attacks: exact log-probabilities, and the rows whose membership is known."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unlearning_audit import stats
from unlearning_audit.evaluation.shadow import Shadow

#: A function (logits [n, classes], labels [n]) → a number or several for each of n samples, float64 [n, …].
Statistic = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class KnownRows:
    """The rows of shadow models whose membership is known, as one flat list.

    Parameters
    ----------
    value
        float64 [rows, ...]: the statistic, or the features.
    label
        int64 [rows]: the labels.
    member
        bool [rows]: whether the row is a member.
    """

    value: np.ndarray
    label: np.ndarray
    member: np.ndarray


def phi(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return φ = log p_y/(1 − p_y), float64 [n], from ``logits`` [n, classes] and ``y`` [n]."""
    return stats.phi(logits=logits, y=y)


def log_probabilities(logits: np.ndarray) -> np.ndarray:
    """Return log p_c of the softmax of ``logits`` [..., classes], float64 of the same shape; exact also where p_c
    rounds to 0 or to 1."""
    shifted, _largest, rest = _split_off_largest(logits)
    return np.asarray(shifted - np.log1p(rest))


def log_complements(logits: np.ndarray) -> np.ndarray:
    """Return log(1 − p_c) of the softmax of ``logits`` [..., classes], float64 of the same shape; finite also where p_c
    rounds to 1."""
    shifted, top, rest = _split_off_largest(logits)
    normaliser = np.log1p(rest)
    p = np.exp(shifted - normaliser)
    np.put_along_axis(p, top, 0.0, axis=-1)
    result = np.log1p(-p)
    # For the largest class, 1 − p may round to 0, and ``rest``, the sum of the other exponentials relative to its own,
    # too. The sum is computed again relative to the second largest.
    np.put_along_axis(shifted, top, -np.inf, axis=-1)
    second = shifted.max(axis=-1, keepdims=True)
    log_rest = second + np.log(np.exp(shifted - second).sum(axis=-1, keepdims=True))
    np.put_along_axis(result, top, log_rest - normaliser, axis=-1)
    return np.asarray(result)


def label_logp(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return log p of the label, float64 [n], from ``logits`` [n, classes] and ``y`` [n]; for a language model, the
    mean over the scored tokens."""
    return of_label(log_probabilities(logits), y)


def of_label(values: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the entry of ``values`` [..., classes] that belongs to the label ``y`` [...]."""
    return np.take_along_axis(values, y[..., None], axis=-1)[..., 0]


def lowest(value: np.ndarray, share: float) -> np.ndarray:
    """Return the mean of the lowest values of each sample's tokens, [..., samples]. Of L tokens these are ⌊share·L⌋,
    but at least one. NaN for a sample without tokens.

    Parameters
    ----------
    value
        float64 [..., samples, tokens]: NaN where a token does not count.
    share
        The share of the tokens, from 0 to 1.
    """
    count = (~np.isnan(value)).sum(-1)
    # 1e-9 keeps a rounding error from taking a token away.
    count_lowest = np.maximum((share * count + 1e-9).astype(int), 1)
    ascending = np.sort(value, axis=-1)  # NaN is sorted to the end
    used = np.arange(value.shape[-1]) < count_lowest[..., None]
    return np.asarray(np.where(used, ascending, 0.0).sum(-1) / count_lowest)


def labels(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Check ``logits`` and labels ``y``, and return the labels as int64 [models, samples].

    Raises ValueError unless logits are finite [models, samples, classes ≥ 2], and y is [samples] or [models, samples]
    with values in [0, classes).
    """
    if logits.ndim != 3 or logits.shape[-1] < 2:
        raise ValueError(f"logits must be [models, samples, classes ≥ 2], not {list(logits.shape)}")
    models, samples, classes = logits.shape
    y = np.asarray(y)
    if y.shape not in {(samples,), (models, samples)} or y.dtype.kind not in "iu":
        raise ValueError(f"y must be integers [{samples}] or [{models}, {samples}], not {y.dtype} {list(y.shape)}")
    if y.size and not 0 <= y.min() <= y.max() < classes:
        raise ValueError(f"y holds labels outside 0…{classes - 1}, the classes of the logits")
    if not np.isfinite(logits).all():
        raise ValueError("logits hold NaN or infinite values: the model that made them cannot be scored")
    return np.broadcast_to(y.astype(np.int64), (models, samples))


def per_model(statistic: Statistic, logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ``statistic(logits [samples, classes], y [samples])`` of each model: float64 [models, samples].

    The models are processed one at a time, so that memory does not grow with the population. Raises ValueError if
    logits or labels have a wrong shape or wrong values.
    """
    y = labels(logits, y)
    values = np.empty(y.shape, dtype=np.float64)
    for m in range(len(logits)):
        values[m] = statistic(logits[m], y[m])
    return values


def statistics(statistic: Statistic, shadow: Shadow, *, classes: int) -> KnownRows:
    """Compute the ``statistic`` of every row, a sample of one shadow model, that is a member or a non-member.

    All other rows are left out, since an attack cannot learn from them. Raises ValueError if the shadow models have
    wrong labels, another number of ``classes`` than the audited models, or no members or no non-members.
    """
    y, rows = _labels_and_rows(shadow, classes)
    # One model after the other, without those that have no such row.
    value = [statistic(shadow.logits[m][rows[m]], y[m][rows[m]]) for m in range(len(y)) if rows[m].any()]
    return KnownRows(value=np.concatenate(value), label=y[rows], member=shadow.member[rows])


def known_values(values: np.ndarray, shadow: Shadow, *, classes: int) -> KnownRows:
    """Select the rows of known membership from ``values`` float64 [models, samples], a statistic of the shadow models
    that is already computed.

    Raises ValueError if the shadow models have wrong labels, another number of ``classes`` than the audited models, or
    no members or no non-members.
    """
    y, rows = _labels_and_rows(shadow, classes)
    return KnownRows(value=values[rows], label=y[rows], member=shadow.member[rows])


def _labels_and_rows(shadow: Shadow, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of shadow models, int64, and which rows are members or non-members, bool, both [models,
    samples].

    Raises ValueError if the shadow models have wrong labels, another number of ``classes`` than the audited models, or
    no members or no non-members.
    """
    y = labels(shadow.logits, shadow.y)
    if shadow.logits.shape[-1] != classes:
        raise ValueError(f"the shadow models have {shadow.logits.shape[-1]} classes, the audited models {classes}")
    for name in ("member", "nonmember"):
        if not getattr(shadow, name).any():
            raise ValueError(f"shadow.{name} is empty: no attack can be fitted without such rows")
    return y, shadow.member | shadow.nonmember


def same_samples(logits: np.ndarray, y: np.ndarray, shadow: Shadow) -> None:
    """Check that the columns of shadow models are the samples of ``logits``, for attacks that fit a model per sample.

    Raises ValueError if the numbers of samples or classes differ, or if more than one label in ten differs (then they
    are other samples). Also raises it if an audited model is one of the shadow models, since it would be compared with
    itself.
    """
    if logits.shape[1:] != shadow.logits.shape[1:]:
        raise ValueError(
            f"the shadow models hold {list(shadow.logits.shape[1:])} samples and classes, the audited models "
            f"{list(logits.shape[1:])}: this attack needs the same samples in both"
        )
    audited, of_shadow = labels(logits, y), labels(shadow.logits, shadow.y)
    # A protocol may give models labels of their own. A sample counts as the same if some audited and some shadow model
    # have the same label for it.
    shared = sum((audited == shadow_labels).any(axis=0) for shadow_labels in of_shadow) > 0
    if shared.mean() < 0.9:
        raise ValueError(
            f"{(~shared).sum()} of {len(shared)} samples have other labels in the shadow models than in the audited "
            "models: this attack needs the same samples in both, column by column"
        )
    for model, of_model in enumerate(logits):
        # Shadow models that agree on the first sample are compared on all. Constant logits prove nothing.
        # ``twins``: their numbers
        twins = np.flatnonzero((shadow.logits[:, 0] == of_model[0]).all(axis=-1))
        if any(np.array_equal(of_model, shadow.logits[twin]) for twin in twins) and np.ptp(of_model) > 0:
            raise ValueError(f"audited model {model} is also a shadow model: leave it out of its own shadow models")


def _split_off_largest(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the logits minus their largest over the classes, the class of the largest, and the sum of the exponentials
    of the others: ``logits`` [..., classes] give float64 [..., classes], int64 [..., 1] and float64 [..., 1]."""
    shifted = np.asarray(logits).astype(np.float64)
    top = shifted.argmax(axis=-1, keepdims=True)
    shifted -= np.take_along_axis(shifted, top, axis=-1)
    exponential = np.exp(shifted)
    np.put_along_axis(exponential, top, 0.0, axis=-1)
    return shifted, top, exponential.sum(axis=-1, keepdims=True)
