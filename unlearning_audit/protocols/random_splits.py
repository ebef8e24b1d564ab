"""Two independent random splits in place of a swapped pair: the estimator that the SWAP test improves on.

Tu, Hu & Ma 2024, Proposition 3.9 and Table 2. Everything else is as in the SWAP test.
"""

from dataclasses import replace

from unlearning_audit.protocols import Data, Membership, Selection, swap

PROTOCOL = replace(swap.PROTOCOL, offers=("game", "forgotten", "weights", "fair_draw", "coins"), system="swap")


class Options(swap.Options):
    """The options of the SWAP test; ``pairs`` counts pairs of independent splits."""


blocks, models, selects_from = swap.blocks, swap.models, swap.selects_from


def draw(
    block: int, population: str, data: Data, options: Options, seed: int, selection: Selection | None = None
) -> Membership:
    """Return the memberships of models of two independent random splits, and of the adversary's shadow models.

    Half of the training part is the game's, the other half the adversary's, for all blocks. Of each half, two splits
    are drawn by ``seed`` for this block, independently of each other. Raises ValueError if the data are too few for one
    sample to forget.

    Parameters
    ----------
    block
        The number of the pair.
    population
        Not used, as there is only one.
    selection
        How strongly samples are memorised, if ``options.memorised`` needs it.
    """
    # For the game's and the adversary's half, two independent splits (retained, forgotten, held out).
    splits = [
        [swap.split_set(half, data, options, selection, seed, "random", block, owner, number) for number in range(2)]
        for owner, half in swap.halves(data, options, seed)
    ]
    return swap.assemble(block, splits, data, options, seed)
