"""Competition points of unlearned models and their null, those of retrained models, from all models and without each
group of them."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from pydantic import Field

from unlearning_audit.metrics import Settings, jackknife
from unlearning_audit.metrics._epsilon import check_phi, epsilons, points

#: φ of unlearned, of retrained and of further retrained models or None, float64 [models, forget samples] each.
Kinds = tuple[np.ndarray, np.ndarray, np.ndarray | None]
Statistic = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Options(Settings):
    """``rule``: ``exact`` thresholds or the published ``grid``; ``delta`` of equation (1); ``groups`` of models for the
    intervals; ``splits`` of the retrained models into halves for the null; ``confidence`` of the lower bounds.
    """

    rule: Literal["exact", "grid"] = "exact"
    delta: float = Field(default=1e-5, ge=0, lt=1)
    groups: int = Field(default=16, ge=2)
    splits: int = Field(default=2, ge=1)
    confidence: float = Field(default=0.95, gt=0, lt=1)


def with_null(
    kinds: Kinds, h: np.ndarray, options: Options, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, int, str]:
    """Return four things: the competition's points H of unlearned models, whose mean over samples is F, and the null,
    the points of retrained models, whose mean is F₀, [1 + groups, samples] each; on how many models of each kind both
    rest; and a note on how the models were compared.

    Row 0 of the points is from all models, each further row without one group of models.

    Parameters
    ----------
    kinds
        φ of unlearned and of retrained models, and of further retrained models. Without further ones (None), random
        halves of the retrained models are compared. There must then be at least `competition.HALVES_NEED` models of
        either kind, so that two of a half remain without a group.
    h
        H of all unlearned against all retrained models. It is returned unchanged if neither population has more models
        than are compared. If one has more, and always for halves, H is computed anew from as many models of each.
    """
    unlearned, retrained, independent = kinds
    sizes = [len(phi) for phi in kinds if phi is not None]
    epsilon = epsilons_of(options)
    if independent is None:
        models = min(sizes) // 2
        how = f"random halves, {models} models on each side, mean of {options.splits} splits"  # sides: the two halves
        return *_points_of_halves(unlearned, retrained, options, rng), models, how
    check_phi(retrained, independent)
    models = min(sizes)
    how = f"{models} retrained against {models} independently retrained models"
    if max(sizes) > models:
        how += f"; F / F₀ is of the first {models} models of each kind"
    if max(sizes[:2]) > models:  # ε of fewer models has fewer values, so F and F₀ are of equally many
        h = points(without_groups(epsilon, unlearned[:models], retrained[:models], options), models=models)
    null = points(without_groups(epsilon, retrained[:models], independent[:models], options), models=models)
    return h, null, models, how


def epsilons_of(options: Options) -> Statistic:
    """Return the function that computes ε of each sample, float64 [samples], from the φ of unlearned and of retrained
    models, by these options."""
    return lambda u, r: epsilons(unlearned=u, retrained=r, rule=options.rule, delta=options.delta)


def without_groups(statistic: Statistic, some: np.ndarray, others: np.ndarray, options: Options) -> np.ndarray:
    """Return a jackknife of ``statistic(some, others)``: first its value on all models, then, for each group, its value
    without the models of this group, which has models of both kinds: float64 [1 + groups, samples]. Row 0 is the only
    one if fewer than two models of a kind would remain without a group.

    Parameters
    ----------
    some, others
        float64 [models, samples]: φ of models of two kinds, such as unlearned and retrained ones.
    options
        ``groups``: into how many groups the models of each kind are divided, at most one for each model.
    """
    # For each value, the masks of the models of either kind on which it is computed.
    kept = subsets(len(some), len(others), options)
    return np.stack([statistic(some[keep], others[keep_others]) for keep, keep_others in kept])


def subsets(unlearned: int, retrained: int, options: Options) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs of masks, bool [unlearned] and bool [retrained], of the models that a jackknife keeps: first all
    models, then all but those of one group, which has models of both kinds, for each group in turn. There are
    ``options.groups`` groups, or fewer if there are fewer models of a kind.

    If leaving a group out would keep fewer than two models of a kind, the masks of all models are the only entry.

    Parameters
    ----------
    unlearned, retrained
        How many models there are of each kind.
    """
    groups = min(options.groups, unlearned, retrained)
    of_u, of_r = (jackknife.groups_of(models, groups=groups) for models in (unlearned, retrained))
    everyone = np.ones(unlearned, bool), np.ones(retrained, bool)
    without = [(of_u != group, of_r != group) for group in range(groups)]
    return [everyone, *without] if all(keep.sum() > 1 for pair in without for keep in pair) else [everyone]


def _points_of_halves(
    u: np.ndarray, r: np.ndarray, options: Options, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the competition's points H of unlearned models against one half of the retrained models, and of that half
    against the other: [1 + groups, samples] each, as means over ``options.splits`` random splits into halves.

    Parameters
    ----------
    u, r
        float64 [models, samples]: φ of unlearned and of retrained models.
    """
    epsilon, models = epsilons_of(options), min(len(u), len(r)) // 2
    groups = min(options.groups, models)
    keep = subsets(len(u), len(r), options.model_copy(update={"groups": groups}))
    totals = np.zeros((2, len(keep), u.shape[1]))
    for _ in range(options.splits):
        some_u, of_r = (_in_turn(len(phi), groups, rng) for phi in (u, r))
        drawn_u, halves = some_u[:models], (of_r[:models], of_r[models : 2 * models])
        for group, (in_u, in_r) in enumerate(keep):
            left, right = (r[half[in_r[half]]] for half in halves)
            totals[0, group] += points(epsilon(u[drawn_u[in_u[drawn_u]]], left), models=models)
            totals[1, group] += points(epsilon(left, right), models=models)
    of_unlearned, null = totals / options.splits
    return of_unlearned, null


def _in_turn(models: int, groups: int, rng: np.random.Generator) -> np.ndarray:
    """Return the positions of models in random order, int64 [models]: one of each group, then another one of each, and
    so on.

    Halves of that order lose equally many models, whichever group is left out. If they did not, their ε would differ
    because it has other values for fewer models, and not by chance.

    Parameters
    ----------
    groups
        The number of groups into which a jackknife divides the models.
    """
    group, key = jackknife.groups_of(models, groups=groups), rng.random(models)
    turn = ((group == group[:, None]) & (key < key[:, None])).sum(axis=1)  # how many of its group come before a model
    return np.lexsort((key, turn))
