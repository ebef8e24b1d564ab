"""The papers' printed numbers beside ours: which one belongs to a case, the difference, and whether we hold it."""

import csv
import math
from collections.abc import Iterable
from pathlib import Path

from unlearning.display.pivot import Cell, missing
from unlearning.files import checked

#: Our metric → what the printed numbers call it. A metric with a setting is told apart by it.
NAMES = {
    "q": "unlearning_quality",
    "mia_score": "mia_score",
    "ic_score": "ic_score",
    "accuracy;role=forget": "forget_accuracy",
    "accuracy;role=retain": "retain_accuracy",
    "accuracy;role=test": "test_accuracy",
    "privacy_auc": "privacy_auc",
    "privacy_accuracy": "privacy_accuracy",
    "efficacy_accuracy": "efficacy_accuracy",
}
COLUMNS = ("source", "table", "dataset", "model", "method", "setting", "metric", "value")


def read(path: str | Path, wanted: str) -> list[dict]:
    """Rows of one printed table; ``wanted`` is "paper/table", the paper by the start of its source.

    Raises ArtifactError for a damaged file and ValueError if the file has no such table.
    """

    def load() -> list[dict]:
        with Path(path).open(newline="", encoding="utf-8") as file:
            return [
                {name: row[name] for name in COLUMNS} | {"value": float(row["value"])} for row in csv.DictReader(file)
            ]

    rows = checked(path, load)
    paper, _, table = wanted.partition("/")
    found = [row for row in rows if row["source"].split("_")[0] == paper and row["table"] == table]
    if not found:
        known = sorted({f"{row['source'].split('_')[0]}/{row['table']}" for row in rows})
        raise ValueError(f"published: {wanted!r} is none of the printed tables known here: {', '.join(known)}")
    return found


def beside(rows: list[dict], case: dict, cell: Cell) -> tuple[Cell, str]:
    """The printed number for what ``cell`` measures in ``case``, and a remark on how the experiments differ.

    ``rows`` of one printed table. Metric, method and the values of the study's own axes must agree; of the rest
    (data, model, other settings) the printed number that agrees in most is taken, and the remark names what
    differs. The cell is empty, with the reason, where nothing fits or several numbers fit equally well.
    """
    metric = _name(case, cell)
    rows = [row for row in rows if row["metric"] == metric]
    if not rows:
        return missing("the paper's table has no such metric"), ""
    names = {case["plugin"], case["method"]} | ({"original"} if case["plugin"] == "none" else set())
    rows = [row for row in rows if row["method"] in names and case["method"] != "retrain_control"]
    if not rows:
        return missing("the paper prints no number for this method"), ""
    along = {name: case["axes"][name] for name in case["axes"] if any(name in _settings(row) for row in rows)}
    rows = [row for row in rows if all(_same(_settings(row).get(k), v) for k, v in along.items())]
    if not rows:
        return missing("the paper prints no number at " + " and ".join(f"{k} = {v}" for k, v in along.items())), ""
    unlike = [(_differences(row, case, cell.attack), row) for row in rows]
    least = min(len(found) for found, _ in unlike)
    best = [(found, row) for found, row in unlike if len(found) == least]
    if len({row["value"] for _, row in best}) > 1:
        return missing("several printed numbers fit: " + "; ".join(sorted({row["setting"] for _, row in best}))), ""
    found, row = best[0]
    return Cell(row["value"]), _remark(found)


def inside(cell: Cell, printed: Cell, places: int) -> bool | None:
    """Whether our interval holds the number printed with ``places`` decimals; None where one is missing."""
    if cell.empty or printed.empty or not cell.bounded:
        return None
    # The printed number stands for all that round to it.
    half = 0.5 * 10.0**-places
    return cell.low - half <= printed.value <= cell.high + half


def decimals(values: Iterable[float]) -> int:
    """How many decimals a list of numbers was printed with, at most."""
    return max((len(f"{v:.10f}".rstrip("0").partition(".")[2]) for v in values if math.isfinite(v)), default=0)


def _name(case: dict, cell: Cell) -> str:
    if cell.metric == "q_sd":
        return f"std_unlearning_quality_{'random_splits' if case['protocol'] == 'random_splits' else 'swap'}"
    return NAMES.get(";".join(filter(None, (cell.metric, cell.setting))), NAMES.get(cell.metric, cell.metric))


def _settings(row: dict) -> dict[str, str]:
    return dict(part.split("=", 1) for part in row["setting"].split(";") if part)


def _differences(row: dict, case: dict, attack: str) -> list[tuple[str, str]]:
    """In what the printed experiment differs from ours, as far as both sides say: (theirs, ours) in words."""
    ours = case["facts"] | case["axes"] | ({"attack": attack} if attack else {})
    # A suffix of the printed name, as in resnet18_dp, says how it was used there, which our settings say elsewhere.
    pairs = [(row[name], ours[name], "") for name in ("dataset", "model") if not row[name].startswith(f"{ours[name]}_")]
    pairs += [(value, ours[name], f"{name} = ") for name, value in _settings(row).items() if name in ours]
    return [(f"{name}{theirs}", f"{name}{own}") for theirs, own, name in pairs if theirs and not _same(theirs, own)]


def _remark(differences: list[tuple[str, str]]) -> str:
    if not differences:
        return ""
    theirs, ours = (", ".join(side) for side in zip(*differences, strict=True))
    return f"printed for {theirs}; measured here for {ours}"


def _same(one: object, other: object) -> bool:
    try:
        return math.isclose(float(one), float(other), rel_tol=1e-9)
    except (TypeError, ValueError):
        return str(one) == str(other)
