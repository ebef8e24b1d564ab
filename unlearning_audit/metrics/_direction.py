"""Whether an attack that says yes means more familiar or less: attacks that learn from unlearned models find out."""

import numpy as np


def familiar(*, score: np.ndarray, phi: np.ndarray, rows: np.ndarray) -> int:
    """+1 if higher scores go with higher confidence in the label, −1 if with lower, by ranks over all models.

    ``score`` and ``phi`` float64, ``rows`` bool, all [models, samples]. Only what the attack says is looked at, never
    who was forgotten, so the direction of a difference that is not there stays a fair coin. +1 where neither holds.
    """
    finite = rows & ~np.isnan(score)
    ranks = [value[finite].argsort(kind="stable").argsort(kind="stable") for value in (score, phi)]
    _, group = np.unique(score[finite], return_inverse=True)
    total = np.bincount(group, ranks[0])
    tied = (total / np.bincount(group))[group] if len(group) else total
    agreement = (tied - tied.mean()) @ (ranks[1] - ranks[1].mean()) if len(group) else 0.0
    return -1 if agreement < 0 else 1
