"""zlib: how much less surprising a text is to the model than to a compressor (Carlini et al. 2021)."""

import numpy as np

from unlearning_audit.adversary import tokens as of_tokens
from unlearning_audit.adversary.reference import LOGP
from unlearning_audit.plugins.settings import Settings

NEEDS = ("tokens", "compressed")


class Options(Settings):
    """Nothing to choose."""


def score(logits, y, reference, options, rng, tokens, compressed):
    """Score: the sum of log p over the scored tokens, divided by the bytes of the text after zlib; decision: at or
    above the threshold learned on the reference."""
    value, reference_value = ratio(tokens, compressed), ratio(reference.tokens, reference.compressed)
    return of_tokens.thresholded(value, reference_value, logits, y, reference)


def ratio(tokens: np.ndarray, compressed: np.ndarray) -> np.ndarray:
    """Σ log p / bytes, float64 [models, samples]; NaN for samples without tokens."""
    scored = ~np.isnan(tokens[..., LOGP])
    total = np.where(scored, tokens[..., LOGP], 0.0).sum(-1)
    return np.where(scored.any(-1), total / compressed, np.nan)
