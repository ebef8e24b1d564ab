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
    """Return the names of all metrics; those that are evaluated on other models than the rest come last."""
    names, apart = dict.fromkeys(row["metric"] for row in rows), elsewhere(rows)
    return sorted(names, key=apart.__contains__)  # True is sorted after False


def elsewhere(rows: list[dict[str, Any]]) -> list[str]:
    """Return the names of metrics for which no property comes from the usual scenario of the property. The usual
    scenario of a property is the one from which most metrics have it (`common_scenario`)."""
    spoken = overview(rows)
    usual = {label: common_scenario(rows, label) for _, label in spoken}
    near = {metric for (metric, label), row in spoken.items() if row["scenario"] == usual[label]}
    return [metric for metric in dict.fromkeys(metric for metric, _ in spoken) if metric not in near]


def sheets(rows: list[dict[str, Any]]) -> list[Sheet]:
    """Return the table of all metrics over all scenarios, and, if there are such rows, that of their agreement."""
    between = [row for row in rows if row["property"].startswith(WITH)]
    return [*([_whole(rows)] if rows else []), *([_between(between)] if between else [])]


def _between(rows: list[dict[str, Any]]) -> Sheet:
    """Return a table with a line and a column for each metric: Kendall's τ between the rankings of methods by both.
    Intervals are only in the csv.

    ``rows``: those of meta.csv (`read`) whose "property" is `WITH` and the name of another metric; "n" is the number of
    methods that both metrics rank.
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

    Each column shows one scenario, which its head names (`common_scenario`). If a metric has no value from that
    scenario, its value from another scenario is shown, with a footnote which says that it is of other models. For a
    metric all of whose values are of other scenarios (`elsewhere`), the footnote stands at its name instead. The last
    property, "models", is a count and has no such footnote.
    """
    spoken = overview(rows)
    qualities = [quality for quality in PROPERTIES if any(quality == present for _, present in spoken)]
    places = {quality: decimals((_cell(row) for (_, of), row in spoken.items() if of == quality), least=2)
              for quality in qualities} | {"models": 0}  # fmt: skip
    main = {quality: common_scenario(rows, quality) for quality in qualities}
    apart, lines = elsewhere(rows), []
    for name in metrics(rows):
        entries = []
        for quality in qualities:
            row = spoken.get((name, quality))
            beside = row and row["scenario"] != main[quality] and name not in apart and quality != "models"
            entries.append(_entry(row, places[quality], _on(row["scenario"]) if row and beside else ""))
        notes = (_on(next(row["scenario"] for (m, _), row in spoken.items() if m == name)),) if name in apart else ()
        lines.append(Line(name, entries, notes))
    heads = [Head(SHORT.get(quality, quality), "" if quality == "models" else f"scenario {_name(main[quality])}")
             for quality in qualities]  # fmt: skip
    records = [{name: row[name] for name in COLUMNS} for row in rows]
    return Sheet("meta", "Can each metric be trusted?", words.META, "metric", heads, lines, records)


def _cell(row: dict[str, Any]) -> Cell:
    cell = Cell(row["value"], n=row["n"], note=row["note"])
    return cell if row["property"] == "models" else replace(cell, low=row["ci_low"], high=row["ci_high"])


def _entry(row: dict[str, Any] | None, places: int, more: str = "") -> Entry:
    """Return the cell of one property of a metric, coloured by whether it passes, with ``more`` as a further footnote;
    an empty cell if ``row`` is None."""
    if row is None:
        return Entry("")
    cell = _cell(row)
    # In units of standard errors, the interval is always ± 1.96, so it is left out.
    text = entry(cell if not cell.empty else missing(cell.note), places, bare=row["property"] == "separation")
    return Entry(text.text, (*text.notes, *filter(None, [more])), verdict(row))


def _name(scenario: str) -> str:
    return label((scenario, ""))


def _on(scenario: str) -> str:
    return f"on other models, those of scenario {_name(scenario)}"
