"""Count which printed numbers were regenerated and whether they agree; write the counts that docs/evidence.md shows.

A printed number is regenerated if a table kept under resources/measured/ has a number beside it
(``resources/measured/printed.csv`` lists these tables), and planned if a table of a study has a cell for it. It differs
if it lies outside the interval of the measured number, and agrees if it lies inside. It is undecided if there is no
interval, or if it lies inside a wide one.
"""

import csv
import functools
import io
import itertools
import math
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.stats import chi2
from unlearning_audit.report import naming
from unlearning_audit.report.lookup import Cell
from unlearning_audit.report.tables import cells, published
from unlearning_audit.study import reading
from unlearning_audit.workflow import parameters, plan

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "resources" / "published" / "published.csv"
MEASURED = ROOT / "resources" / "measured"

#: The studies that carry the settings of the papers.
STUDIES = ("swap", "competition", "efficacy", "ruli", "ruli_cifar100", "ruli_vit", "ruli_text")

KEPT = MEASURED / "agreement.csv"
SUMS = MEASURED / "agreement.md"
OF_ROW = ("dataset", "model", "method", "setting", "metric")
COLUMNS = ("table", *OF_ROW, "printed", "state", "verdict", "value", "ci_low", "ci_high", "reason", "file")
VERDICTS = ("agrees", "differs", "undecided")

#: The widest interval that can agree, twice the margin of verdicts. For a standard deviation: the largest ratio of the
#: upper limit to the lower.
WIDEST, MOST_FACTOR = 0.1, 3.0
ROUNDING = 1e-9

TEST = (("role", "test"),)


def name_of(row: dict[str, Any]) -> str:
    """Return the paper and table of a printed row, as a study names them: "swap/table_1"."""
    return f"{row['paper']}/{row['table']}"


def tables() -> list[str]:
    """Return the names of all printed tables, such as "swap/table_1"."""
    with FILE.open(newline="", encoding="utf-8") as file:
        return sorted({name_of(row) for row in csv.DictReader(file)})


@functools.cache
def besides(study: str) -> list[tuple[dict[str, Any], str, dict[str, Any], Cell]]:
    """Return (printed row, remark, case, cell) of every cell of a study's tables that has a printed number."""
    planned = plan.make(reading.read(*reading.load([ROOT / "studies" / f"{study}.yaml"])))
    fits: list[tuple[dict[str, Any], str, dict[str, Any], Cell]] = []
    for name, wish in planned.study.tables.items():
        if wish.published is None:
            continue
        rows, cases = published.read(FILE, wish.published), parameters.table(planned, name)["cases"]
        # A long table shows standard deviations over models beside the means.
        ends = ("", "_sd") if wish.layout == "long" else ("",)
        metrics = [metric + end for metric in cells.listed(wish.metric) for end in ends]
        places = [cells.pairs_of(about.model_dump()) for about in cells.listed(wish.where)]
        asks = itertools.product(metrics, cells.listed(wish.attack), places)
        targets = [
            (case, Cell(0.5, metric=metric, attack=attack, where=where))
            for (metric, attack, where), case in itertools.product(asks, cases)
        ]
        if "accuracy" in wish.footer:
            before = Cell(0.5, metric="accuracy", where=TEST)
            targets += [(case, before) for case in cases if case["plugin"] == "none"]
        for case, cell in targets:
            row, remark = published.fitting(rows, case, cell)
            if isinstance(row, dict):
                fits.append((row, remark, case, cell))
    return fits


