"""Min-K %++: Min-K % of log-probabilities standardised under the model's own prediction (Zhang et al. 2025)."""

import numpy as np
from pydantic import Field

from unlearning_audit.attacks import Score, Settings, Shadow, signals, thresholds
from unlearning_audit.evaluation.shadow import LOGP, MEAN, SPREAD

NEEDS = "tokens"
#: The share of tokens that counts unless a study says otherwise, and always in `text_score`.
SHARE = 0.2

#: The least standard deviation of log p; that of a certain prediction is 0.
SMALLEST = 1e-3


class Options(Settings):
    """``share`` of the scored tokens that counts, at least one of them (Zhang et al.: .2)."""

    share: float = Field(SHARE, gt=0, le=1)


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, options: Options, tokens: np.ndarray) -> Score:
    """Return as the score the mean of the lowest (log p − μ)/σ of a text's tokens, the share ``options.share`` of its
    scored ones, rounded down, but at least one. μ and σ are mean and standard deviation of log p over the vocabulary.
    The decision is whether the score is at least the threshold, one for all classes, at which ½(TPR + TNR) is largest
    on the shadow models.

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
        float64 [models, samples, tokens, 4]: log p, μ, σ and rank of each scored token by the audited models; NaN after
        a text's last token.
    """
    value = signals.lowest(standardised(tokens), options.share)
    shadow_value = signals.lowest(standardised(shadow.tokens), options.share)
    return thresholds.learned(value, shadow_value, logits, y, shadow, per_class=False)


def standardised(tokens: np.ndarray) -> np.ndarray:
    """Return (log p − μ)/σ of each token, float64 [..., tokens], with mean μ and standard deviation σ of log p under
    the model's prediction; σ is at least `SMALLEST`. ``tokens`` float64 [..., tokens, 4]: log p, μ, σ and rank."""
    return np.asarray((tokens[..., LOGP] - tokens[..., MEAN]) / np.maximum(tokens[..., SPREAD], SMALLEST))


def text_score(tokens: np.ndarray, compressed: np.ndarray | None) -> np.ndarray:
    """Return the Min-K %++ score of each text, float64 [...]: the mean of the lowest share `SHARE` of its tokens' (log
    p − μ)/σ.

    Tokens with σ = 0 are left out, whereas the attack (`score`) raises their σ to `SMALLEST`. NaN for a text without
    tokens.

    Parameters
    ----------
    tokens
        float64 [..., tokens, 4]: log p, μ, σ and rank of each token; NaN after a text's last token.
    compressed
        Not used; other attacks read it.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (tokens[..., LOGP] - tokens[..., MEAN]) / tokens[..., SPREAD]
    return signals.lowest(np.where(np.isfinite(value), value, np.nan), SHARE)
