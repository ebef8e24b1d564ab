"""The unlearning sample inference game, and an adversary's advantage in it (Tu, Hu and Ma 2024)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.stats import Estimate, crossed, separation


@dataclass(frozen=True)
class Game:
    """The forgotten and held-out samples of each model, with the weights by which the game draws one of them, so that
    an adversary may guess from which set it came.

    Parameters
    ----------
    forget, heldout
        float64 [models, samples]: the sensitivity distribution over forgotten and over held-out samples, 0 elsewhere,
        for the samples of positive weight that some model forgot or held out.
    columns
        int [samples]: the numbers of these samples among all.
    split
        int [models]: the split of each model, from 0.
    block
        int64 [splits]: the pair of each split.
    """

    forget: np.ndarray
    heldout: np.ndarray
    columns: np.ndarray
    split: np.ndarray
    block: np.ndarray


def of_models(target: Membership) -> Game:
    """Return the game of the target models from their memberships: an adversary guesses whether a sample that is drawn
    was forgotten or held out.

    A split is one value of ``block`` and ``split`` together. ``target.weight`` is the sensitivity distribution up to a
    factor, None for uniform. Raises ValueError where a model has no forgotten or no held-out sample to draw.
    """
    weight = np.ones(target.forget.shape[1]) if target.weight is None else np.asarray(target.weight, dtype=np.float64)
    columns = np.flatnonzero((target.forget | target.heldout).any(axis=0) & (weight > 0))
    forget, heldout = (side[:, columns] * weight[columns] for side in (target.forget, target.heldout))
    for name, side in (("forget", forget), ("heldout", heldout)):
        if not side.any(axis=1).all():
            model = side.any(axis=1).argmin()
            raise ValueError(f"{name} holds no sample of positive weight for model {model}: the oracle cannot draw")
    keys, number = np.unique(np.stack([target.block, target.split], axis=1), axis=0, return_inverse=True)
    return Game(forget, heldout, columns, split=number.reshape(-1), block=keys[:, 0])


def sided(target: Membership) -> bool:
    """Return whether every model has forgotten and held-out samples."""
    return bool(target.heldout.any(axis=1).all() and target.forget.any(axis=1).all())


def auc(score: np.ndarray, positive: np.ndarray, negative: np.ndarray) -> crossed.PerModel:
    """Return the AUC of each model by ``score`` float64: of its ``positive`` against its ``negative`` samples, bool or
    weights, all [models, samples]."""
    return separation.auc(score=score, positive=positive * 1.0, negative=negative * 1.0)


def advantage(game: Game, decision: np.ndarray) -> crossed.PerModel:
    """Return the signed advantage of one adversary A against each model: Pr[A = 1 | x ∈ F] − Pr[A = 1 | x ∈ T], x drawn
    by P.

    F are the model's forgotten samples and T the held-out ones; P is the sensitivity distribution. Source: Definition
    3.2 for weak adversaries (3.11).

    Parameters
    ----------
    decision
        bool [models, samples]: A(m, x) for all samples of the membership.
    """
    accepts = decision[:, game.columns].astype(np.float64)
    of_forgotten = crossed.per_model(value=accepts, weight=game.forget)
    of_heldout = crossed.per_model(value=accepts, weight=game.heldout)
    return crossed.difference(of_forgotten, of_heldout)


def share(game: Game, block: int | None = None) -> np.ndarray:
    """Return the weight of each split, float64 [splits]: equal over all of them, or over those of one ``block`` (pair
    of splits) and 0 elsewhere."""
    counted = np.ones(len(game.block), dtype=bool) if block is None else game.block == block
    return np.asarray(counted / counted.sum())


def estimates(game: Game, rates: Sequence[crossed.PerModel], block: int | None = None) -> list[Estimate]:
    """Return the mean over all splits of each of ``rates``, statistics in [0, 1] of every model, with intervals that
    hold for other pairs too; or the mean over the splits of one ``block`` (pair), with intervals for this pair alone.
    Values and limits are cut to [0, 1]; ``n`` counts the samples that are forgotten or held out."""
    unit = game.block if block is None else None  # without units, the interval says nothing of other pairs
    n = len(game.columns) if block is None else size(game, block)
    return crossed.estimates(crossed.mean(rates, split=game.split, share=share(game, block), unit=unit), n=n)


def size(game: Game, block: int) -> int:
    """Return how many samples of positive weight some model of the ``block`` (pair of splits) forgot or held out."""
    models = game.block[game.split] == block
    return int(((game.forget > 0) | (game.heldout > 0))[models].any(axis=0).sum())
