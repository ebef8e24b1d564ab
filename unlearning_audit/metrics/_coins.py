"""Coins of a one-run audit: in each pair of samples, a fair coin chose which is forgotten and which is held out."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.randomness.keyed import generator


@dataclass(frozen=True)
class Toss:
    """One set of coins, with the ``models`` int64 [models] that share it.

    ``forgotten`` and ``heldout`` int64 [pairs]: the two samples of each pair, for models with ``sign`` +1. Models with
    ``sign`` −1 forgot ``heldout`` and never saw ``forgotten`` (the other split of a swap). ``sign`` is int64 [models].
    """

    models: np.ndarray
    sign: np.ndarray
    forgotten: np.ndarray
    heldout: np.ndarray

    def of(self, model: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the samples that ``model`` forgot and those that it never saw, int64 [pairs] each."""
        (place,) = np.flatnonzero(self.models == model)
        both = self.forgotten, self.heldout
        return both if self.sign[place] > 0 else both[::-1]


def tossed(member: Membership, seed: int) -> list[Toss]:
    """Return the coins of the models: those of the pairs of canaries, if the protocol drew such pairs, else those of
    pairs that are drawn at random by ``seed`` (`at_random`)."""
    if member.pair is None:
        return at_random(member, seed)
    first, second = np.argsort(member.pair, kind="stable")[-(member.pair >= 0).sum() :].reshape(-1, 2).T
    return [
        Toss(models, sign, np.where(heads, first, second), np.where(heads, second, first))
        for heads, models, sign in _shared(member.forget[:, first])
    ]


def at_random(member: Membership, seed: int) -> list[Toss]:
    """Pair each forgotten sample with a held-out one at random, where forget sets were drawn uniformly; return the
    coins.

    If the forgotten samples F and the held-out samples T are uniform and of one size, a fair coin decides which sample
    of such a pair lies in F. The coins are independent of each other. Models with the same F and T share their coins.
    Models of the other split of a swapped pair have them reversed. Raises ValueError for a model whose F and T differ
    in size or are empty.
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
    """Yield every set of ``coins`` bool [models, …] that some models share, with these models and their sign.

    Models with the reversed coins share the set with sign −1. Coins [models, pairs] are reversed by negation, and coins
    [models, 2, samples] by exchanging the two sets.
    """
    groups: dict[bytes, list[tuple[int, int]]] = {}
    for model, heads in enumerate(coins):
        turned = ~heads if heads.ndim == 1 else heads[::-1]
        sign = -1 if turned.tobytes() in groups else 1
        groups.setdefault((heads if sign > 0 else turned).tobytes(), []).append((model, sign))
    for group in groups.values():
        models, sign = np.array(group).T
        yield coins[models[0]], models, sign