@dataclass(frozen=True)
class Beside:
    """A printed number and the number measured beside it, which one ``line`` of a kept table holds.

    ``row``: the printed row; ``column``: the column of the line that repeats the printed number; ``size``: "paper" or
    "small"; ``places``: decimals with which the metric is printed; ``otherwise``: why the two may differ, if the line
    gives no reason.
    """

    row: dict[str, Any]
    size: str
    file: str
    line: dict[str, Any]
    column: str
    places: int
    otherwise: str

    @property
    def interval(self) -> tuple[float, float, float] | None:
        """Return the measured number and its limits; None without limits.

        The limits of a standard deviation over models assume normal values. They are missing if all models have the
        same value or if there is one sample.
        """
        if self.column == "published":
            value, low, high = (float(self.line[name] or "nan") for name in ("value", "ci_low", "ci_high"))
            return (value, low, high) if high - low > 0 else None
        sd, models = float(self.line["sd"]), int(_settings(self.row["setting"])["seeds"])
        if sd < ROUNDING or int(self.line["n"]) < 2:
            return None
        low, high = (sd * math.sqrt((models - 1) / chi2.ppf(p, models - 1)) for p in (0.975, 0.025))
        return sd, low, high

    @property
    def verdict(self) -> str:
        """Return "agrees", "differs" or "undecided"."""
        if self.interval is None:
            return "undecided"
        _, low, high = self.interval
        printed, half = float(self.line[self.column]), 0.5 * 10.0**-self.places
        at_most = self.row["note"].startswith(("printed as at most", "printed as up to"))
        at_least = self.row["note"].startswith("printed as at least")
        if (low - half > printed and not at_least) or (high + half < printed and not at_most):
            return "differs"
        wide = high > MOST_FACTOR * low if self._of_spread else high - low > WIDEST  # too wide to agree with anything
        return "undecided" if wide else "agrees"

    @property
    def reason(self) -> str:
        """Return why the two numbers may differ: how the experiments differ, or the reason given for the whole
        table."""
        remarks = [part for part in self.line["note"].split("; ") if part.startswith(("printed for", "measured here"))]
        return "; ".join(remarks) or self.otherwise

    @property
    def departures(self) -> int:
        """Return how many of data set and model are not those of the printed experiment."""
        remark = next((part for part in self.line["note"].split("; ") if part.startswith("printed for")), "")
        return len(remark.split(", ")) if remark else 0

    @property
    def width(self) -> float:
        """Return the width of the interval; infinity without one."""
        return math.inf if self.interval is None else self.interval[2] - self.interval[1]

    @property
    def _of_spread(self) -> bool:
        """Return whether the number is a standard deviation."""
        return self.column.endswith("_sd") or self.line["metric"].endswith("_sd")


def _settings(text: str) -> dict[str, str]:
    """Return the options in a text such as "seeds=5;size=500"."""
    return dict(part.split("=", 1) for part in text.split(";") if part)


def regenerated() -> list[Beside]:
    """Return every printed number that a kept table has a number beside, once for each table."""
    beside = []
    with (MEASURED / "printed.csv").open(newline="", encoding="utf-8") as file:
        entries = list(csv.DictReader(file))
    for entry in entries:
        left = published.read(FILE, entry["printed"])
        decimals = {row["metric"]: 0 for row in left}
        for row in left:
            decimals[row["metric"]] = max(decimals[row["metric"]], published.decimals(row["value"]))
        with (MEASURED / entry["file"]).open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        for line, column in itertools.product(lines, ("published", "published_sd")):
            if line.get(column) and line["value"]:
                rows = [row for row in left if belongs(row, line, column)]
                if not rows:
                    raise ValueError(f"{entry['file']}: {entry['printed']} has no number {line[column]} as in {line}")
                row = rows[0]
                if row["method"] != "any":  # a number printed for several methods together is compared with each
                    left.remove(row)
                places = decimals[row["metric"]]
                beside.append(Beside(row, entry["size"], entry["file"], line, column, places, entry["differs"]))
    return beside


def belongs(row: dict[str, Any], line: dict[str, Any], column: str) -> bool:
    """Return whether a line of a kept table is about a printed row: same metric, method and axes, and the same value in
    ``column``.

    ``column`` is "published", or "published_sd" for a standard deviation.
    """
    names = {line["method"], line["method"].partition("_")[0]} | (
        {"original", ""} if line["method"] == "none" else set() if line["method"] == "retrain" else {"any"}
    )
    metric = line["metric"] + column.removeprefix("published")
    metric = published.printed_name(metric, line.get("role") or "", line.get("target") or "")
    value = abs(float(line[column])) if naming.meaning(line["metric"]).unsigned else float(line[column])
    axes = [part for part in line["setting"].split(";") if part]
    printed = dict(part.split("=", 1) for part in row["setting"].split(";") if part)
    same = all(printed.get(name, at) == at for name, at in (axis.split("=", 1) for axis in axes))
    # A name that ends with "_" is completed by the protocol, which the line does not name.
    alike = row["metric"].startswith(metric) if metric.endswith("_") else row["metric"] == metric
    return alike and row["method"] in names and math.isclose(row["value"], value) and same


