"""The steps of `prepare`, each a pure function of arrays."""

import numpy as np


def count(option: str, value: float, n: int) -> int:
    """Return ``value`` as a number of samples from 1 to ``n``. A float is a fraction of ``n``, which gives the nearest
    number, an int is a number. Raises ValueError that names the ``option``."""
    fraction = isinstance(value, float)
    number = int(value * n + 0.5 if fraction else value)  # a fraction gives the nearest number
    if isinstance(value, bool) or not 1 <= number <= n or (fraction and value > 1):
        raise ValueError(f"{option}: {value} must be a number of samples from 1 to {n} or a fraction in (0, 1]")
    return number


def first_in_order(candidates: np.ndarray, order: np.ndarray, number: int) -> np.ndarray:
    """Return a mask of the ``number`` candidates that come first in ``order``, bool [n]; of all, if there are fewer.

    Parameters
    ----------
    candidates
        bool [n]: the samples among which to choose.
    order
        A permutation [n].
    """
    chosen = np.zeros_like(candidates)
    chosen[order[candidates[order]][:number]] = True  # the candidates in this order, cut off after ``number`` of them
    return chosen


def first_of_each_class(candidates: np.ndarray, y: np.ndarray, classes: int, number: int) -> np.ndarray:
    """Return a mask of the first ``number`` of ``candidates`` bool [n] with each label of ``y`` [n], bool [n]. Raises
    ValueError for a class with fewer, and for a ``number`` below 1."""
    chosen = np.zeros_like(candidates)
    for label in range(classes):
        rows = np.flatnonzero(candidates & (y == label))
        if not 1 <= number <= len(rows):
            raise ValueError(f"per_class: cannot keep {number} of the {len(rows)} training samples of class {label}")
        chosen[rows[:number]] = True
    return chosen


def randomise(
    y: np.ndarray, candidates: np.ndarray, classes: int, share: float, kind: str, rng: np.random.Generator
) -> np.ndarray:
    """Return the labels ``y`` int64 [n], in which a ``share`` of ``candidates`` bool [n] has a new label, drawn by
    ``rng``: from all classes for the ``kind`` "any", or from all but the sample's own for "other". Raises ValueError
    for a share outside 0 to 1 and for any other kind."""
    if not 0 <= share <= 1:
        raise ValueError(f"label_noise: {share} must be a share from 0 to 1")
    if kind not in ("any", "other"):
        raise ValueError(f"label_noise_kind: {kind!r} must be 'any' or 'other'")
    order = rng.permutation(len(y))
    if kind == "any":
        labels = rng.integers(classes, size=len(y))
    else:
        labels = (y + rng.integers(1, classes, size=len(y))) % classes
    relabelled = first_in_order(candidates, order, int(share * candidates.sum() + 0.5))  # + 0.5: to the nearest number
    return np.where(relabelled, labels, y)


def luma(x: np.ndarray, *, interleaved: bool) -> np.ndarray:
    """Convert RGB to grey, uint8 [n, 3, h, w] → uint8 [n, 1, h, w], with weights .299, .587, .114 in 16-bit fixed
    point, rounded.

    Parameters
    ----------
    interleaved
        First read the bytes of the channel-last image as if channels came first.

    Raises
    ------
    ValueError
        For other samples.
    """
    if x.dtype != np.uint8 or x.shape[1] != 3:
        raise ValueError(f"greyscale: needs uint8 images with 3 channels, not {x.dtype} {x.shape[1:]}; leave it out")
    if interleaved:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).reshape(x.shape)
    grey = np.full((len(x), *x.shape[2:]), 1 << 15, dtype=np.uint32)  # a half, by which the shift below rounds
    for channel, weight in enumerate((19595, 38470, 7471)):  # .299, .587, .114 times 2^16
        grey += x[:, channel] * np.uint32(weight)
    return (grey >> 16).astype(np.uint8)[:, None]
