"""Count which printed numbers were regenerated, and write docs/papers.md's share of them anew.

A printed number is regenerated where a table kept under resources/measured/ has a number beside it
(``resources/measured/printed.csv`` lists these tables), and planned where a table of a study has a cell for it.
"""

import csv
import itertools
import math
import sys

import library

from unlearning_audit.display import naming
from unlearning_audit.display.lookup import Cell
from unlearning_audit.display.tables import cells, published
from unlearning_audit.study import reading
from unlearning_audit.workflow import parameters, plan

ROOT = library.SCRIPTS.parent
FILE = ROOT / "resources" / "published" / "published.csv"
MEASURED = ROOT / "resources" / "measured"
PAGE = ROOT / "docs" / "papers.md"

#: The studies that carry the settings of the papers.
STUDIES = ("swap", "competition", "efficacy", "ruli", "ruli_cifar100", "ruli_vit", "ruli_text")

BEGIN, END = "<!-- printed numbers: scripts/printed_numbers.py -->\n", "<!-- end of printed numbers -->"
TEST = (("role", "test"),)


def name_of(row: dict) -> str:
    """A printed row's paper and table, as a study names them: "swap/table_1"."""
    return f"{row['paper']}/{row['table']}"


def tables() -> list[str]:
    """Every printed table that is known, such as "swap/table_1"."""
    with FILE.open(newline="", encoding="utf-8") as file:
        return sorted({name_of(row) for row in csv.DictReader(file)})


def besides(study: str) -> list[tuple[dict, str, dict, Cell]]:
    """(printed row, remark, case, cell) of every cell of a study's tables that a printed number stands beside."""
    planned, fits = plan.make(reading.read(*reading.load([ROOT / "studies" / f"{study}.yaml"]))), []
    for name, wish in planned.study.tables.items():
        if wish.published is None:
            continue
        rows, cases = published.read(FILE, wish.published), parameters.table(planned, name)["cases"]
        # A long table shows standard deviations over models beside the means.
        ends = ("", "_sd") if wish.layout == "long" else ("",)
        metrics = [metric + end for metric in cells.listed(wish.metric) for end in ends]
        places = [cells.place(about.model_dump()) for about in cells.listed(wish.where)]
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


def regenerated() -> dict[str, list[tuple[dict, str]]]:
    """Size ("paper" or "small") → (printed row, file) of every printed number that a kept table has a number beside."""
    sizes = {"paper": [], "small": []}
    with (MEASURED / "printed.csv").open(newline="", encoding="utf-8") as file:
        entries = list(csv.DictReader(file))
    for entry in entries:
        left = published.read(FILE, entry["printed"])
        with (MEASURED / entry["file"]).open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        for line, column in itertools.product(lines, ("published", "published_sd")):
            if line.get(column) and line["value"]:
                row = next((row for row in left if belongs(row, line, column)), None)
                if row is None:
                    raise ValueError(f"{entry['file']}: {entry['printed']} has no number {line[column]} as in {line}")
                if row["method"] != "any":  # what is printed of methods taken together stands beside each
                    left.remove(row)
                sizes[entry["size"]].append((row, entry["file"]))
    return sizes


def belongs(row: dict, line: dict, column: str) -> bool:
    """Whether a printed row is the one that a line of a kept table names by its metric, method and axes, and by the
    value in its ``column``: "published", or "published_sd" for a standard deviation."""
    names = {line["method"], line["method"].partition("_")[0]} | (
        {"original", ""} if line["method"] == "none" else set() if line["method"] == "retrain" else {"any"}
    )
    metric = line["metric"] + column.removeprefix("published")
    metric = published.printed_name(metric, line.get("role") or "", line.get("target") or "")
    value = abs(float(line[column])) if naming.meaning(line["metric"]).unsigned else float(line[column])
    axes = [part for part in line["setting"].split(";") if part]
    printed = dict(part.split("=", 1) for part in row["setting"].split(";") if part)
    same = all(printed.get(name, at) == at for name, at in (axis.split("=", 1) for axis in axes))
    # Where the name ends with that of the protocol, the line does not say it.
    alike = row["metric"].startswith(metric) if metric.endswith("_") else row["metric"] == metric
    return alike and row["method"] in names and math.isclose(row["value"], value) and same


def counts() -> dict[str, int]:
    """How many printed numbers there are, and how many were regenerated at the paper's size, at a small size only, are
    planned, or cannot be regenerated."""
    rows = [row for table in tables() for row in published.read(FILE, table)]
    sizes = regenerated()
    planned = [row for study in STUDIES for row, *_ in besides(study)]
    states = []
    for row in rows:
        matches = [size for size in ("paper", "small") if any(row == printed for printed, _ in sizes[size])]
        states.append(matches[0] if matches else "planned" if row in planned else "missing")
    return {"all": len(rows), **{name: states.count(name) for name in ("paper", "small", "planned", "missing")}}


def share() -> str:
    """What the page says of the counts."""
    number = counts()
    parts = {name: f"{count} ({100 * count / number['all']:.0f} %)" for name, count in number.items()}
    left = f"{number['missing']} have none." if number["missing"] else "Each has a cell in a study."
    return (
        f"Of {number['all']} printed numbers **{parts['paper']}** are regenerated at the paper's size,\n"
        f"**{parts['small']}** at a small size only, and **{parts['planned']}** are planned: a study has their\n"
        f"cell and was not run here. {left}\n"
    )


def page(text: str) -> str:
    """The page with the share written anew. Raises ValueError if it lacks the place."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE}: it lacks the lines {BEGIN.strip()!r} and {END!r}")
    return before + begin + share() + end + after


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"written: {PAGE}", file=sys.stderr)
