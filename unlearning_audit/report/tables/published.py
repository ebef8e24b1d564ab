"""Find the paper's printed number that matches one of ours, and whether our interval contains it."""

import math
from pathlib import Path
from typing import Any

import unlearning_audit
from unlearning_audit.report.tables import Cell, lookup, missing, naming, words
from unlearning_audit.store import cells

#: The papers' printed numbers.
FILE = unlearning_audit.ROOT / "resources/published/published.csv"

#: Settings that must agree for numbers to be comparable. A difference in another setting is only remarked on.
DEFINING = ("forget", "target", "attack", "variant", "forget_order")

COLUMNS = ("paper", "table", "dataset", "model", "method", "setting", "metric", "value", "note")


def read(path: str | Path, reference: str) -> list[dict[str, Any]]:
    """Return the rows that belong to one table of a paper, from a csv like `FILE` at ``path``.

    Each row is one printed number with the columns `COLUMNS`: "value" is a float, all others are text. Raises
    ArtifactError for a damaged file and ValueError if the file has no such table.

    Parameters
    ----------
    reference
        "paper/table", such as "swap/table_1".
    """
    rows = cells.table(path, COLUMNS, text=set(COLUMNS) - {"value"})
    paper, _, table = reference.partition("/")
    chosen = [row for row in rows if row["paper"] == paper and row["table"] == table]
    if not chosen:
        tables = sorted({f"{row['paper']}/{row['table']}" for row in rows})
        raise ValueError(f"published: there is no printed table {reference!r}; choose one of {', '.join(tables)}")
    return chosen


def beside(rows: list[dict[str, Any]], case: dict[str, Any], cell: Cell) -> tuple[Cell, str]:
    """Return the number that a paper prints for what ``cell`` measures in ``case``, and a remark on how the experiments
    differ.

    If no printed number or several match, the number is an empty cell with the reason. The remark begins with the note
    on the printed number, if it has one, or with the fact that the paper prints absolute values.

    Parameters
    ----------
    rows
        The rows of one printed table.
    """
    row, remark = fitting(rows, case, cell)
    if isinstance(row, str):  # why there is none
        return missing(row), ""
    if naming.meaning(cell.metric).unsigned:  # the paper prints the absolute value, which gets the sign of our number
        signed = Cell(math.copysign(row["value"], cell.value))
        return signed, "; ".join(filter(None, (words.UNSIGNED, remark)))
    return Cell(row["value"]), "; ".join(filter(None, (row.get("note", ""), remark)))


def fitting(rows: list[dict[str, Any]], case: dict[str, Any], cell: Cell) -> tuple[dict[str, Any] | str, str]:
    """Return the row of a printed table that matches ``cell`` in ``case``, and a remark on how the experiments differ
    ("" if they do not).

    Metric and method must match, and so must each setting in `DEFINING` or that the study varies, if some row of this
    metric and method states it: rows that do not state it then do not match. Of the rows that remain, the one with the
    fewest differences in other settings is taken. If no row matches, or if several with different values match equally
    well, a sentence that says why stands in place of the row, and the remark is "". No row matches the retrained
    control.
    """
    metric = _name(case, cell)
    rows = [row for row in rows if row["metric"] == metric]
    if not rows:
        return "the paper's table has no such metric", ""
    # Models before unlearning are also called "original" in print, and numbers that name no method belong to them. A
    # number printed for several methods together ("any") is shown beside each of them.
    also_called = {"none": {"original", ""}, "retrain": set()}.get(case["plugin"], {"any"})
    names = {case["plugin"], case["method"]} | also_called
    rows = [row for row in rows if row["method"] in names and case["method"] != "retrain_control"]
    if not rows:
        return "the paper prints no number for this method", ""
    fields = _fields(case, cell)
    # Of the settings that must agree, those that some row of the paper's table states.
    stated = {name for row in rows for name in _settings(row["setting"])}
    required = {name: fields[name] for name in (*case["axes"], *DEFINING) if name in fields and name in stated}
    rows = [row for row in rows
            if all(_same(_settings(row["setting"]).get(name), value) for name, value in required.items())]  # fmt: skip
    if not rows:
        return "the paper prints no number at " + " and ".join(f"{name} = {required[name]}" for name in required), ""
    least = min(len(_differences(row, fields)) for row in rows)
    first, *others = best = [row for row in rows if len(_differences(row, fields)) == least]
    if any(row["value"] != first["value"] for row in others):
        return "several printed numbers fit: " + "; ".join(sorted({row["setting"] for row in best})), ""
    differences = _differences(first, fields)  # each as the words (in the paper, here)
    printed, measured = map(", ".join, zip(*differences, strict=True)) if differences else ("", "")
    return first, f"printed for {printed}; measured here for {measured}" if differences else ""