def agreement() -> list[dict[str, Any]]:
    """Return a record for each printed number: its state, and its verdict if it was regenerated.

    States are "paper", "small", "planned" and "missing". Among the tables of the largest size, the verdict is by the
    one that departs least from the printed experiment in data and model, then by the narrowest interval. A number that
    differs has a reason. Raises ValueError for a difference without a reason.
    """
    beside = regenerated()
    planned = [row for study in STUDIES for row, *_ in besides(study)]
    lines = []
    for row in (row for table in tables() for row in published.read(FILE, table)):
        numbers = [one for one in beside if one.row == row]
        numbers = [one for one in numbers if one.size == "paper"] or numbers
        line = {"table": name_of(row), **{name: row[name] for name in OF_ROW}, "printed": row["value"]}
        if not numbers:
            lines.append({**line, "state": "planned" if row in planned else "missing"})
            continue
        best = min(numbers, key=lambda one: (one.departures, one.width))
        value, low, high = best.interval or (float(best.line["value" if best.column == "published" else "sd"]), "", "")
        if best.verdict == "differs" and not best.reason:
            raise ValueError(f"{best.file}: nothing says why {row['metric']} of {row['method']} differs from print")
        lines.append({
            **line, "state": best.size, "verdict": best.verdict, "value": _short(value), "ci_low": _short(low),
            "ci_high": _short(high), "reason": best.reason if best.verdict == "differs" else "", "file": best.file,
        })  # fmt: skip
    return lines


def _short(number: float | str) -> str:
    return number if isinstance(number, str) else f"{number:.4g}"


def share(lines: list[dict[str, Any]]) -> str:
    """Return the counts by size, by reason and by printed table, in Markdown."""
    states, all_lines = ("paper", "small", "planned"), len(lines)
    missing = sum(line["state"] == "missing" for line in lines)
    text = [
        f"The papers print {all_lines} numbers that are compared; "
        f"{f'{missing} have no cell in a study' if missing else 'each has a cell in a study'}.",
        "",
        "| size | printed numbers | agree | differ | undecided |",
        "|---|---|---|---|---|",
    ]
    for state in states:
        part = [line for line in lines if line["state"] == state]
        text.append(f"| {state} | {len(part)} ({100 * len(part) / all_lines:.0f} %) | {_verdicts(part)} |")
    spreads = [line for line in lines if line["metric"].endswith("_sd") or line["metric"].startswith("std_")]
    agree, differ, undecided = (sum(line["verdict"] == name for line in spreads) for name in VERDICTS)
    text += [
        "",
        f"{len(spreads)} of these are standard deviations: {agree} agree, {differ} differ, {undecided} are undecided.",
    ]
    why = Counter((line["state"], line["reason"]) for line in lines if line.get("verdict") == "differs")
    text += ["", "| why they may differ | size | differ |", "|---|---|---|"]
    text += [f"| {reason} | {state} | {count} |" for (state, reason), count in why.most_common()]
    text += ["", "| printed table | size | printed numbers | agree | differ | undecided |", "|---|---|---|---|---|---|"]
    for table, state in itertools.product(tables(), states):
        part = [line for line in lines if (line["table"], line["state"]) == (table, state)]
        if part:
            text.append(f"| {table} | {state} | {len(part)} | {_verdicts(part)} |")
    return "\n".join([*text, ""])


def _verdicts(part: list[dict[str, Any]]) -> str:
    numbers = [sum(line.get("verdict") == verdict for line in part) for verdict in VERDICTS]
    return " | ".join(map(str, numbers) if any(numbers) else "———")


def written(lines: list[dict[str, Any]]) -> str:
    """Return the content of ``agreement.csv``, with a line for each printed number."""
    text = io.StringIO()
    csv.DictWriter(text, COLUMNS, lineterminator="\n").writeheader()
    csv.DictWriter(text, COLUMNS, lineterminator="\n").writerows(lines)
    return text.getvalue()


if __name__ == "__main__":
    numbers = agreement()
    SUMS.write_text(share(numbers), encoding="utf-8")
    KEPT.write_text(written(numbers), encoding="utf-8")
    print(f"written: {SUMS} and {KEPT}", file=sys.stderr)
