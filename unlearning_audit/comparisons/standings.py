"""Standings of methods over several scenarios: their mean distance from retraining, and the ranks that each may
have."""

from typing import Any

import numpy as np

from unlearning_audit.comparisons import distances
from unlearning_audit.comparisons.distances import Effects, Side
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.stats import average, rank_sets
from unlearning_audit.stats.paired import Distances


def standings(scenarios: list[Effects], *, margins: dict[str, float], draws: int, seed: int) -> list[dict[str, Any]]:
    """Return a row for each method that has a number in every one of the ``scenarios``, which are independent.

    ``distance`` is the method's mean distance in margins, by the first deciding metric that all scenarios have, with
    its 95 % interval ``low`` to ``high``. ``best`` and ``worst`` are the ranks that it may have, at 95 % for all
    methods at once; ``methods`` is the number of methods that are ranked. Of several attacks each method's strongest
    counts, as in a verdict; the sign of a distance does not. Return [] if scenarios have no common metric or fewer than
    two common methods.

    Parameters
    ----------
    scenarios
        For each scenario a dict, method → metric → numbers.
    margins
        Name of a margin → its size.
    draws
        How often joint deviations are drawn, from ``seed``.
    """
    metric = _first_common_metric(scenarios)
    if metric is None:
        return []
    sides = [_corresponding_sides(effects, metric) for effects in scenarios]
    methods = [method for method in sides[0] if all(method in by_method for by_method in sides)]
    if len(methods) < 2:
        return []
    per_scenario = [distances_in_margins({name: by_method[name] for name in methods}, margins) for by_method in sides]
    together = average.mean(per_scenario)
    nearness = together.combined(-np.eye(len(methods)))  # `proven` takes the larger number for the better one
    closer = rank_sets.proven(distances=nearness, rng=generator(seed, "standings"), draws=draws)
    best, worst = rank_sets.rank_ranges(closer)
    columns = methods, together.value, together.half_widths(), best, worst
    return [
        {"method": method, "metric": metric, "distance": float(value), "low": float(value - half),
         "high": float(value + half), "best": int(first), "worst": int(last), "methods": len(methods)}
        for method, value, half, first, last in zip(*columns, strict=True)
    ]  # fmt: skip


def distances_in_margins(sides: dict[str, Side], margins: dict[str, float]) -> Distances:
    """Return the distances of methods from retraining in units of their margins, with their joint error.

    A distance below retraining is measured by the margin on that side, which is negative, so that all results are
    positive.

    Parameters
    ----------
    sides
        Method → its numbers by one metric, of which that of its strongest attack is used.
    margins
        Name of a margin → its size.

    Raises
    ------
    ValueError
        If the methods' models do not correspond.
    """
    strongest = []
    for side in sides.values():
        numbers = distances.distances_of(side)
        attack = int(np.abs(numbers.value).argmax())
        strongest.append((side, np.eye(len(numbers.value))[attack]))  # weights of 1 and 0, which choose this attack
    together = distances.joint(strongest)
    if together is None:
        raise ValueError("the models of these methods do not correspond one to one")
    far_near = [distances.margin(side, margins) for side in sides.values()]  # far < 0 < near
    signed_margins = [near if value > 0 else far for value, (far, near) in zip(together.value, far_near, strict=True)]
    return together.combined(np.diag(1 / np.array(signed_margins)))


def _first_common_metric(scenarios: list[Effects]) -> str | None:
    """Return the first metric of the first scenario that decides, is not coarse, and that all other scenarios have too;
    None if there is none."""
    deciding = []  # for each scenario its metrics that decide and are not coarse; some may occur several times
    for effects in scenarios:
        rules = [(name, effect.rule) for by_metric in effects.values() for name, effect in by_metric.items()]
        deciding.append([name for name, rule in rules if rule.deciding and not rule.coarse])
    common = [name for name in deciding[0] if all(name in names for names in deciding)] if deciding else []
    return common[0] if common else None


def _corresponding_sides(effects: Effects, metric: str) -> dict[str, Side]:
    """Return method → its numbers by ``metric`` and what they are compared with, for the largest set of methods whose
    models correspond.

    Methods without such numbers are left out.
    """
    comparisons = {method: distances.side_or_reason(method, metric, effects) for method in effects}
    sides = {method: side for method, side in comparisons.items() if isinstance(side, Side)}
    return {method: sides[method] for method in distances.corresponding(sides)}
