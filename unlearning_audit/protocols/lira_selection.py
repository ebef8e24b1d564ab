"""Random halves: pairs of models on the two halves of the training part, to find what models memorise.

Carlini et al. 2022, and Naderloui et al. 2025, appendix A.3, who choose their target samples by it. Nothing is
unlearned. A block is one pair, so that every sample is in as many models as out.
"""

import numpy as np
from pydantic import Field

from unlearning_audit.protocols import Data, Membership, Protocol, Settings, generator, members, seed_of

PROTOCOL = Protocol(
    offers=("selection", "weights"), counts=("pairs",), forgets=False, selects="vulnerability", system="ruli",
    shadows=("pairs", 2),
)  # fmt: skip


class Options(Settings):
    """``pairs``: the number of pairs of models; 64 in the code of Naderloui et al., 128 in their paper."""

    pairs: int = Field(64, ge=1)


def blocks(options: Options) -> dict[str, int]:
    """Return the number of blocks of the only population."""
    return {"pairs": options.pairs}


def models(options: Options) -> int:
    """Return the number of models of a block."""
    return 2


def draw(block: int, population: str, data: Data, options: Options, seed: int) -> Membership:
    """Return the memberships of one pair of models, each trained on another half of the training part.

    The halves are drawn anew for each pair. All samples that a model is not trained on are held out from it. If the
    number of samples is odd, one sample is in neither half.

    Parameters
    ----------
    block
        The pair's number.
    population
        Not used, as there is only one.
    seed
        The seed of all draws, from which the models' seeds are derived, too.

    Raises
    ------
    ValueError
        For fewer than two samples.
    """
    order = generator(seed, "halves", block).permutation(np.flatnonzero(data.part == 0))
    half = len(order) // 2
    if half < 1:
        raise ValueError(f"random halves need two training samples, the data have {len(order)}; use more data")
    train = np.zeros((2, len(data.y)), bool)
    train[0, order[:half]] = train[1, order[half : 2 * half]] = True
    seeds = (seed_of(seed, "half", block, half_number) for half_number in range(2))
    heldout = (data.part == 0) & ~train
    return members(block, seeds, train, forget=np.zeros_like(train), heldout=heldout, split=np.arange(2))
