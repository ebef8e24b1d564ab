"""Statistics of attacks on language models, computed from values of single tokens."""

import numpy as np

from unlearning_audit.evaluation import signals, thresholds
from unlearning_audit.evaluation.shadow import Shadow


def lowest(value: np.ndarray, share: float) -> np.ndarray:
    """Return the mean of the lowest ``share`` of the tokens of each sample, [..., samples]: ⌊share·L⌋ of L tokens, but
    at least one.

    ``value`` float64 [..., samples, tokens], NaN where a token does not count. NaN for a sample without tokens.
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

    Parameters
    ----------
    value
        float64 [models, samples]: the statistic of the audited models, whose ``logits`` and labels ``y`` say what the
        classes are.
    of_shadow
        That of the shadow models, from which one threshold for all classes is learned.
    """
    rows = signals.known_values(of_shadow, shadow, classes=logits.shape[-1])
    return value, thresholds.decide(value, rows, logits, y, per_class=False)
