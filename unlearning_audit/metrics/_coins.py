"""The coins of a one-run audit: pairs of samples of which a fair coin said which is forgotten, the other held out."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.randomness.keyed import generator


@dataclass(frozen=True)
class Toss:
    """One set of coins and the ``models`` int64 [models] that share it.

    ``forgotten`` and ``heldout`` int64 [pairs]: the two samples of each pair, as the models with ``sign`` +1 have them;
    those with ``sign`` int64 [models] −1 forgot ``heldout`` and never saw ``forgotten`` (the other split of a swap).
    """

    models: np.ndarray
    sign: np.ndarray
    forgotten: np.ndarray
    heldout: np.ndarray

    def of(self, model: int) -> tuple[np.ndarray, np.ndarray]:
        """What one of the models forgot and never saw, int64 [pairs] each."""
        (place,) = np.flatnonzero(self.models == model)
        both = self.forgotten, self.heldout
        return both if self.sign[place] > 0 else both[::-1]


def tossed(member: Membership, seed: int) -> list[Toss]:
    """The coins of the models: those of the pairs of canaries, if their protocol drew such, else as `at_random`."""
    if member.pair is None:
        return at_random(member, seed)
    first, second = np.argsort(member.pair, kind="stable")[-(member.pair >= 0).sum() :].reshape(-1, 2).T
    return [
        Toss(models, sign, np.where(heads, first, second), np.where(heads, second, first))
        for heads, models, sign in _shared(member.forget[:, first])
    ]


def at_random(member: Membership, seed: int) -> list[Toss]:
    """The coins in forget sets that were drawn uniformly: each forgotten sample gets a held-out one at random.

    If F and T are uniform and of one size, which sample of such a pair lies in F is a fair coin, independent of all
    others. Models with the same F and T share their coins, those of the other split of a swapped pair have them turned
    over. Raises ValueError for a model whose sides differ in size or are empty.
    """
    sizes = member.forget.sum(axis=1), member.heldout.sum(axis=1)
    for model, (forgotten, heldout) in enumerate(zip(*sizes, strict=True)):
        if forgotten != heldout or not forgotten:
            counts = f"{forgotten} samples and {heldout} are held out"
            raise ValueError(f"model {model} forgot {counts}; pairs need as many of both")
    tosses = []
    both = np.stack([member.forget, member.heldout], axis=1)
    for number, (sides, models, sign) in enumerate(_shared(both)):
        forgotten, heldout = map(np.flatnonzero, sides)
        tosses.append(Toss(models, sign, generator(seed, "coins", number).permutation(forgotten), heldout))
    return tosses


def _shared(coins: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Coins, models that have them and sign, for every set of ``coins`` bool [models, …] that some models share.

    Turned over, coins [models, pairs] are the other side of each, and [models, 2, samples] have sides exchanged.
    """
    groups: dict[bytes, list[tuple[int, int]]] = {}
    for model, heads in enumerate(coins):
        turned = ~heads if heads.ndim == 1 else heads[::-1]
        sign = -1 if turned.tobytes() in groups else 1
        groups.setdefault((heads if sign > 0 else turned).tobytes(), []).append((model, sign))
    for group in groups.values():
        models, sign = np.array(group).T
        yield coins[models[0]], models, sign
