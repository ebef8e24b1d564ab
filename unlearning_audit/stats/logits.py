"""Two numbers from logits and a label: the logit-scaled confidence φ, and the lead over the next class."""

import numpy as np

from unlearning_audit.stats.shapes import Float, Int


def phi(*, logits: Float[np.ndarray, "*rest classes"], y: Int[np.ndarray, "..."]) -> Float[np.ndarray, "*rest"]:
    """Return the logit-scaled confidence of the label, z_y − log Σ_{c≠y} exp z_c = log p_y/(1 − p_y).

    The result is exact where softmax saturates. Source: Carlini et al. 2022, eq. 4, without the clipping that the paper
    adds.

    Parameters
    ----------
    logits : float [..., classes]
        Logits of at least two classes.
    y : int [...]
        Labels, broadcast over the leading dimensions.

    Returns
    -------
    float64 [...]

    Raises
    ------
    ValueError
        There are fewer than two classes, or a label is outside them.

    Examples
    --------
    >>> phi(logits=np.array([[2.0, 0.0, 0.0]]), y=np.array([0])).round(3).tolist()
    [1.307]
    """
    label_logit, rest = _label_and_other_logits(logits, y)
    top = rest.max(axis=-1, keepdims=True)
    # Subtracted so that no exponential overflows; 0 if all are −∞, since −∞ − (−∞) is NaN.
    shift = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        log_sum = np.log(np.exp(rest - shift).sum(axis=-1, keepdims=True))
    value: np.ndarray = ((label_logit - shift) - log_sum)[..., 0]
    return value


def lead(*, logits: Float[np.ndarray, "*rest classes"], y: Int[np.ndarray, "..."]) -> Float[np.ndarray, "*rest"]:
    """Return how far the label's logit exceeds the next one, z_y − max_{c≠y} z_c, above 0 where the label is predicted.

    Parameters
    ----------
    logits : float [..., classes]
        Logits of at least two classes.
    y : int [...]
        Labels, broadcast over the leading dimensions.

    Returns
    -------
    float64 [...]

    Raises
    ------
    ValueError
        There are fewer than two classes, or a label is outside them.

    Examples
    --------
    >>> lead(logits=np.array([[2.0, 0.5, 1.0]]), y=np.array([0])).tolist()
    [1.0]
    """
    label_logit, rest = _label_and_other_logits(logits, y)
    ahead: np.ndarray = (label_logit - rest.max(axis=-1, keepdims=True))[..., 0]
    return ahead


def _label_and_other_logits(logits: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the logit of each label, float64 [..., 1], and all logits, but with −∞ in place of the label's logit,
    float64 [..., classes].

    Raises ValueError for fewer than two classes, and for a label outside of them.
    """
    rest = np.array(logits, dtype=np.float64)
    classes = rest.shape[-1]
    y = np.asarray(y)
    if classes < 2:
        raise ValueError(f"logits must be of at least two classes, not {classes}")
    if y.size and not 0 <= y.min() <= y.max() < classes:
        raise ValueError(f"labels must be in 0…{classes - 1}, the classes of the logits")
    label = np.broadcast_to(y, rest.shape[:-1])[..., None]
    label_logit = np.take_along_axis(rest, label, axis=-1)
    np.put_along_axis(rest, label, -np.inf, axis=-1)
    return label_logit, rest
