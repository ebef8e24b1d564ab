"""Min-K %: the mean log-probability of the least likely tokens of a text (Shi et al. 2024)."""

import numpy as np
from pydantic import Field

from unlearning_audit.attacks import Score, Settings, Shadow, signals, thresholds
from unlearning_audit.evaluation.shadow import LOGP

NEEDS = "tokens"
#: The share of tokens that counts unless a study says otherwise, and always in `text_score`.
SHARE = 0.2


class Options(Settings):
    """``share`` of the scored tokens that counts, at least one of them (Shi et al.: .2; MUSE: .4)."""

    share: float = Field(SHARE, gt=0, le=1)


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, options: Options, tokens: np.ndarray) -> Score:
    """Return as the score the mean log p of the least likely tokens of a text, the share ``options.share`` of its
    scored ones, rounded down, but at least one. The decision is whether the score is at least the threshold, one for
    all classes, at which ½(TPR + TNR) is largest on the shadow models.

    Raises ValueError if logits and labels do not fit each other, if the shadow models have other classes than the
    audited models, or if they have no members or no non-members.

    Parameters
    ----------
    logits
        float [models, samples, classes]: logits of the audited models.
    y
        int [samples] or [models, samples]: labels.
    shadow
        Logits, labels and ``tokens`` of models with known members, on which the attack learns.
    tokens
        float64 [models, samples, tokens, 4]: four numbers of each scored token by the audited models, log p first; NaN
        after a text's last token.
    """
    value = signals.lowest(tokens[..., LOGP], options.share)
    shadow_value = signals.lowest(shadow.tokens[..., LOGP], options.share)
    return thresholds.learned(value, shadow_value, logits, y, shadow, per_class=False)


def text_score(tokens: np.ndarray, compressed: np.ndarray | None) -> np.ndarray:
    """Return the Min-K % score of each text, float64 [...]: the mean of the lowest share `SHARE` of its tokens' log p,
    at least one. NaN for a text without tokens.

    Parameters
    ----------
    tokens
        float64 [..., tokens, 4]: four numbers of each token, log p first; NaN after a text's last token.
    compressed
        Not used; other attacks read it.
    """
    return signals.lowest(tokens[..., LOGP], SHARE)
