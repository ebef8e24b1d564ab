"""Direction of an attack: whether its score rises or falls with familiarity. Attacks that learn from unlearned models
may find either."""

import numpy as np


def familiar(*, score: np.ndarray, phi: np.ndarray, rows: np.ndarray) -> int:
    """Return +1 if higher scores go with higher confidence in the label, −1 if with lower, by ranks over all models.

    ``score`` and ``phi`` float64, ``rows`` bool, all [models, samples]. Only the scores are used, never who was
    forgotten. So if no difference exists, the direction of a chance difference stays a fair coin. +1 where neither
    holds.
    """
    finite = rows & ~np.isnan(score)
    ranks = [value[finite].argsort(kind="stable").argsort(kind="stable") for value in (score, phi)]
    _, group = np.unique(score[finite], return_inverse=True)
    total = np.bincount(group, ranks[0])
    tied = (total / np.bincount(group))[group] if len(group) else total
    agreement = (tied - tied.mean()) @ (ranks[1] - ranks[1].mean()) if len(group) else 0.0
    return -1 if agreement < 0 else 1
