"""Compute Kendall's τ between the rankings of methods in every two scenarios and settings: does one ranking hold in
all?

The methods none and retrain are left out, because every sound metric ranks them first and last.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from unlearning_audit import stats
from unlearning_audit.comparisons.meta import Compared
from unlearning_audit.plugins.declarations import Comparison
from unlearning_audit.report.lookup import Cell, Numbers, missing
from unlearning_audit.report.tables import Entry, Head, Line, Sheet, cells, decimals, entry, lookup, naming, words

Place = tuple[str, str]


class Ranking(NamedTuple):
    """The ``values`` of methods by one metric in one scenario and setting (``place``), transformed so that a higher
    value is better (`goodness`)."""

    place: Place
    values: dict[str, float]


def rank(numbers: Numbers, place: Place, metric: str, attack: str = "", rows: lookup.Where = ()) -> Ranking:
    """Return the ranking of methods by a metric in one scenario and setting (``place``).

    Methods without a number are left out, and so are methods of the plug-ins none and retrain, under whatever name.

    Parameters
    ----------
    attack
        The attack whose numbers rank, for metrics that have a number for each attack; "" for the preferred one.
    rows
        The fields that select one of the metric's rows, such as the role of samples, as (name, value) pairs.
    """
    cases = [case for case in numbers.cases if lookup.place(case) == place and case["plugin"] not in naming.BASELINES]
    found = {case["method"]: numbers.cell(case, metric, attack, rows) for case in cases}
    values = {name: goodness(metric, cell.value, attack) for name, cell in found.items() if not cell.empty}
    return Ranking(place, values)


def goodness(metric: str, value: float, attack: str = "") -> float:
    """Return a number that is higher for a better ``value`` of a metric: the value itself, its negative, or minus its
    distance from the ideal.

    The comparison that the metric declares decides which of the three: the one under ``attack`` or, if there is none,
    the first. If the metric declares no comparison, its declared direction of better values decides; without a
    direction, its ideal; without either, the number is the value itself.
    """
    quantity = naming.meaning(metric)
    under_attack = [how for how in quantity.comparisons if how.attack == attack]
    how = next(iter([*under_attack, *quantity.comparisons]), None)
    if how is None:
        two_sided = not quantity.better and not math.isnan(quantity.ideal)
        how = Comparison(metric, ideal=quantity.ideal, two_sided=two_sided, falling=quantity.better == "lower")
    return float(Compared(quantity, how).goodness(np.array(value)))


def agreement(left: Ranking, right: Ranking) -> Cell:
    """Return Kendall's τ-b over the methods that both rankings have; an empty cell with a reason if they share fewer
    than two, or if one of them ranks all of these alike."""
    shared = [name for name in left.values if name in right.values]
    if len(shared) < 2:
        return missing("fewer than two methods have a number in both scenarios")
    x, y = (np.array([ranking.values[name] for name in shared]) for ranking in (left, right))
    tau = stats.kendall(x=x, y=y)
    return Cell(tau.value, tau.low, tau.high, n=tau.n, note=tau.note)


def sheet(numbers: Numbers, order: dict[str, Any], printed: list[dict[str, Any]]) -> Sheet:
    """Return the table of an entry of a study's ``tables`` with the layout rankings: Kendall's τ between the rankings
    of methods by one metric, for each pair of scenarios and settings.

    Parameters
    ----------
    order
        The job's settings, as `workflow.parameters.table` returns them: ``name``, and ``table``, the study's entry.
    printed
        Ignored, because papers print no such table.
    """
    settings = order["table"]
    # Methods are ranked by the first metric, attack and rows that the study names.
    (metric, *_), (attack, *_), (rows, *_) = (cells.listed(settings[name]) for name in ("metric", "attack", "where"))
    ask = cells.Ask(metric, attack, cells.pairs_of(rows))
    ranked = [rank(numbers, place, *ask) for place in lookup.places(numbers.cases)]
    names = [cells.place_name(numbers, settings["columns"], ranking.place) for ranking in ranked]
    # (i, j) with j < i → τ between two rankings; τ is symmetric, and there is none of a ranking with itself.
    agreements = {(i, j): agreement(left, right) for i, left in enumerate(ranked) for j, right in enumerate(ranked[:i])}
    digits = decimals(agreements.values())
    records = []
    for (i, j), cell in agreements.items():
        (scenario, setting), (other_scenario, other_setting) = ranked[i].place, ranked[j].place
        records.append({"scenario": scenario, "setting": setting, "other_scenario": other_scenario,
                        "other_setting": other_setting, **cells.cell_fields(cell, ask), "note": cell.note})  # fmt: skip
    texts = {pair: entry(cell, digits, bare=True) for pair, cell in agreements.items()}
    lines = []
    for i, name in enumerate(names):
        lines.append(Line(name, [texts.get((max(i, j), min(i, j)), Entry("")) for j in range(len(names))]))
    reading = f"{words.RANKINGS} Ranked by {naming.meaning(ask.metric).display_name}."
    corner, heads = naming.axis(settings["columns"]), [*map(Head, names)]
    return Sheet(order["name"], settings["title"], reading, corner, heads, lines, records)
