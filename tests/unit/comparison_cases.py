"""Scenarios of known truth: what attacks say of forgotten and of held-out samples is drawn with known probabilities."""

import numpy as np
from unlearning_audit.artifacts.arrays import Membership
from unlearning_audit.artifacts.contributions import Contribution, Standard, single
from unlearning_audit.comparisons import verdicts
from unlearning_audit.metrics import accuracy, swap
from unlearning_audit.stats import crossed
from unlearning_audit.study.schema import Margins

from swap_games import layout

MARGINS = Margins().model_dump()
NEVER = 0.3  # how often an attack says yes to samples that were never seen


def membership(rng, *, pairs=4, models=3, samples=400, k=80) -> Membership:
    """Swapped pairs; what a model keeps does not matter here."""
    made = layout(rng, samples=samples, pairs=pairs, k=k, models=models)
    count = len(made["split"])
    return Membership(train=made["forget"], seed=np.arange(count), shadow=np.zeros(count, bool), **made)


def advantages(rng, member: Membership, truth: dict[str, tuple[float, ...]]) -> dict[str, Contribution]:
    """Method → its advantages, whose true values are those of ``truth``, one for each attack.

    Methods and attacks share half of what they say at random, so their errors correlate.
    """
    shape, phi = member.forget.shape, rng.standard_normal(member.forget.shape)
    common = rng.random(shape)
    found = {}
    for method, distances in truth.items():
        scores = {}
        for i, distance in enumerate(distances):
            drawn = np.where(rng.random(shape) < 0.5, common, rng.random(shape))
            decision = drawn < np.where(member.forget, NEVER + distance, NEVER)
            scores[f"attack{i}", "trained"] = decision * 1.0, decision
        found[method] = swap.advantages(scores, phi, member)["advantage"]
    return found


def worth(rng, member: Membership, lost: dict[str, float], *, right=0.9, rows=600) -> dict[str, Contribution]:
    """Method → its accuracy on ``rows`` samples, which is ``right`` less what it lost."""
    models = len(member.seed)
    common, found = rng.random((models, rows)), {}
    for method, less in lost.items():
        drawn = np.where(rng.random((models, rows)) < 0.9, common, rng.random((models, rows)))
        part = crossed.per_model(value=(drawn < right - less) * 1.0, weight=np.ones((models, rows)))
        places = {"unit": member.block, "split": member.split}
        found[method] = single(**vars(part), **places, standard=accuracy.WORTH)
    return found


def scenario(rng, truth: dict[str, tuple[float, ...]], lost: dict[str, float] | None = None, **size):
    """Method → metric → contribution of one scenario: advantages and two accuracies."""
    member = membership(rng, **size)
    lost = {method: (lost or {}).get(method, 0.0) for method in truth}
    parts = {"advantage": advantages(rng, member, truth)}
    parts |= {f"accuracy_{role}": worth(rng, member, lost) for role in ("retain", "test")}
    return {method: {metric: made[method] for metric, made in parts.items()} for method in truth}


def compare(found, failed=None, *, seed=0, draws=300):
    """The tables of a scenario, and its verdicts by method."""
    made = verdicts.compare(found, failed or {}, margins=MARGINS, draws=draws, seed=seed)
    return made, {row["method"]: row for row in made.verdicts}


def of_seeds(values: dict[str, np.ndarray]) -> dict[str, dict[str, Contribution]]:
    """Logarithms of efficacy of every seed, method by method."""
    standard = Standard(np.nan, 1, "efficacy", scale="log", units="models")
    return {
        method: {"efficacy": single(value=value, unit=np.arange(len(value)), standard=standard)}
        for method, value in values.items()
    }
