"""The measures measured: one line for each metric in each scenario, one column for each property."""

from unlearning.display.pivot import Cell, label, missing
from unlearning.display.sheet import Entry, Head, Line, Sheet, decimals, entry
from unlearning.meta import PROPERTIES

COLUMNS = ("measure", "property", "scenario", "value", "ci_low", "ci_high", "n", "note")
READING = (
    "Grounding: what retraining reads minus what perfect unlearning would; its interval should hold 0. Separation: "
    "retrain minus none in standard errors; below 2 the metric cannot tell doing nothing from doing it right. Power: "
    "share of the pairs of methods that are told apart. Agreement: Kendall's τ between the rankings of methods for "
    "other seeds or sizes; 1 = the same ranking. Monotonicity: Spearman's ρ with the privacy budget; −1 = falls as "
    "theory says."
)


def sheet(rows: list[dict]) -> Sheet:
    """The table of ``meta.evaluate`` rows; a property that a scenario does not show is left blank."""
    found: dict[tuple[str, str], dict[str, Cell]] = {}
    for row in rows:
        cell = Cell(row["value"], row["ci_low"], row["ci_high"], row["n"], row["note"])
        found.setdefault((row["scenario"], row["measure"]), {})[row["property"]] = cell
    shown = [what for what in PROPERTIES if any(what in cells for cells in found.values())]
    places = {what: decimals((c[what] for c in found.values() if what in c), least=2) for what in shown}
    lines = [
        Line(measure, tuple(_entry(cells.get(what), places[what]) for what in shown), section=label((scenario, "")))
        for (scenario, measure), cells in found.items()
    ]
    order = list(dict.fromkeys(line.section for line in lines))
    lines.sort(key=lambda line: order.index(line.section))
    records = tuple({name: row[name] for name in COLUMNS} for row in rows)
    return Sheet(
        "meta", "What each metric is worth", READING, "metric", tuple(map(Head, shown)), tuple(lines), (), records
    )


def _entry(cell: Cell | None, places: int) -> Entry:
    return Entry("") if cell is None else entry(cell if not cell.empty else missing(cell.note), places)
