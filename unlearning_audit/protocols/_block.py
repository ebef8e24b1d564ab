"""The memberships of the models of one block."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from unlearning_audit.evaluation.arrays import Membership


def members(
    block: int, seeds: Iterable[int], train: np.ndarray, forget: np.ndarray, **more: np.ndarray | None
) -> Membership:
    """Return the memberships of the models of a block, bool [models, samples]: what they were trained on, and forget.

    ``block``: its number; ``seeds``: one for each model; ``more``: other fields of `Membership`. By default nothing is
    held out, and all models are audited ones of one split.
    """
    zero = np.zeros(len(train), np.int64)
    fields: dict[str, Any] = {
        "heldout": np.zeros_like(forget),
        "split": zero,
        "block": zero + block,
        "shadow": zero > 0,
    }
    return Membership(train=train, forget=forget, seed=np.array([*seeds], np.int64), **fields | more)
