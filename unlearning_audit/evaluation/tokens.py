"""Statistics of attacks on language models, computed from values of single tokens."""

import numpy as np

from unlearning_audit.evaluation import signals, thresholds
from unlearning_audit.evaluation.shadow import Shadow


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


def thresholded(
    value: np.ndarray, of_shadow: np.ndarray, logits: np.ndarray, y: np.ndarray, shadow: Shadow
) -> tuple[np.ndarray, np.ndarray]:
    """Return score and decision from a statistic that is larger for members, each [models, samples].

    The decision compares with one threshold for all classes, which is learned on the shadow models.

    Parameters
    ----------
    value
        float64 [models, samples]: the statistic of the audited models.
    of_shadow
        float64 [models, samples]: the statistic of the shadow models.
    logits
        [models, samples, classes]: the logits of the audited models.
    y
        The labels of the audited models.
    shadow
        The shadow models.
    """
    rows = signals.known_values(of_shadow, shadow, classes=logits.shape[-1])
    return value, thresholds.decide(value, rows, logits, y, per_class=False)
