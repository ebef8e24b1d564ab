"""Protocols, a file each: they draw which models see and forget which samples.

A protocol defines four things: ``class Options(Settings)``; ``blocks(options)``, the number of blocks of each
population; ``draw(block, population, data, options, seed)``, the memberships of one block; and ``PROTOCOL``, which
declares what is computed from its models (`plugins.declarations.Protocol`). A block is the smallest set of models that
is balanced in itself. Block i depends only on (seed, i), so that more blocks never change the earlier ones.

A protocol may define ``selects_from(options)``, which returns the name of a scenario whose selection it needs. Then
``draw`` gets that `Selection` as its last argument.

What protocols are written with is imported from here.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from unlearning_audit.evaluation.arrays import Data, Membership, Selection
from unlearning_audit.plugins.declarations import Protocol
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.randomness.keyed import generator, seed_of

__all__ = ["Data", "Membership", "Protocol", "Selection", "Settings", "generator", "members", "seed_of"]


def members(
    block: int, seeds: Iterable[int], train: np.ndarray, forget: np.ndarray, **more: np.ndarray | None
) -> Membership:
    """Return the memberships of the models of a block.

    By default nothing is held out, and all models are audited ones of one split.

    Parameters
    ----------
    block
        The block's number.
    seeds
        One for each model.
    train, forget
        bool [models, samples]: what each model is trained on, and what it has to forget.
    more
        Other fields of `Membership`.
    """
    zero = np.zeros(len(train), np.int64)
    fields: dict[str, Any] = {"heldout": np.zeros_like(forget), "split": zero, "block": zero + block}
    fields |= {"shadow": np.zeros(len(train), bool), **more}
    return Membership(train=train, forget=forget, seed=np.array([*seeds], np.int64), **fields)
