"""Make the table of tuned methods over all scenarios of a study, with the ranks that the data allow."""

import math
from pathlib import Path
from typing import Any

from unlearning_audit.report.tables import Cell, Entry, Head, Line, Sheet, interval, lookup, naming, words
from unlearning_audit.stats import decide
from unlearning_audit.store import cells

#: End of the name of a tuned method's copy at its published setting.
SUFFIX = "_published"
#: Verdicts on methods of no use.
USELESS = (decide.BROKEN, decide.OVER_UNLEARNED, decide.FAILED)


def lines(rows: list[dict[str, Any]], verdicts: dict[tuple[str, str], dict[str, str]]) -> list[dict[str, Any]]:
    """Return a row for each tuned method and each reference, the nearest to retraining first.

    "useless" lists the scenarios in which the method failed, broke its models or is over-unlearned. The columns
    "published_…" have a tuned method's numbers at its published setting, and NaN in the rows of references. The copy at
    this setting, whose name ends in `SUFFIX`, has no row of its own.

    Parameters
    ----------
    rows
        Distance and ranks of each method, as `unlearning_audit.comparisons.standings` returns them.
    verdicts
        (scenario, setting) → method → verdict.
    """
    by_name, records = {row["method"]: row for row in rows}, []
    for name, row in by_name.items():
        if name.endswith(SUFFIX) and name.removesuffix(SUFFIX) in by_name:
            continue
        published_row = by_name.get(f"{name}{SUFFIX}", {})
        useless = [lookup.label(where) for where, verdict_of in verdicts.items() if verdict_of.get(name) in USELESS]
        columns = ("distance", "low", "high", "best", "worst")
        published = {f"published_{column}": published_row.get(column, math.nan) for column in columns}
        records.append({**row, **published, "scenarios": len(verdicts), "useless": ", ".join(useless)})
    return sorted(records, key=lambda row: row["distance"])


def read(path: str | Path) -> list[dict[str, Any]]:
    """Return the rows of ``standings.csv``: a row for each tuned method and each reference, with its mean distance from
    retraining and its ranks. Raises ArtifactError for a damaged file."""
    return cells.table(path, text=("study", "method", "metric", "useless"))


def sheet(rows: list[dict[str, Any]], study: str) -> Sheet:
    """Return the table of standings: each method's mean distance from retraining over scenarios, its ranks, and where
    it is useless.

    A tuned method's distance and ranks at its tuned setting stand beside those at its published setting. The csv has
    the same numbers.

    Parameters
    ----------
    rows
        The rows that `lines` returns, one for each line of the table.
    """
    entries = []
    for row in rows:
        texts = (*_placed(row, ""), *_placed(row, "published_"), row["useless"])
        entries.append(Line(naming.method(row["method"]), [*map(Entry, texts)]))
    heads = [*map(Head, ("distance", "ranks", "distance, published", "ranks", "broken or over-unlearned in"))]
    records = [{"study": study, **row} for row in rows]
    return Sheet("standings", "Standings over scenarios", words.STANDINGS, "method", heads, entries, records)


def _placed(row: dict[str, Any], prefix: str) -> tuple[str, str]:
    """Return a distance with its interval, and the ranks that the method may have, as text; "" for both if the distance
    is unknown. ``prefix``: start of the columns' names, "" or "published_"."""
    columns = ("distance", "low", "high", "best", "worst")
    value, low, high, best, worst = (row[f"{prefix}{column}"] for column in columns)
    if math.isnan(value):
        return "", ""
    return interval(Cell(value, low, high), places=2), f"{best:g} to {worst:g} of {row['methods']:g}"
