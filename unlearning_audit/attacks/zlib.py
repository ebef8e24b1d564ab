"""zlib: how much less surprising a text is to the model than to a compressor (Carlini et al. 2021)."""

import numpy as np

from unlearning_audit.attacks import Score, Shadow, thresholds
from unlearning_audit.evaluation.shadow import LOGP

NEEDS = ("tokens", "compressed")


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, tokens: np.ndarray, compressed: np.ndarray) -> Score:
    """Return as the score the sum of log p over the scored tokens, divided by the bytes of the text after zlib.

    The decision is whether the score is at least the threshold, one for all classes, at which ½(TPR + TNR) is largest
    on the shadow models. For a text without tokens the score is NaN, and the decision False.

    Raises ValueError if logits and labels do not fit each other, if the shadow models have other classes than the
    audited models, or if they have no members or no non-members.

    Parameters
    ----------
    logits
        float [models, samples, classes]: logits of the audited models.
    y
        int [samples] or [models, samples]: labels.
    shadow
        Logits, labels, ``tokens`` and ``compressed`` of models with known members, on which the attack learns.
    tokens
        float64 [models, samples, tokens, 4]: four numbers of each scored token by the audited models, log p first; NaN
        after a text's last token.
    compressed
        float64 [models, samples]: the bytes of each text after zlib.
    """
    value, shadow_value = ratio(tokens, compressed), ratio(shadow.tokens, shadow.compressed)
    return thresholds.learned(value, shadow_value, logits, y, shadow, per_class=False)


def ratio(tokens: np.ndarray, compressed: np.ndarray, *, mean: bool = False) -> np.ndarray:
    """Return the sum of log p over a text's tokens, or with ``mean`` their mean, divided by the text's bytes after
    zlib: float64 [models, samples], NaN for texts without tokens.

    Parameters
    ----------
    tokens
        float64 [models, samples, tokens, 4]: four numbers of each scored token, of which log p, the first, is read; NaN
        after a text's last token.
    compressed
        float64 [models, samples]: the number of bytes of each text after zlib.
    """
    scored = ~np.isnan(tokens[..., LOGP])
    logp = np.where(scored, tokens[..., LOGP], 0.0).sum(-1)
    if mean:
        logp = logp / np.maximum(scored.sum(-1), 1)
    return np.where(scored.any(-1), logp / compressed, np.nan)


def text_score(tokens: np.ndarray, compressed: np.ndarray) -> np.ndarray:
    """Return the zlib score of each text, float64 [models, samples]: the mean log p of its tokens over its bytes after
    zlib. NaN for samples without tokens. ``tokens`` float64 [models, samples, tokens, 4]: four numbers of each token,
    log p first; ``compressed`` float64 [models, samples]."""
    return ratio(tokens, compressed, mean=True)
