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

    Each row is one printed number with the columns `COLUMNS`: "value" is a float, all others are text. ``reference``:
    "paper/table", such as "swap/table_1". Raises ArtifactError for a damaged file and ValueError if the file has no
    such table.
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

    ``rows``: those of one printed table. The metric, the method, the forgotten samples, the attacked samples and the
    values of the study's axes must match. Among the rows that remain, the one that agrees in most other settings (data,
    model, …) is taken, and the remark names the differences. The number is an empty cell, with a reason, if no row
    matches or if several rows match equally well.
    """
    cell_of_paper, remark = fitting(rows, case, cell)
    if isinstance(cell_of_paper, str):
        return missing(cell_of_paper), ""
    if naming.meaning(cell.metric).unsigned:
        signed = Cell(math.copysign(cell_of_paper["value"], cell.value))
        return signed, "; ".join(filter(None, (words.UNSIGNED, remark)))
    return Cell(cell_of_paper["value"]), "; ".join(filter(None, (cell_of_paper.get("note", ""), remark)))


def fitting(rows: list[dict[str, Any]], case: dict[str, Any], cell: Cell) -> tuple[dict[str, Any] | str, str]:
    """Return the row of a printed table that matches ``cell`` in ``case``, and a remark on how the experiments differ
    ("" if they do not).

    Metric, method and the settings in `DEFINING` and on the study's axes must match, as far as the table states them.
    Of the rows that remain, the one with the fewest other differences is taken. If no row matches, as is always so for
    the retrained control, or if several with different values match equally well, return a sentence that says why, and
    "".
    """
    metric = _name(case, cell)
    rows = [row for row in rows if row["metric"] == metric]
    if not rows:
        return "the paper's table has no such metric", ""
    # Models before unlearning have two names in print; numbers that name no method belong to them, too. A number
    # printed for several methods together is shown beside each of them.
    more = {"none": {"original", ""}, "retrain": set()}.get(case["plugin"], {"any"})
    names = {case["plugin"], case["method"]} | more
    rows = [row for row in rows if row["method"] in names and case["method"] != "retrain_control"]
    if not rows:
        return "the paper prints no number for this method", ""
    fields = _fields(case, cell)
    # Of the settings that must agree, those that some row of the paper's table states.
    must = {name: fields[name] for name in (*case["axes"], *DEFINING) if name in fields}
    along = {name: value for name, value in must.items() if any(name in _settings(row["setting"]) for row in rows)}
    rows = [row for row in rows if all(_same(_settings(row["setting"]).get(k), v) for k, v in along.items())]
    if not rows:
        return "the paper prints no number at " + " and ".join(f"{k} = {v}" for k, v in along.items()), ""
    unlike = [(_differences(row, fields), row) for row in rows]
    least = min(len(differences) for differences, _ in unlike)
    best = [(differences, row) for differences, row in unlike if len(differences) == least]
    if len({row["value"] for _, row in best}) > 1:
        return "several printed numbers fit: " + "; ".join(sorted({row["setting"] for _, row in best})), ""
    differences, row = best[0]
    printed, values = (", ".join(pair[side] for pair in differences) for side in (0, 1))
    return row, f"printed for {printed}; measured here for {values}" if differences else ""


def inside(cell: Cell, printed: Cell, places: int) -> bool | None:
    """Return whether our interval contains the number printed with ``places`` decimals; None if a number is missing."""
    if cell.empty or printed.empty or not cell.bounded:
        return None
    # The printed number stands for all numbers that round to it.
    rounding = 0.5 * 10.0**-places
    return cell.low - rounding <= printed.value <= cell.high + rounding


def places(rows: list[dict[str, Any]], case: dict[str, Any] | None, cell: Cell) -> int:
    """Return the most decimals with which ``rows`` print what ``cell`` measures in ``case``."""
    values = [row["value"] for row in rows if case and row["metric"] == _name(case, cell)]
    return max((decimals(value) for value in values if math.isfinite(value)), default=0)


def decimals(value: float) -> int:
    """Return the fewest decimals with which a number can have been printed."""
    return len(f"{value:.10f}".rstrip("0").partition(".")[2])


def printed_name(metric: str, role: str = "", target: str = "", protocol: str = "") -> str:
    """Return the name that printed numbers use for one of our metrics, for samples of a role and of a kind of
    target."""
    form = naming.meaning(metric).printed or metric
    return form.format(role=role, on_target=f"_on_{target}" if target else "", protocol=protocol)


def _name(case: dict[str, Any], cell: Cell) -> str:
    about = dict(cell.where)
    return printed_name(cell.metric, str(about.get("role", "")), str(about.get("target", "")), case["protocol"])


def _settings(setting: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in setting.split(";") if part)


def _fields(case: dict[str, Any], cell: Cell) -> dict[str, object]:
    """Return the settings of our experiment by the names that papers use: data, model, axes, and the attack with its
    settings.

    ``target``: which of the forgotten samples are attacked; ``shadows``: the total number of shadow models.
    """
    # The model is that of the facts, even if an axis has this name.
    facts = case["facts"] | case["axes"] | {"model": case["facts"]["model"]}
    facts |= {"attack": cell.attack} if cell.attack else {}
    facts |= _settings(naming.meaning(cell.metric).setting)
    protocol = lookup.protocol(case)
    if protocol.targets in facts:
        facts["forget"] = facts[protocol.targets].replace("_and_", "+")
        facts["target"] = dict(cell.where).get("target", facts["forget"])
    option, factor = protocol.shadows or ("", 0)
    if option in facts:
        facts["shadows"] = factor * facts[option]
    return dict(facts)


def _differences(row: dict[str, Any], fields: dict[str, object]) -> list[tuple[str, str]]:
    """Return the settings that both experiments state differently, each as the words (in the paper, here).

    ``row``: a row of a printed table; ``fields``: the settings of our experiment, as `_fields` returns them.
    """
    # A paper's resnet18_dp is our resnet18: what such a suffix means stands in other settings.
    names = [name for name in ("dataset", "model") if not row[name].startswith(f"{fields[name]}_")]
    pairs = [(row[name], fields[name], "") for name in names]
    settings = _settings(row["setting"])
    pairs += [(value, fields[name], f"{name} = ") for name, value in settings.items() if name in fields]
    unlike = [pair for pair in pairs if pair[0] and not _same(*pair[:2])]
    return [(f"{name}{printed}", f"{name}{measured}") for printed, measured, name in unlike]


def _same(left: Any, right: Any) -> bool:
    try:
        return math.isclose(float(left), float(right), rel_tol=1e-9)
    except (TypeError, ValueError):
        return str(left) == str(right)
