"""Efficacy by epistemic uncertainty: models that forget a part of one class.

Becker & Liebig 2022, §4. Every model sees the whole training part and has to forget the first samples of one class.
Seeds differ between models, memberships do not.
"""

import numpy as np
from pydantic import Field

from unlearning_audit.protocols import Data, Membership, Protocol, Settings, members, seed_of

PROTOCOL = Protocol(offers=("seeds", "forgotten", "weights"), own_rows=True, counts=("blocks",))


class Options(Settings):
    """``target_class``: the class; ``fraction``: the share of it to be forgotten; ``blocks`` of ``models_per_block``
    seeds."""

    target_class: int = Field(3, ge=0)
    fraction: float = Field(1.0, gt=0, le=1)
    blocks: int = Field(1, ge=1)
    models_per_block: int = Field(20, ge=1)


def blocks(options: Options) -> dict[str, int]:
    """Return the number of blocks of the only population."""
    return {"seeds": options.blocks}


def models(options: Options) -> int:
    """Return the number of models of a block."""
    return options.models_per_block


def draw(block: int, population: str, data: Data, options: Options, seed: int) -> Membership:
    """Return the memberships of one block of models.

    All models are trained on the whole training part and forget the first samples of ``options.target_class``, in the
    order of the data: the share ``options.fraction`` of its training samples, rounded down. Only the models' seeds
    depend on ``seed``.

    Parameters
    ----------
    block
        The block's number.
    population
        Not used, as there is only one.

    Raises
    ------
    ValueError
        If the class has no sample or the fraction is less than one.
    """
    pool = data.part == 0
    train = np.tile(pool, (options.models_per_block, 1))
    candidates = np.flatnonzero(pool & (data.y == options.target_class))
    k = int(options.fraction * len(candidates) + 1e-9)  # rounded down, but not because of a rounding error
    if k < 1:
        raise ValueError(
            f"fraction={options.fraction} of the {len(candidates)} training samples of class "
            f"{options.target_class} is less than one; choose another class or a larger fraction"
        )
    forget = np.zeros(train.shape, bool)
    forget[:, candidates[:k]] = True
    numbers = range(block * options.models_per_block, (block + 1) * options.models_per_block)
    return members(block, (seed_of(seed, "model", number) for number in numbers), train, forget)
