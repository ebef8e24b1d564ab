"""NeurIPS 2023 competition: many models that all forget the same few samples, against as many retrained ones.

Triantafillou et al. 2024, §3. With ``originals: one`` every unlearned model starts from the same original, as
in the competition; with ``many`` each starts from an original of its own.
"""

from typing import Literal

import numpy as np
from pydantic import Field

from unlearning.artifacts.arrays import Data, Membership
from unlearning.plugins.declarations import Protocol
from unlearning.plugins.settings import Settings
from unlearning.randomness.keyed import generator, seed_of

PROTOCOL = Protocol(
    metrics=("competition", "accuracy"),
    also=("relearn",),
    references=("retrain", "retrain_control"),
    counts=("blocks",),
)


class Options(Settings):
    """``share`` of the training part to be forgotten; ``blocks`` of ``models_per_block`` models (512 in all there)."""

    share: float = Field(0.02, gt=0, lt=1)
    originals: Literal["one", "many"] = "one"
    blocks: int = Field(4, ge=1)
    models_per_block: int = Field(16, ge=1)


def blocks(options: Options) -> dict[str, int]:
    """One population."""
    return {"models": options.blocks}


def models(options: Options) -> int:
    """Models of a block."""
    return options.models_per_block


def draw(block: int, population: str, data: Data, options: Options, seed: int) -> Membership:
    """Memberships of one block. Raises ValueError if the share is less than one sample."""
    samples = np.flatnonzero(data.part == 0)
    k = int(options.share * len(samples) + 1e-9)
    if k < 1:
        raise ValueError(
            f"share={options.share} of {len(samples)} samples is less than one; use more data or a larger share"
        )
    train = np.tile(data.part == 0, (options.models_per_block, 1))
    forget = np.zeros(train.shape, bool)
    forget[:, generator(seed, "forget").permutation(samples)[:k]] = True
    numbers = np.arange(options.models_per_block) + block * options.models_per_block
    one = options.originals == "one"
    return Membership(
        train=train, forget=forget, heldout=np.zeros(train.shape, bool),
        seed=np.array([seed_of(seed, "model", 0 if one else int(n)) for n in numbers], np.int64),
        replicate=numbers if one else None,
        split=np.zeros(len(train), np.int64), block=np.full(len(train), block, np.int64),
        shadow=np.zeros(len(train), bool),
    )  # fmt: skip
