"""Standings of methods over several scenarios: their mean distance from retraining, and the ranks that each may
have."""

from typing import Any

import numpy as np

from unlearning_audit.comparisons import distances
from unlearning_audit.comparisons.distances import Contrast, Effects
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.stats import average, rank_sets
from unlearning_audit.stats.paired import Distances


def standings(scenarios: list[Effects], *, margins: dict[str, float], draws: int, seed: int) -> list[dict[str, Any]]:
    """Return a row for each method that has a number in every one of the ``scenarios``, which are independent.

    ``distance`` is the method's mean distance in margins, by the first deciding metric that all scenarios have and that
    is not coarse, with its 95 % interval ``low`` to ``high``. ``best`` and ``worst`` are the ranks that it may have, at
    95 % for all methods at once; ``methods`` is the number of methods that are ranked. Of several attacks each method's
    strongest counts, as in a verdict; the sign of a distance does not. Return [] if scenarios have no common metric or
    fewer than two common methods.

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
    contrasts = [_corresponding_contrasts(effects, metric) for effects in scenarios]
    # The methods of all scenarios, in the order of the first.
    methods = [method for method in contrasts[0] if all(method in by_method for by_method in contrasts)]
    if len(methods) < 2:
        return []
    per_scenario = [
        distances_in_margins({name: by_method[name] for name in methods}, margins) for by_method in contrasts
    ]
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


def distances_in_margins(contrasts: dict[str, Contrast], margins: dict[str, float]) -> Distances:
    """Return the distances of methods from retraining in units of their margins, with their joint error.

    A negative distance is divided by the far end of the margin, which is negative, a positive one by the near end. So
    all results are positive.

    Parameters
    ----------
    contrasts
        Method → its numbers by one metric, of which that of its strongest attack is used.
    margins
        Name of a margin → its size.

    Raises
    ------
    ValueError
        If the methods' models do not correspond.
    """
    strongest = []
    for contrast in contrasts.values():
        numbers = distances.distances_of(contrast)
        attack = int(np.abs(numbers.value).argmax())
        strongest.append((contrast, np.eye(len(numbers.value))[attack]))  # weights of 1 and 0, which choose this attack
    together = distances.joint(strongest)
    if together is None:
        raise ValueError("the models of these methods do not correspond one to one")
    far_near = [distances.margin(contrast, margins) for contrast in contrasts.values()]  # far < 0 < near
    signed_margins = [near if value > 0 else far for value, (far, near) in zip(together.value, far_near, strict=True)]
    return together.combined(np.diag(1 / np.array(signed_margins)))


def _first_common_metric(scenarios: list[Effects]) -> str | None:
    """Return the first metric of the first scenario that decides, is not coarse, and that all other scenarios have too;
    None if there is none."""
    deciding = []  # for each scenario its metrics that decide and are not coarse; some may occur several times
    for effects in scenarios:
        rules = [(name, effect.rule) for by_metric in effects.values() for name, effect in by_metric.items()]
        deciding.append([name for name, rule in rules if rule.deciding and not rule.coarse])
    # The metrics that all scenarios have, in the order of the first.
    common = [name for name in deciding[0] if all(name in names for names in deciding)] if deciding else []
    return common[0] if common else None


def _corresponding_contrasts(effects: Effects, metric: str) -> dict[str, Contrast]:
    """Return method → its numbers by ``metric`` and what they are compared with, for the largest set of methods whose
    models correspond.

    Methods without such numbers are left out.
    """
    comparisons = {method: distances.contrast_or_reason(method, metric, effects) for method in effects}
    contrasts = {method: contrast for method, contrast in comparisons.items() if isinstance(contrast, Contrast)}
    return {method: contrasts[method] for method in distances.corresponding(contrasts)}
