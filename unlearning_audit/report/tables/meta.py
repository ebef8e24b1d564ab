"""Make the tables of the evaluation of metrics: a line for each metric and a column for each property; and how metrics
agree with each other."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from unlearning_audit.comparisons.meta import PROPERTIES, WITH, common_scenario, overview, verdict
from unlearning_audit.report.lookup import label
from unlearning_audit.report.tables import Cell, Entry, Head, Line, Sheet, decimals, entry, missing, words
from unlearning_audit.store import cells

COLUMNS = ("metric", "property", "scenario", "value", "ci_low", "ci_high", "n", "note")
#: Short forms of heads that would be wider than their columns.
SHORT = {"agreement over seeds": "τ over seeds", "agreement over sizes": "τ over sizes"}


def read(path: str | Path) -> list[dict[str, Any]]:
    """Read the evaluation of metrics, a row for each metric and property, from the file meta.csv. Raises ArtifactError
    if the file is missing or its columns are not valid."""
    return cells.table(path, COLUMNS, text=("metric", "property", "scenario", "note"), whole=("n",))


def metrics(rows: list[dict[str, Any]]) -> list[str]:
    """Return the names of all metrics; metrics that are evaluated on other models than most metrics come last."""
    names, last = dict.fromkeys(row["metric"] for row in rows), elsewhere(rows)
    return [*(name for name in names if name not in last), *(name for name in names if name in last)]


def elsewhere(rows: list[dict[str, Any]]) -> list[str]:
    """Return the names of metrics that are evaluated on other models than most metrics.

    One scenario represents each property of metrics (`common_scenario`). A metric is returned if none of its properties
    was evaluated in the scenario that represents that property.
    """
    row_of = overview(rows)  # (metric, property) → row
    usual = {quality: common_scenario(rows, quality) for _, quality in row_of}
    on_usual_models = {metric for (metric, quality), row in row_of.items() if row["scenario"] == usual[quality]}
    return [metric for metric in dict.fromkeys(metric for metric, _ in row_of) if metric not in on_usual_models]


def sheets(rows: list[dict[str, Any]]) -> list[Sheet]:
    """Return the table of the properties of metrics, and the table of how every two metrics agree; a table for which
    there are no rows is left out."""
    between = [row for row in rows if row["property"].startswith(WITH)]
    return ([_whole(rows)] if rows else []) + ([_between(between)] if between else [])


def _between(rows: list[dict[str, Any]]) -> Sheet:
    """Return a table with a line and a column for each metric. A cell has Kendall's τ between the rankings of methods
    by the metric of the line and by that of the column, "·" for a metric with itself, and "" for two metrics without a
    row. Intervals are only in the csv.

    ``rows``: the rows of meta.csv (`read`) whose "property" is `WITH` and the name of another metric; "n" is the number
    of methods that both metrics rank.
    """
    names = list(dict.fromkeys(row["metric"] for row in rows))
    cells = {(row["metric"], row["property"].removeprefix(WITH)): entry(_cell(row), 2, bare=True) for row in rows}
    cells |= {(name, name): Entry("·") for name in names}
    lines = [Line(name, [cells.get((name, column), Entry("")) for column in names]) for name in names]
    scenario, count = _name(rows[0]["scenario"]), max(row["n"] for row in rows)
    reading = (
        f"Kendall's τ between the rankings of up to {count} methods by every two metrics, on the same models, those "
        f"of scenario {scenario}: 1 = the same ranking, 0 = unrelated, −1 = reversed."
    )
    heads = [*map(Head, names)]
    return Sheet("meta-between", "Do metrics rank methods alike?", reading, "metric", heads, lines)


def _whole(rows: list[dict[str, Any]]) -> Sheet:
    """Return the table of the properties of metrics (power, separation, …): a line for each metric, a column for each
    property.

    A column shows values from one scenario, which its head names and which is that of the other columns if possible. If
    a metric has no value from that scenario, its value from another scenario is shown, with a footnote which says that
    it is of other models. If all values of a metric are from other scenarios, the footnote stands once, at the metric's
    name. The last property, "models", is a count and has no such footnote.
    """
    row_of = overview(rows)  # (metric, property) → row
    qualities = [quality for quality in PROPERTIES if any(quality == present for _, present in row_of)]
    places = {quality: decimals((_cell(row) for (_, other), row in row_of.items() if other == quality), least=2)
              for quality in qualities} | {"models": 0}  # fmt: skip
    main = {quality: common_scenario(rows, quality) for quality in qualities}
    on_other_models, lines = elsewhere(rows), []
    for name in metrics(rows):
        entries: list[Entry] = []
        for quality in qualities:
            row = row_of.get((name, quality))
            elsewhere_only = row and row["scenario"] != main[quality] and quality != "models"
            footnote = _on(row["scenario"]) if row and elsewhere_only and name not in on_other_models else ""
            entries.append(_entry(row, places[quality], footnote))
        scenario = next(row["scenario"] for (metric, _), row in row_of.items() if metric == name)
        lines.append(Line(name, entries, notes=(_on(scenario),) if name in on_other_models else ()))
    heads = [Head(SHORT.get(quality, quality), "" if quality == "models" else f"scenario {_name(main[quality])}")
             for quality in qualities]  # fmt: skip
    records = [{name: row[name] for name in COLUMNS} for row in rows]
    return Sheet("meta", "Can each metric be trusted?", words.META, "metric", heads, lines, records)


def _cell(row: dict[str, Any]) -> Cell:
    """Return the number in a row of the evaluation of metrics, with its interval; a number of models has none."""
    cell = Cell(row["value"], n=row["n"], note=row["note"])
    return cell if row["property"] == "models" else replace(cell, low=row["ci_low"], high=row["ci_high"])


def _entry(row: dict[str, Any] | None, places: int, more: str = "") -> Entry:
    """Return the cell of one property of a metric, coloured by whether the metric passes, with ``more`` as a further
    footnote: "—" with the reason as a footnote if there is no value; an empty cell if ``row`` is None."""
    if row is None:
        return Entry("")
    cell = _cell(row)
    # In units of standard errors, the interval is always ± 1.96, so it is left out.
    text = entry(cell if not cell.empty else missing(cell.note), places, bare=row["property"] == "separation")
    return Entry(text.text, (*text.notes, *filter(None, [more])), tone=verdict(row))


def _name(scenario: str) -> str:
    """Return a scenario's name as readers see it."""
    return label((scenario, ""))


def _on(scenario: str) -> str:
    """Return the footnote of a value that is of other models than its column."""
    return f"on other models, those of scenario {_name(scenario)}"
