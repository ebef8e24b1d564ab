"""Interclass confusion (IC) test: swap the labels of a part of two classes, train, unlearn the confused set.

Goel et al. 2023, as used in Tu, Hu & Ma 2024, §4.4. A block is one random choice of the confused samples. Its models
see the whole training part, or a random half of it, with the labels of the confused samples swapped. Then they have to
forget exactly these samples.
"""

from typing import Literal

import numpy as np
from pydantic import Field, field_validator

from unlearning_audit.protocols import Data, Membership, Protocol, Settings, generator, members, seed_of

PROTOCOL = Protocol(offers=("confused_labels", "forgotten", "weights"), counts=("repeats",), system="swap")


class Options(Settings):
    """The two ``classes``, the ``share`` of each that is confused, ``repeats`` (blocks) and ``models`` per block.

    ``pool``: models are trained on the ``whole`` training part, or on the ``half`` of it that is the game's in the SWAP
    test (the same samples for the same data and seed).
    """

    classes: tuple[int, int] = (3, 8)
    share: float = Field(0.5, gt=0, le=1)
    repeats: int = Field(1, ge=1)
    models: int = Field(3, ge=1)
    pool: Literal["whole", "half"] = "whole"

    @field_validator("classes")
    @classmethod
    def _differ(cls, value: tuple[int, int]) -> tuple[int, int]:
        """Return ``value``. Raise ValueError unless it names two different classes."""
        if value[0] == value[1] or min(value) < 0:
            raise ValueError("must be the numbers of two different classes, from 0")
        return value


def blocks(options: Options) -> dict[str, int]:
    """Return the number of blocks of the only population."""
    return {"confusions": options.repeats}


def models(options: Options) -> int:
    """Return the number of models of a block."""
    return options.models


def draw(block: int, population: str, data: Data, options: Options, seed: int) -> Membership:
    """Return the memberships and labels of one block of models.

    The models are trained on the whole training part or, for the pool "half", on a random half of it, the same in every
    block. Random samples of both ``options.classes`` have the label of the other class in training, and are to be
    forgotten: of each class as many as ``options.share`` of the smaller one, rounded down. They are drawn by ``seed``,
    anew for each block.

    Parameters
    ----------
    block
        The block's number.
    population
        Not used, as there is only one.

    Raises
    ------
    ValueError
        If a class has no sample, or if the share of its samples is less than one.
    """
    pool = data.part == 0
    if options.pool == "half":
        order = generator(seed, "halves").permutation(np.flatnonzero(pool))
        pool = np.isin(np.arange(len(pool)), order[: len(order) // 2])
    train = np.tile(pool, (options.models, 1))
    candidates = [np.flatnonzero(pool & (data.y == label)) for label in options.classes]
    # All blocks confuse the same number of samples of each class, so that all models forget equally many.
    k = int(options.share * min(len(samples) for samples in candidates) + 1e-9)
    if k < 1:
        raise ValueError(f"classes {options.classes} leave nothing to confuse; choose classes that the data have")
    labels = np.tile(data.y, (options.models, 1))
    forget = np.zeros(train.shape, bool)
    for number, other in ((0, 1), (1, 0)):  # of the two classes
        rows = generator(seed, "confusion", block, number).permutation(candidates[number])[:k]
        forget[:, rows] = True
        labels[:, rows] = options.classes[other]
    seeds = (seed_of(seed, "model", block, model) for model in range(options.models))
    return members(block, seeds, train, forget, labels=labels)
