"""What the adversary learns from: shadow models that it trained itself, with known members."""

from dataclasses import dataclass

import numpy as np

from unlearning_audit.plugins.declarations import OFFERS

#: What attacks can read besides logits. ``squared_norms``: of every sample ‖∂ log p_y/∂θ‖², float64 [models, samples].
#: ``tokens``: of every scored token of samples that are forgotten or held out, float64 [models, samples, most, 4], in
#: the order of `LOGP` and so on, NaN after a sample's last one and where a sample was not asked about.
#: ``compressed``: bytes of a sample's text after zlib, float64 [models, samples].
#: ``neighbours``: log p, the mean over scored tokens, of views that differ from a sample in a few tokens (without any,
#: of its paraphrases), float64 [models, samples, views], NaN where a sample has fewer.
#: ``reference_logp``: log p of the label under the adversary's models that never saw a sample, before unlearning, their
#: mean without the model itself, float64 [models, samples], NaN where all of them saw it.
#: ``before``: φ of the same models before unlearning, float64 [models, samples]. An attack that reads it is asked in
#: the form `BOTH` alone: what it finds of retrained models, too, is what the models before unlearning tell.
SIGNALS = ("squared_norms", "tokens", "compressed", "neighbours", "reference_logp", "before")

#: What metrics can read besides logits: the same, and features, answers of language models, and models that go on.
READINGS = (*SIGNALS, "features", "generations", "sampled", "relearned")

#: What only language models can be asked for; their files declare it in ``READINGS``.
OF_LANGUAGE_MODELS = ("tokens", "generations", "sampled")

#: The form of attacks that compare each model with what it was before unlearning.
BOTH = "both"

#: What an attack returns: score, a number, and decision, bool, each [models, samples].
Score = tuple[np.ndarray, np.ndarray]

#: Places in the last axis of tokens: log p; mean and standard deviation of log p under the model; rank from 0.
LOGP, MEAN, SPREAD, RANK = range(4)


def needs(declared: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """The signals that ``NEEDS`` of a file names, without what it asks of a protocol."""
    names = (declared,) if isinstance(declared, str) else declared or ()
    return tuple(name for name in names if name not in OFFERS)


def mask_of(signal: dict[str, np.ndarray]) -> np.ndarray:
    """Of which rows the signals are known, bool [models, rows] (or [], all): no token is of those that models were not
    asked about, and no reference of those that all shadow models saw."""
    mask = np.array(True)
    if "tokens" in signal:
        mask = mask & ~np.isnan(signal["tokens"]).all((-1, -2))
    if "reference_logp" in signal:
        mask = mask & ~np.isnan(signal["reference_logp"])
    return mask


@dataclass(frozen=True)
class Reference:
    """Models whose membership the adversary knows, because it trained them on its own half of the data.

    ``logits`` float32 [models, samples, classes]; ``y`` int64 [samples] or [models, samples], the observed
    labels; ``member`` and ``nonmember`` bool [models, samples], the rows that the adversary may learn from;
    ``squared_norms`` and so on as in `SIGNALS`, or None, for attacks that need them; ``index`` int64 [samples], which
    samples of the data the columns are, or None where nobody says.
    """

    logits: np.ndarray
    y: np.ndarray
    member: np.ndarray
    nonmember: np.ndarray
    squared_norms: np.ndarray | None = None
    tokens: np.ndarray | None = None
    compressed: np.ndarray | None = None
    neighbours: np.ndarray | None = None
    reference_logp: np.ndarray | None = None
    before: np.ndarray | None = None
    index: np.ndarray | None = None
