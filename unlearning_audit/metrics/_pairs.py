"""Swapped pairs for metrics of other systems: which models forget a sample, and which never saw it.

In a pair, split s forgets F and never sees T, split s′ forgets T and never sees F; both keep R (Tu, Hu & Ma 2024,
§3.3). So for each sample of F ∪ T the i-th model of one split forgets it and the i-th of the other never saw it. Models
retrained for either split were trained on the same R.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unlearning_audit.metrics import Membership, Row


@dataclass(frozen=True)
class SplitModels:
    """The target models of one split, one of the two of a swapped pair.

    Parameters
    ----------
    block
        The number of the pair.
    models
        int64 [models]: the numbers of the split's models.
    twins
        int64 [models]: the numbers of the models of the pair's other split.
    forget
        int64 [samples]: the samples that the models forget and the twins never saw.
    """

    block: int
    models: np.ndarray
    twins: np.ndarray
    forget: np.ndarray


def swapped_splits(member: Membership) -> list[SplitModels]:
    """Return every split of every pair of target models.

    Raises ValueError for models that are not swapped pairs: a pair has another number of splits than two, or splits of
    different size; or the models of a split do not all forget what those of the other never saw.
    """
    found = []
    for block in np.unique(member.block[~member.shadow]).tolist():
        models = np.flatnonzero(~member.shadow & (member.block == block))
        splits = [models[member.split[models] == number] for number in np.unique(member.split[models])]
        if len(splits) != 2 or len(splits[0]) != len(splits[1]):
            raise ValueError(f"pair {block} has not equally many models of two splits, as only the protocol swap draws")
        for split, twins in (splits, splits[::-1]):  # each split with the other one; models of a split forget the same
            same = (member.forget[split] == member.forget[split[0]]).all()
            if not same or not np.array_equal(member.forget[split], member.heldout[twins]):
                raise ValueError(f"pair {block} does not swap what is forgotten and what is held out")
            found.append(SplitModels(block, split, twins, np.flatnonzero(member.forget[split[0]])))
    return found


def by_pair(splits: list[SplitModels], rows: Callable[[list[SplitModels]], list[Row]]) -> list[Row]:
    """Return the rows of all ``splits`` together, then, if these are of several swapped pairs, the rows of each pair by
    itself, with the pair's number in the field ``pair``.

    Parameters
    ----------
    splits
        The models of every split of all pairs.
    rows
        Computes the rows of some splits together.
    """
    table, pairs = rows(splits), sorted({split.block for split in splits})
    for pair in pairs if len(pairs) > 1 else []:  # the rows of the only pair are those of all splits
        table += [replace(row, pair=pair) for row in rows([split for split in splits if split.block == pair])]
    return table
