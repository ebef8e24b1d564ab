"""Find models that answer alike although they should differ: a sign that a method mixed them, or that one was saved
twice.

Models are compared by their logits minus the mean over the classes, which softmax ignores. The distance of two models
is the root mean square of the difference, divided by the standard deviation of the first model's logits between
samples. A model with constant logits has an infinite distance from every other.
"""

from collections.abc import Iterator

import numpy as np

#: The largest number of samples on which models are compared. They suffice to tell models apart.
SAMPLES = 256

#: A variation below this share of the size is due to rounding.
ROUNDING = 1e-6

#: Models answer alike if their distance is below this share of their distance before unlearning.
ALIKE = 0.01

#: The distance below which models answer alike if their distance before unlearning is unknown.
TWINS = 1e-4


def evenly(samples: np.ndarray, most: int = SAMPLES) -> np.ndarray:
    """Return up to ``most`` of ``samples`` int64 [samples], evenly spaced."""
    return samples[np.unique(np.linspace(0, len(samples) - 1, min(most, len(samples))).astype(np.int64))]


def centred(logits: np.ndarray) -> np.ndarray:
    """Return ``logits`` [models, samples, classes] minus their mean over classes, float64 [models, samples ·
    classes]."""
    wide = logits.astype(np.float64)
    return np.asarray(wide - wide.mean(axis=-1, keepdims=True)).reshape(len(wide), -1)


def distances(logits: np.ndarray, references: np.ndarray) -> np.ndarray:
    """Return the distance of every model from every reference, float64 [models, references].

    The distance is the root mean square of the difference of both models' logits, each minus its mean over classes,
    divided by the standard deviation of the model's logits between samples (the root of the mean variance over
    classes). A model whose logits are constant, up to rounding, has an infinite distance.

    Parameters
    ----------
    logits
        [models, samples, classes]: the logits of the models.
    references
        [references, samples, classes]: the logits of the references.
    """
    models, others = centred(logits), centred(references)
    squared = np.stack([np.square(model - others).mean(axis=1) for model in models])
    # How much each model's logits vary between samples, and how large they are.
    scale = np.sqrt(models.reshape(logits.shape).var(axis=1).mean(axis=-1))[:, None]
    size = np.abs(models).max(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(scale > ROUNDING * size, np.sqrt(squared) / scale, np.inf)


def signs_of_mixing(before: np.ndarray, after: np.ndarray) -> Iterator[tuple[str, int, int]]:
    """Yield signs that a method mixed up models: ("alike", i, j) and ("was", i, j), where i and j are numbers of
    models.

    "alike", i < j: models i and j answer alike after unlearning, but differed before it. Their distance (`distances`)
    after unlearning is below the share `ALIKE` (1 %) of their distance before it, or of 1 if that is less.

    "was", i ≠ j: model i answers after unlearning as model j answered before it, and not as model i answered before it.
    The distance from i after to j before unlearning is below the share `ALIKE` of two distances: from i after to i
    before, and between i and j, both before, or 1 if that is less.

    Pairs in which both models had constant logits before are left out, because they have no distance to compare with.

    Parameters
    ----------
    before, after
        [models, samples, classes]: the logits before and after unlearning.
    """
    between_before, between_after = distances(before, before), distances(after, after)
    after_to_before = distances(after, before)
    # The distance from a model with constant logits is infinite, the distance to it is not.
    between_before = np.minimum(between_before, between_before.T)
    # The distance of models whose logits hardly vary has no bound, and a share of it would not be small.
    between_before = np.where(np.isfinite(between_before), np.minimum(between_before, 1.0), 0.0)
    for i, j in np.argwhere(np.triu(between_after < ALIKE * between_before, k=1)):  # i < j
        yield "alike", int(i), int(j)
    moved = np.diagonal(after_to_before)[:, None]  # how far each model is from itself before
    was = (after_to_before < ALIKE * moved) & (after_to_before < ALIKE * between_before)
    for i, j in np.argwhere(was):  # never i = j, since no distance is below a share of itself
        yield "was", int(i), int(j)


def twins(logits: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield pairs of models i < j that are nearly equal, from their ``logits`` [models, samples, classes]: the distance
    from i to j (`distances`, in standard deviations of the logits of i) is below `TWINS`, 1e-4."""
    for i, j in np.argwhere(np.triu(distances(logits, logits) < TWINS, k=1)):
        yield int(i), int(j)
