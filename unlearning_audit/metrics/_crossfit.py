"""Q with cross-fitting: the adversary is chosen on one half of the samples and models, and evaluated on the other."""

from collections.abc import Sequence

import numpy as np

from unlearning_audit.metrics import _game, crossed, stats

NOTE = "unbiased, so it may exceed 1"
SHARED_MODELS = "unbiased over samples only (a split has one model), may exceed 1"


def quality(
    rules: _game.Game, decisions: Sequence[np.ndarray], reading: crossed.Reading, *, rng: np.random.Generator,
    halvings: int = 20,
) -> tuple[stats.Estimate, np.ndarray]:  # fmt: skip
    """Return the cross-fitted Q, and the weight of each adversary in it, float64 [adversaries].

    The adversary and its sign are chosen on a random half of the forgotten and held-out samples and of each split's
    models, and evaluated on the rest. A sample lies in the same half in all models. Where a split has one model, only
    samples are halved. The result is the average over ``halvings`` halvings, with four directions in each. The maximum
    in Q is chosen and evaluated on the same samples; this estimate, 1 − Σ weight·advantage, is unbiased for the chosen
    adversaries. A weight says how often the adversary was chosen, signed by the direction chosen with it (the absolute
    values sum to at most 1).

    Parameters
    ----------
    rules
        The samples that each model forgot and held out, with weights.
    decisions
        Bool [models, samples] per adversary.
    reading
        Their advantages on all samples and models, from which the interval comes.
    """
    samples = len(rules.columns)
    # bool [halvings, samples]: the order of random numbers is a random permutation.
    first_half = np.argsort(rng.random((halvings, samples)), axis=1) < samples // 2
    models, other_models, whole = _model_halves(rules, rng=rng, halvings=halvings)  # weights of the models
    first, second = (np.stack([_on_halves(rules, d, half) for d in decisions]) for half in (first_half, ~first_half))
    # Four directions: an adversary is chosen on a half of the samples and of the models, and evaluated on the opposite
    # half of both. Each direction is a pair (advantages on halves of samples, weights of models).
    directions = [(first, models), (first, other_models), (second, models), (second, other_models)]
    # Axes: a adversaries, m models, h halvings. In reversed order, each direction meets the opposite of both halves.
    chosen_on = np.concatenate([np.einsum("amh,hm->ah", *pair) for pair in directions], axis=1)
    read_on = np.concatenate([np.einsum("amh,hm->ah", *pair) for pair in directions[::-1]], axis=1)
    usable = np.isfinite(chosen_on).all(axis=0) & np.isfinite(read_on).all(axis=0)
    if not usable.any():
        reason = "forget and heldout are too small to be halved"
        return stats.empty(n=samples, note=reason), np.zeros(len(decisions))
    chosen_on, read_on = chosen_on[:, usable], read_on[:, usable]
    best, columns = np.abs(chosen_on).argmax(axis=0), np.arange(chosen_on.shape[1])
    # [adversaries, directions]: ±1 for the adversary that a direction chooses, else 0.
    sign_if_chosen = np.zeros(chosen_on.shape)
    sign_if_chosen[best, columns] = np.where(chosen_on[best, columns] < 0, -1.0, 1.0)
    value = 1 - float((sign_if_chosen * read_on).sum() / len(best))
    # An upper bound on the standard error, as if the directions were perfectly correlated.
    width = float(np.sqrt(np.abs(sign_if_chosen).mean(axis=1) @ crossed.half_widths(reading) ** 2))
    note = crossed.annotated(reading, SHARED_MODELS if whole else NOTE)
    return stats.Estimate(value, value - width, value + width, samples, note), sign_if_chosen.mean(axis=1)


def _on_halves(rules: _game.Game, decision: np.ndarray, halves: np.ndarray) -> np.ndarray:
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
    accepts = decision[:, rules.columns]
    # Of the forgotten and of the held-out samples in each half, the weighted share that the adversary accepts.
    with np.errstate(divide="ignore", invalid="ignore"):
        forgot, unseen = ((side * accepts) @ columns / (side @ columns) for side in (rules.forget, rules.heldout))
        return np.asarray(forgot - unseen)


def _model_halves(rules: _game.Game, *, rng: np.random.Generator, halvings: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the weights of the models in a random half and in its opposite, float64 [halvings, models] each, and
    whether both hold all models.

    A sum with these weights is the mean over the models of a split, then over splits. Both halves hold all models if
    some split has only one.
    """
    count = np.bincount(rules.split)
    split_weight = _game.share(rules)[rules.split]  # of each model: the weight of its split in the mean over splits
    if count.min() == 1:
        whole = np.tile(split_weight / count[rules.split], (halvings, 1))
        return whole, whole, True
    # Models are ranked by split and, within a split, at random: split + a number below 1. The argsort of an argsort
    # gives ranks.
    rank = np.argsort(np.argsort(rng.random((halvings, len(rules.split))) + rules.split, axis=1), axis=1)
    rank_in_split = rank - (np.cumsum(count) - count)[rules.split]
    extra = rng.integers(0, 2, (halvings, len(count))) * (count % 2)  # an odd split's last model joins either half
    first = rank_in_split < (count // 2 + extra)[:, rules.split]
    # How many models of each split the first half has; they share the split's weight.
    counts = np.stack([np.bincount(rules.split, row) for row in first])  # [halvings, splits]
    of_first, of_second = counts[:, rules.split], (count - counts)[:, rules.split]
    return first * split_weight / of_first, ~first * split_weight / of_second, False