def inside(cell: Cell, printed: Cell, places: int) -> bool | None:
    """Return whether the interval of our number, ``cell``, contains the number that a paper prints with ``places``
    decimals; None if our number, its interval or the printed number is missing."""
    if cell.empty or printed.empty or not cell.bounded:
        return None
    # The printed number stands for all numbers that round to it.
    rounding = 0.5 * 10.0**-places
    return cell.low - rounding <= printed.value <= cell.high + rounding


def most_decimals(rows: list[dict[str, Any]], case: dict[str, Any] | None, cell: Cell) -> int:
    """Return the most decimals with which ``rows`` print what ``cell`` measures in ``case``; 0 if they do not print it,
    or without a case."""
    values = [row["value"] for row in rows if case and row["metric"] == _name(case, cell)]
    return max((decimals(value) for value in values if math.isfinite(value)), default=0)


def decimals(value: float) -> int:
    """Return the fewest decimals, at most 10, with which a number can have been printed."""
    return len(f"{value:.10f}".rstrip("0").partition(".")[2])


def printed_name(metric: str, role: str = "", target: str = "", protocol: str = "") -> str:
    """Return the name that printed numbers use for one of our metrics: the pattern that the quantity declares
    (``printed``), filled in with the role of samples, the kind of target and the protocol; without a pattern, the
    metric's own name."""
    pattern = naming.meaning(metric).printed or metric
    return pattern.format(role=role, on_target=f"_on_{target}" if target else "", protocol=protocol)


def _name(case: dict[str, Any], cell: Cell) -> str:
    """Return the name that printed numbers use for what ``cell`` measures in ``case``."""
    about = dict(cell.where)
    return printed_name(cell.metric, str(about.get("role", "")), str(about.get("target", "")), case["protocol"])


def _settings(setting: str) -> dict[str, str]:
    """Return the settings that a printed row states, such as "alpha=0.25;pairs=4", as name → value."""
    return dict(part.split("=", 1) for part in setting.split(";") if part)


def _fields(case: dict[str, Any], cell: Cell) -> dict[str, object]:
    """Return the settings of our experiment by the names that papers use: data, model, what the study varies, the
    attack with its settings, and what the protocol says of forgotten samples and shadow models.

    ``forget``: which samples are forgotten; ``target``: which of them are attacked; ``shadows``: the total number of
    shadow models.
    """
    # The model is that of the facts, even if the study varies a setting of this name.
    facts = case["facts"] | case["axes"] | {"model": case["facts"]["model"]}
    facts |= {"attack": cell.attack} if cell.attack else {}
    facts |= _settings(naming.meaning(cell.metric).setting)
    protocol = lookup.protocol(case)
    # Protocols declare the option that says which samples are forgotten (``targets``), and an option with a factor that
    # give the number of shadow models (``shadows``).
    if protocol.targets in facts:
        facts["forget"] = facts[protocol.targets].replace("_and_", "+")
        facts["target"] = dict(cell.where).get("target", facts["forget"])
    option, factor = protocol.shadows or ("", 0)
    if option in facts:
        facts["shadows"] = factor * facts[option]
    return dict(facts)


def _differences(row: dict[str, Any], fields: dict[str, object]) -> list[tuple[str, str]]:
    """Return the settings that the paper's and our experiment state differently, each as the words (in the paper,
    here).

    Data and model are named by their value alone, as in "mnist"; other settings with their name, as in "alpha = 0.25".

    Parameters
    ----------
    row
        A row of a printed table.
    fields
        The settings of our experiment: name → value.
    """
    differences = []
    for name in ("dataset", "model"):
        # A paper's resnet18_dp is our resnet18: what such a suffix means stands in other settings.
        alike = _same(row[name], fields[name]) or row[name].startswith(f"{fields[name]}_")
        if row[name] and not alike:
            differences.append((row[name], str(fields[name])))
    for name, value in _settings(row["setting"]).items():
        if value and name in fields and not _same(value, fields[name]):
            differences.append((f"{name} = {value}", f"{name} = {fields[name]}"))
    return differences


def _same(left: Any, right: Any) -> bool:
    """Return whether two settings are the same: equal as numbers, or as text if one is not a number."""
    try:
        return math.isclose(float(left), float(right), rel_tol=1e-9)
    except (TypeError, ValueError):
        return str(left) == str(right)
