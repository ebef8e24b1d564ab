"""The competition's points of unlearned and of retrained models, with groups of models left out, beside their null."""

import numpy as np

from unlearning_audit.metrics._epsilon import check_phi, epsilons, points
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.stats import jackknife


def with_null(u, r, independent, h, options: Settings, rng) -> tuple[np.ndarray, np.ndarray, int, str]:
    """H against retrained models and its null, [1 + groups, samples] each, from how many models, and how."""
    if independent is None:
        models = min(len(u), len(r)) // 2
        how = f"random halves, {models} models on each side, mean of {options.splits} splits"
        return *_halves(u, r, options, rng), models, how
    independent = np.asarray(independent, np.float64)
    check_phi(r, independent)
    models = min(len(r), len(independent))
    null = points(replicated(epsilons_of(options), r, independent, options), models=models)
    if len(null) != len(h):
        null, h = null[:1], h[:1]
    return h, null, models, f"{len(r)} retrained against {len(independent)} independently retrained models"


def epsilons_of(options: Settings):
    return lambda u, r: epsilons(
        unlearned=u,
        retrained=r,
        rule=options.rule,
        delta=options.delta,
        buffer=options.buffer,
        per_unit=options.per_unit,
        cap=options.cap,
    )


def replicated(statistic, u: np.ndarray, r: np.ndarray, options: Settings) -> np.ndarray:
    """``statistic(u, r)`` [samples] of all models, then leaving out each group: float64 [1 + groups, samples]."""
    return np.stack([statistic(u[keep_u], r[keep_r]) for keep_u, keep_r in subsets(len(u), len(r), options)])


def subsets(unlearned: int, retrained: int, options: Settings) -> list[tuple[np.ndarray, np.ndarray]]:
    """Which models stay, bool [unlearned] and [retrained]: all first, then without each group of both."""
    groups = min(options.groups, unlearned, retrained)
    sides = [jackknife.groups_of(n, groups=groups) for n in (unlearned, retrained)]
    if min(unlearned, retrained) < 3:
        groups = 0
    return [tuple(side != g for side in sides) for g in range(-1, groups)]


def _halves(u: np.ndarray, r: np.ndarray, options: Settings, rng) -> tuple[np.ndarray, np.ndarray]:
    """H of unlearned against retrained halves, and of retrained against retrained: [1 + groups, samples] each."""
    epsilon = epsilons_of(options)
    models = min(len(u), len(r)) // 2
    keep = subsets(len(u), len(r), options)
    totals = np.zeros((2, len(keep), u.shape[1]))
    for _ in range(options.splits):
        order_u, order_r = rng.permutation(len(u)), rng.permutation(len(r))
        for g, (keep_u, keep_r) in enumerate(keep):
            some_u = order_u[:models]
            left, right = order_r[:models], order_r[models : 2 * models]
            some_u, left, right = some_u[keep_u[some_u]], left[keep_r[left]], right[keep_r[right]]
            totals[0, g] += points(epsilon(u[some_u], r[left]), models=models)
            totals[1, g] += points(epsilon(r[left], r[right]), models=models)
    return tuple(totals / options.splits)
