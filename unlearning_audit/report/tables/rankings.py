"""Compute Kendall's τ between the rankings of methods in every two scenarios and settings: does one ranking hold in
all?

The methods none and retrain are left out, because every sound metric ranks them first and last.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from unlearning_audit import stats
from unlearning_audit.comparisons.compared import Compared
from unlearning_audit.plugins.declarations import Comparison
from unlearning_audit.report.lookup import Cell, Numbers, missing
from unlearning_audit.report.tables import Entry, Head, Line, Sheet, cells, decimals, entry, lookup, naming, words

Place = tuple[str, str]


class Ranking(NamedTuple):
    """The values of methods in one scenario and setting; a higher value is better."""

    place: Place
    values: dict[str, float]


def rank(numbers: Numbers, place: Place, metric: str, attack: str = "", rows: lookup.Where = ()) -> Ranking:
    """Return the ranking of methods by a metric in one scenario and setting (``place``).

    ``attack``: the attack whose numbers rank, for metrics that have one for each attack; ``rows``: which of the
    metric's rows, as `Numbers.cell` takes them. The methods none and retrain, and methods without a number, are left
    out.
    """
    cases = [case for case in numbers.cases if lookup.place(case) == place and case["plugin"] not in naming.BASELINES]
    cells = {case["method"]: numbers.cell(case, metric, attack, rows) for case in cases}
    return Ranking(place, {name: goodness(metric, c.value, attack) for name, c in cells.items() if not c.empty})


def goodness(metric: str, value: float, attack: str = "") -> float:
    """Return a number that is the higher the better a ``value`` of a metric is: the value itself, its negative, or
    minus its distance from the ideal.

    The metric's declared comparison decides which: the one under ``attack`` if there is one, else the first. Without
    any comparison, the declared direction of better values decides, or the ideal if no direction is declared.
    """
    quantity = naming.meaning(metric)
    how = next((how for how in quantity.comparisons if how.attack == attack), next(iter(quantity.comparisons), None))
    if how is None:
        two_sided = not quantity.better and not math.isnan(quantity.ideal)
        how = Comparison(metric, ideal=quantity.ideal, two_sided=two_sided, falling=quantity.better == "lower")
    return float(Compared(quantity, how).goodness(np.array(value)))


def agreement(left: Ranking, right: Ranking) -> Cell:
    """Return Kendall's τ-b over the methods that both rankings have; an empty cell with a reason if they share fewer
    than two."""
    shared = [name for name in left.values if name in right.values]
    if len(shared) < 2:
        return missing("fewer than two methods have a number in both scenarios")
    x, y = (np.array([ranking.values[name] for name in shared]) for ranking in (left, right))
    tau = stats.kendall(x=x, y=y)
    return Cell(tau.value, tau.low, tau.high, tau.n, tau.note)


def sheet(numbers: Numbers, order: dict[str, Any], printed: list[dict[str, Any]]) -> Sheet:
    """Return the table of an entry of a study's ``tables`` with the layout rankings: Kendall's τ between the rankings
    of methods by one metric in every two scenarios and settings.

    ``order``: as `workflow.parameters.table` returns it; ``printed`` is ignored, because papers print no such table.
    """
    wish = order["table"]
    metric, attack, rows = (cells.listed(wish[name])[0] for name in ("metric", "attack", "where"))
    ask = cells.Ask(metric, attack, cells.place(rows))
    ranked = [rank(numbers, place, *ask) for place in lookup.places(numbers.cases)]
    names = [cells.place_name(numbers, wish["columns"], ranking.place) for ranking in ranked]
    agreements = {(i, j): agreement(left, right) for i, left in enumerate(ranked) for j, right in enumerate(ranked[:i])}
    digits = decimals(agreements.values())
    lines, records = [], []
    for i, (left, name) in enumerate(zip(ranked, names, strict=True)):
        line = []
        for j, right in enumerate(ranked):
            cell = agreements.get((max(i, j), min(i, j)))  # τ is symmetric; there is none of a ranking with itself
            line.append(Entry("") if cell is None else entry(cell, digits, bare=True))
            if cell is not None and j < i:
                beside = {"other_scenario": right.place[0], "other_setting": right.place[1]}
                number = {**cells.cell_fields(cell, ask), "note": cell.note}
                records.append({"scenario": left.place[0], "setting": left.place[1], **beside, **number})
        lines.append(Line(name, line))
    reading = f"{words.RANKINGS} Ranked by {naming.meaning(ask.metric).display_name}."
    axis = naming.axis(wish["columns"]) if wish["columns"] != "scenario" else "scenario"
    return Sheet(order["name"], wish["title"], reading, axis, [*map(Head, names)], lines, records)
