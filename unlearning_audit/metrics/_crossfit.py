"""Q with cross-fitting: the adversary is chosen on one half of the samples and models, and evaluated on the other."""

from collections.abc import Sequence

import numpy as np

from unlearning_audit.metrics import _game, crossed, stats

NOTE = "unbiased, so it may exceed 1"
SHARED_MODELS = "unbiased over samples only (a split has one model), may exceed 1"


def quality(
    game: _game.Game,
    decisions: Sequence[np.ndarray],
    reading: crossed.Reading,
    *,
    rng: np.random.Generator,
    halvings: int = 20,
) -> tuple[stats.Estimate, np.ndarray]:
    """Return Q = 1 − the largest absolute advantage of an adversary, cross-fitted, and the weight of each adversary in
    it, float64 [adversaries].

    The adversary and its sign are chosen on a random half of the forgotten and held-out samples and of each split's
    models, and evaluated on the rest. A sample lies in the same half in all models. Where a split has one model, only
    samples are halved. The result is the average over ``halvings`` halvings, with four directions in each. Unlike a Q
    whose adversary is chosen and evaluated on the same samples, this estimate, 1 − Σ weight·advantage, is unbiased for
    the chosen adversaries. A weight says how often the adversary was chosen, signed by the direction chosen with it
    (the absolute values sum to at most 1). If no halving leaves both sides of each model in both halves, the estimate
    is empty, and the weights are 0.

    Parameters
    ----------
    game
        The samples that each model forgot and held out, with weights.
    decisions
        Bool [models, samples] per adversary.
    reading
        The advantages of the adversaries on all samples and models, from which the interval comes.
    """
    samples = len(game.columns)
    # Step 1: halve samples and models. bool [halvings, samples]: the order of random numbers is a random permutation.
    first_half = np.argsort(rng.random((halvings, samples)), axis=1) < samples // 2
    # The weights of the models in each half; ``whole``: both halves hold all models.
    models, other_models, whole = _model_halves(game, rng=rng, halvings=halvings)
    # The advantages on the first and on the second halves of the samples, [adversaries, models, halvings] each.
    first, second = (np.stack([_on_halves(game, d, half) for d in decisions]) for half in (first_half, ~first_half))
    # Step 2: the advantages by which adversaries are chosen, and those by which they are evaluated, [adversaries,
    # directions · halvings] each. In four directions an adversary is chosen on a half of the samples and of the models,
    # and evaluated on the opposite half of both. A direction is a pair (advantages on halves of samples, weights of
    # models).
    directions = [(first, models), (first, other_models), (second, models), (second, other_models)]
    # Axes: a adversaries, m models, h halvings. The reversed list has, in the place of each direction, the one with the
    # opposite half of both.
    chosen_on = np.concatenate([np.einsum("amh,hm->ah", *pair) for pair in directions], axis=1)
    read_on = np.concatenate([np.einsum("amh,hm->ah", *pair) for pair in directions[::-1]], axis=1)
    # A half without forgotten or held-out samples has no advantage (NaN).
    usable = np.isfinite(chosen_on).all(axis=0) & np.isfinite(read_on).all(axis=0)
    if not usable.any():
        empty = stats.empty(n=samples, note="forget and heldout are too small to be halved")
        return empty, np.zeros(len(decisions))
    chosen_on, read_on = chosen_on[:, usable], read_on[:, usable]
    # Step 3: choose the adversary of largest absolute advantage, and its sign, on one half; evaluate it on the other.
    best, columns = np.abs(chosen_on).argmax(axis=0), np.arange(chosen_on.shape[1])
    # [adversaries, directions · halvings]: ±1 for the adversary that is chosen there, else 0.
    sign_if_chosen = np.zeros(chosen_on.shape)
    sign_if_chosen[best, columns] = np.where(chosen_on[best, columns] < 0, -1.0, 1.0)
    value = 1 - float((sign_if_chosen * read_on).sum() / len(best))
    # Step 4: the interval. Its width is an upper bound, as if all directions and halvings were perfectly correlated.
    width = float(np.sqrt(np.abs(sign_if_chosen).mean(axis=1) @ crossed.half_widths(reading) ** 2))
    note = crossed.annotated(reading, SHARED_MODELS if whole else NOTE)
    return stats.Estimate(value, value - width, value + width, samples, note), sign_if_chosen.mean(axis=1)


def _on_halves(game: _game.Game, decision: np.ndarray, halves: np.ndarray) -> np.ndarray:
    """Return the advantage of one adversary against each model on each half of the samples, float64 [models, halves];
    NaN where a half has no forgotten or no held-out sample.

    Parameters
    ----------
    decision
        bool [models, samples].
    halves
        bool [halves, columns of the game]: the samples of each half.
    """
    columns = halves.T.astype(np.float64)
    accepts = decision[:, game.columns]
    # Of the forgotten and of the held-out samples in each half, the weighted share that the adversary accepts.
    with np.errstate(divide="ignore", invalid="ignore"):
        forgot, unseen = ((side * accepts) @ columns / (side @ columns) for side in (game.forget, game.heldout))
        return np.asarray(forgot - unseen)


def _model_halves(game: _game.Game, *, rng: np.random.Generator, halvings: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the weights of the models in a random half and in its opposite, float64 [halvings, models] each, and
    whether both halves hold all models, because some split has only one model.

    A sum with these weights is the mean over the models of a split, then over splits.
    """
    count = np.bincount(game.split)  # int [splits]: the models of each split
    split_weight = _game.share(game)[game.split]  # of each model: the weight of its split in the mean over splits
    if count.min() == 1:
        whole = np.tile(split_weight / count[game.split], (halvings, 1))
        return whole, whole, True
    # Step 1: rank the models of each split at random. The key is split + a random number below 1, so that the ranks of
    # all models are those of the first split, then those of the second, and so on. The argsort of an argsort is a rank.
    rank = np.argsort(np.argsort(rng.random((halvings, len(game.split))) + game.split, axis=1), axis=1)
    rank_in_split = rank - (np.cumsum(count) - count)[game.split]  # from 0: minus the models of earlier splits
    # Step 2: the first half is the lower half of the ranks of each split.
    extra = rng.integers(0, 2, (halvings, len(count))) * (count % 2)  # an odd split's last model joins either half
    first = rank_in_split < (count // 2 + extra)[:, game.split]
    # Step 3: the models of a split that are in a half share the split's weight.
    in_first = np.stack([np.bincount(game.split, half) for half in first])  # [halvings, splits]: number of models
    of_first, of_second = in_first[:, game.split], (count - in_first)[:, game.split]
    return first * split_weight / of_first, ~first * split_weight / of_second, False
