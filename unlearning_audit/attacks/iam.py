"""IAM: where a model stands between never having seen a sample and knowing it as before unlearning (Wang et al. 2025).

The gap between shadow models that never saw a sample and the model before unlearning is divided into even steps; the
more of these the model after unlearning lies above, the more of the sample it kept. Below all of them, it went too far.
"""

import numpy as np
from pydantic import Field
from scipy import special

from unlearning_audit.evaluation import signals, thresholds
from unlearning_audit.evaluation.reference import Reference, Score
from unlearning_audit.plugins.settings import Settings

NEEDS = ("before", "reference_logp")

#: Nearer to 1 no probability of a model that never saw a sample is taken to be.
SUREST = -1e-12


class Options(Settings):
    """``steps`` into which the gap is divided; ``per_class``: one threshold for each class; false: one for all."""

    steps: int = Field(100, ge=2)
    per_class: bool = True


def score(
    logits: np.ndarray,
    y: np.ndarray,
    reference: Reference,
    options: Options,
    rng: np.random.Generator,
    before: np.ndarray,
    reference_logp: np.ndarray,
) -> Score:
    """Score: 1 − `share_kept`, the higher the more a model lost of what it knew; decision: at or above the threshold of
    the class, learned on the reference.

    ``before`` and ``reference_logp`` float64 [models, samples] of the audited models, signals. Raises
    ValueError for samples that all shadow models saw and as ``signals.known_values``.
    """
    if np.isnan(reference_logp).any():
        raise ValueError(f"{int(np.isnan(reference_logp).any(axis=0).sum())} samples were seen by every shadow model")
    value = 1 - share_kept(signals.per_model(signals.phi, logits, y), before, reference_logp, options.steps)
    after = signals.per_model(signals.phi, reference.logits, reference.y)
    learned = 1 - share_kept(after, reference.before, reference.reference_logp, options.steps)
    examples = signals.known_values(learned, reference, classes=logits.shape[-1])
    return value, thresholds.decide(value, examples, logits, y, per_class=options.per_class)


def share_kept(after: np.ndarray, before: np.ndarray, unseen_logp: np.ndarray, steps: int) -> np.ndarray:
    """How much of each sample a model kept, float64 [models, samples] from 0 to 1; NaN where ``unseen_logp`` is.

    ``after`` and ``before`` φ float64 [models, samples] of the same models; ``unseen_logp`` the mean log p of models
    that never saw a sample. With u its φ and c(α) = u + α·(before − u): Σ α′·Φ((after − c(α))/σ(α)) / Σ α′ over the
    ``steps`` α from 0 to below 1, each with the weight of the next, σ(α) the standard deviation of c(α) over the
    samples of a model. The published code (iam_score.py) takes its "fixed variance" over shadow models and samples
    together, of the mean signal, and by default a Gumbel form on −log(.01 − log(p + 1e-5)): this equals its variant
    ``p_IPapprox_carlogi_simp`` only with one shadow model.
    """
    logp = np.minimum(unseen_logp, SUREST)
    unseen = logp - np.log(-np.expm1(logp))
    shares = np.linspace(0.0, 1.0, steps)
    value = np.zeros(after.shape)
    for share, weight in zip(shares[:-1], shares[1:] / shares[1:].sum(), strict=True):
        centre = unseen + share * (before - unseen)
        spread = np.nanstd(centre, axis=1, keepdims=True)
        value += weight * special.ndtr((after - centre) / np.where(spread > 0, spread, 1.0))
    return value
