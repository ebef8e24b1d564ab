"""Models that answer alike although they are others: a sign that a method mixed them, or that one was saved twice.

Answers are compared as logits minus their mean over the classes, since softmax does not see that mean. How far two
models are apart is the root mean square of the difference, in units of how much the answers of the first vary from
sample to sample; a model that says the same of every sample is like no other.
"""

from collections.abc import Iterator

import numpy as np

#: Samples on which models are compared, at most; so many tell models apart.
SAMPLES = 256

#: What varies by less than this share of its size varies by rounding.
ROUNDING = 1e-6

#: Models answer alike where they are apart by less than this share of what they were apart before unlearning.
ALIKE = 0.01

#: Where nothing is known of before: apart by less than this share of what answers vary by from sample to sample.
TWINS = 1e-4


def evenly(samples: np.ndarray, most: int = SAMPLES) -> np.ndarray:
    """At most so many of ``samples`` int64 [samples], evenly spaced."""
    return samples[np.unique(np.linspace(0, len(samples) - 1, min(most, len(samples))).astype(np.int64))]


def centred(logits: np.ndarray) -> np.ndarray:
    """``logits`` [models, samples, classes] minus their mean over classes, float64 [models, samples · classes]."""
    wide = logits.astype(np.float64)
    return (wide - wide.mean(axis=-1, keepdims=True)).reshape(len(wide), -1)


def variation(logits: np.ndarray) -> np.ndarray:
    """How much the answers of each model vary from sample to sample, float64 [models]: a standard deviation."""
    wide = centred(logits).reshape(logits.shape)
    return np.sqrt(wide.var(axis=1).mean(axis=-1))


def apart(logits: np.ndarray, references: np.ndarray) -> np.ndarray:
    """How far every model is from every other one, float64 [models, others]; infinite for a model that says the same
    of every sample. Both [models or others, samples, classes]."""
    first, second = centred(logits), centred(references)
    squared = np.stack([np.square(model - second).mean(axis=1) for model in first])
    scale, size = variation(logits)[:, None], np.abs(first).max(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(scale > ROUNDING * size, np.sqrt(squared) / scale, np.inf)


def mixed(before: np.ndarray, after: np.ndarray) -> Iterator[tuple[str, int, int]]:
    """Pairs of models that were others before unlearning and answer alike after it ("alike", i, j), i < j; then models
    that answer as another one did before ("was", i, j). ``before`` and ``after`` [models, samples, classes]. Nothing is
    said of two models that both said the same of every sample before: they have no distance to compare with."""
    initially, now, crossed = apart(before, before), apart(after, after), apart(after, before)
    initially = np.minimum(initially, initially.T)  # a model that once said the same of every sample has one side only
    initially = np.where(np.isfinite(initially), initially, 0.0)
    for i, j in zip(*np.nonzero(now < ALIKE * initially), strict=True):
        if i < j:
            yield "alike", int(i), int(j)
    diagonal = np.diagonal(crossed)[:, None]
    for i, j in zip(*np.nonzero((crossed < ALIKE * diagonal) & (crossed < ALIKE * initially)), strict=True):
        if i != j:
            yield "was", int(i), int(j)


def twins(logits: np.ndarray, references: np.ndarray | None = None) -> Iterator[tuple[int, int]]:
    """Pairs of models i < j of ``logits`` that are hardly apart; with ``references``, of one of each."""
    near = apart(logits, logits if references is None else references) < TWINS
    for i, j in zip(*np.nonzero(near), strict=True):
        if references is not None or i < j:
            yield int(i), int(j)
