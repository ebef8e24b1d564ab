"""Scenarios of known truth: what attacks say of forgotten and of held-out samples is drawn with known probabilities."""

from unittest import mock

import numpy as np
from unlearning_audit.comparisons import planning, verdicts
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.effects import DecisionRule, Effect, single
from unlearning_audit.metrics import accuracy, swap
from unlearning_audit.stats import crossed
from unlearning_audit.study.schema import Margins

from swap_games import layout

MARGINS = Margins().model_dump()
NEVER = 0.3  # how often an attack says yes to samples that were never seen


def membership(rng, *, pairs=4, models=3, samples=400, k=80) -> Membership:
    """Swapped pairs; what a model keeps does not matter here."""
    game = layout(rng, samples=samples, pairs=pairs, k=k, models=models)
    count = len(game["split"])
    return Membership(train=game["forget"], seed=np.arange(count), shadow=np.zeros(count, bool), **game)


def advantages(rng, member: Membership, truth: dict[str, tuple[float, ...]]) -> dict[str, Effect]:
    """Method → its advantages, whose true values are those of ``truth``, one for each attack.

    Methods and attacks share half of what they say at random, so their errors correlate.
    """
    shape, phi = member.forget.shape, rng.standard_normal(member.forget.shape)
    common = rng.random(shape)
    parts = {}
    for method, distances in truth.items():
        scores = {}
        for i, distance in enumerate(distances):
            draws = np.where(rng.random(shape) < 0.5, common, rng.random(shape))
            decision = draws < np.where(member.forget, NEVER + distance, NEVER)
            scores[f"attack{i}", "trained"] = decision * 1.0, decision
        parts[method] = swap.advantages(scores, phi, member)["advantage"]
    return parts


def worth(rng, member: Membership, lost: dict[str, float], *, right=0.9, rows=600) -> dict[str, Effect]:
    """Method → its accuracy on ``rows`` samples, which is ``right`` less what it lost."""
    models = len(member.seed)
    common, parts = rng.random((models, rows)), {}
    for method, less in lost.items():
        draws = np.where(rng.random((models, rows)) < 0.9, common, rng.random((models, rows)))
        part = crossed.per_model(value=(draws < right - less) * 1.0, weight=np.ones((models, rows)))
        places = {"unit": member.block, "split": member.split}
        parts[method] = single(**vars(part), **places, rule=accuracy.UTILITY)
    return parts


def scenario(rng, truth: dict[str, tuple[float, ...]], lost: dict[str, float] | None = None, **size):
    """Method → metric → effect of one scenario: advantages and two accuracies."""
    member = membership(rng, **size)
    lost = {method: (lost or {}).get(method, 0.0) for method in truth}
    parts = {"advantage": advantages(rng, member, truth)}
    parts |= {f"accuracy_{role}": worth(rng, member, lost) for role in ("retain", "test")}
    return {method: {metric: by_method[method] for metric, by_method in parts.items()} for method in truth}


def compare(parts, failed=None, *, seed=0, draws=300):
    """The tables of a scenario, and its verdicts by method."""
    results = verdicts.compare(parts, failed or {}, margins=MARGINS, draws=draws, seed=seed)
    return results, {row["method"]: row for row in results.verdicts}


#: Forecasts take most of the time of a comparison.
without_forecasts = mock.patch.multiple(planning, resolution_rows=lambda *_: [], requirements=lambda *_: [])


@without_forecasts
def verdicts_of(parts, **how):
    """Verdicts by method, without forecasts."""
    return compare(parts, **how)[1]


def of_seeds(values: dict[str, np.ndarray]) -> dict[str, dict[str, Effect]]:
    """Logarithms of efficacy of every seed, method by method."""
    rule = DecisionRule(1, "efficacy", scale="log", units="models")
    return {
        method: {"efficacy": single(value=value, unit=np.arange(len(value)), rule=rule)}
        for method, value in values.items()
    }
