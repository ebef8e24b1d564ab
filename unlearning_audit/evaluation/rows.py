"""Rows of numbers and failures, the same from a metric to the report, and their csv files."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from unlearning_audit.store.cells import table
from unlearning_audit.store.files import read_or_explain
from unlearning_audit.store.tables import write_rows


@dataclass(frozen=True, slots=True)
class Row:
    """One number of one method in one scenario.

    The fields from ``role`` on (`PLACES`) narrow down what the number is about. They are empty or None where they do
    not apply.

    Parameters
    ----------
    metric
        The name of the number.
    value
        The number; NaN if there is none.
    ci_low, ci_high
        The ends of the number's 95 % interval; NaN if there is none.
    n
        The number of samples, pairs or models over which it is a mean.
    note
        Remarks, or why there is no value.
    attack
        "name/form", or the name of a set of attacks.
    role
        The role of the samples: forget, heldout, retain or test.
    target
        The kind of target samples: vulnerable or protected.
    pair
        The number of a pair of splits.
    model
        The number of a model.
    models
        How many models are compared with each other.
    request
        The number of a request in a sequence.
    rate
        The false positive rate.
    step
        The step of relearning.
    rule
        How the number was computed where there is a choice, such as "8 answers" or the bits of rounded weights.
    confidence
        The confidence of a bound.
    """

    metric: str
    value: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    n: int = 0
    note: str = ""
    attack: str = ""
    role: str = ""
    target: str = ""
    pair: int | None = None
    model: int | None = None
    models: int | None = None
    request: int | None = None
    rate: float | None = None
    step: int | None = None
    rule: str = ""
    confidence: float | None = None

    @property
    def place(self) -> tuple[tuple[str, str | int | float], ...]:
        """Return the fields in `PLACES` that are set, as (name, value) in their order; () for a number about
        everything."""
        return tuple((name, value) for name in PLACES if (value := getattr(self, name)) not in ("", None))


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why numbers are missing.

    Parameters
    ----------
    kind
        "model", "method", "attack" or "metric": what raised, or returned something of the wrong type. "diverged": the
        logits of a model are NaN or infinite. "missing": a metric needs other models, which failed.
    name
        The attack, metric or method of the study.
    sentence
        Why it failed.
    file, line
        Where a plug-in raised; "" and 0 if that is unknown.
    traceback
        The last calls of the plug-in.
    """

    kind: str
    name: str
    sentence: str
    file: str = ""
    line: int = 0
    traceback: str = ""

    @property
    def whole(self) -> bool:
        """Return whether the method has no numbers at all; else only those of one attack or metric are missing."""
        return self.kind in ("model", "method", "diverged")

    @property
    def raised(self) -> bool:
        """Return whether a plug-in is at fault, rather than its input."""
        return self.kind in ("model", "method", "attack", "metric")


@dataclass(frozen=True, slots=True)
class Record:
    """A row or a failure of one method in one scenario.

    Parameters
    ----------
    scenario, protocol, method
        Where the row belongs.
    axes
        Name of a setting that the study varies → the label of its value in this scenario.
    row
        The row or the failure.
    """

    scenario: str
    protocol: str
    method: str
    axes: dict[str, str]
    row: Row | Failure


COLUMNS = tuple(field.name for field in fields(Row))

#: Fields of a row that narrow down what its number is about.
PLACES = COLUMNS[COLUMNS.index("role") :]

#: Columns of failures; their sentence stands in the column "note", and "failed" in the column "metric".
FAILED = ("failed", "name", "file", "line", "traceback")

#: The entry of a failure in the column metric.
FAILURE = "failed"

#: Columns of the table of a study that say whose row it is, and the prefix of its columns for settings that it varies.
OWNER = ("study", "scenario", "protocol", "method")
AXIS = "axis_"

#: Field → its type: int, float or str; and what an empty cell stands for.
_TYPES: dict[str, Any] = {name: (get_args(hint) or (hint,))[0] for name, hint in get_type_hints(Row).items()}
_EMPTY: dict[str, Any] = {field.name: field.default for field in fields(Row)} | {"metric": ""}


def problem(rows: Sequence[Row]) -> str:
    """Return what is wrong with rows of a user's metric, or "": a field of the wrong type (or a whole number below 0,
    or a text, other than the note, that is not printable in one line), ci_low > ci_high, or two rows with the same
    metric, attack and other fields that say what the number is about (`PLACES`)."""
    seen: set[tuple[Any, ...]] = set()
    for row in rows:
        for name in COLUMNS:
            value = getattr(row, name)
            if expected := _expected_instead(name, value):
                return f"field {name!r} of the row {row.metric!r:.60} must be {expected}, not {value!r:.60}"
        if row.ci_low > row.ci_high:
            ends = f"ends, at {row.ci_high:g}, before it begins, at {row.ci_low:g}"
            return f"the interval of the row {row.metric!r} {ends}"
        place = (row.metric, row.attack, *row.place)
        if place in seen:
            where = ", ".join(f"{name} {value}" for name, value in (("attack", row.attack), *row.place) if value != "")
            called = f"{row.metric!r}{f' of {where}' if where else ''}"
            return f"two rows are called {called}; set a field that tells them apart ({', '.join(PLACES)})"
        seen.add(place)
    return ""


def _expected_instead(name: str, value: object) -> str:
    """Return what the field ``name`` must contain, if ``value`` does not fit; else ""."""
    if value is None and _EMPTY[name] is None:
        return ""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if _TYPES[name] is int:
        return "" if number and isinstance(value, int) and value >= 0 else "a whole number of at least 0"
    if _TYPES[name] is float:
        return "" if number else "a number"
    printable = isinstance(value, str) and (name == "note" or value.isprintable())
    return "" if printable else "printable text in one line"


def write(path: str | Path, rows: Iterable[Row | Failure]) -> None:
    """Write ``metrics.csv``: a column for each field of `Row`, then columns of failures, which have the metric
    "failed"; numbers in full precision, NaN and None as empty cells."""
    write_rows(path, list(map(_line, rows)), (*COLUMNS, *FAILED))


def read(path: str | Path) -> list[Row | Failure]:
    """Read ``metrics.csv``. Raises ArtifactError that names the file."""
    return read_or_explain(path, lambda: list(map(_row, table(path))))


def write_study(path: str | Path, study: str, records: Collection[Record]) -> None:
    """Write the rows of all methods of a study to one csv file. Beside the columns of ``metrics.csv``, it says whose
    row each is (`OWNER`), and has a column for every setting that the study varies, such as ``axis_epsilon``."""
    axes = list(dict.fromkeys(AXIS + axis for record in records for axis in record.axes))
    lines = [
        {"study": study, "scenario": record.scenario, "protocol": record.protocol, "method": record.method}
        | {AXIS + axis: label for axis, label in record.axes.items()}
        | _line(record.row)
        for record in records
    ]
    write_rows(path, lines, (*OWNER, *axes, *COLUMNS, *FAILED))


def read_study(
    path: str | Path, scenarios: Collection[str] | None = None, metrics: Collection[str] | None = None
) -> list[Record]:
    """Read the rows of a study from the csv file that `write_study` wrote; if ``scenarios`` or ``metrics`` are given,
    only the rows of these (of failures, the metric is called "failed"). Raises ArtifactError that names the file."""
    accepted = {name: values for name, values in (("scenario", scenarios), ("metric", metrics)) if values is not None}

    def record(line: dict[str, str]) -> Record:
        """Return the record of one line, with the settings that the study varies and that are given there."""
        axes = {name.removeprefix(AXIS): label for name, label in line.items() if name.startswith(AXIS) and label}
        return Record(line["scenario"], line["protocol"], line["method"], axes, _row(line))

    def load() -> list[Record]:
        """Read the file at ``path``, and leave out all lines whose scenario or metric is not among the ``accepted``
        ones."""
        return [record(line) for line in table(path) if all(line[name] in texts for name, texts in accepted.items())]

    return read_or_explain(path, load)


def _line(row: Row | Failure) -> dict[str, Any]:
    """Return one line of ``metrics.csv``, column → value, for a number or a failure."""
    if isinstance(row, Row):
        return {name: getattr(row, name) for name in COLUMNS}
    place = {"file": row.file, "line": row.line or "", "traceback": row.traceback}
    return {"metric": FAILURE, "note": row.sentence, "failed": row.kind, "name": row.name, **place}


def _row(line: dict[str, str]) -> Row | Failure:
    """Return the row in a line, column → text, or, if its column "failed" has a text, the failure."""
    if line["failed"]:
        place = line["file"], int(line["line"] or 0), line["traceback"]
        return Failure(line["failed"], line["name"], line["note"], *place)
    return Row(*(_TYPES[name](line[name]) if line[name] else empty for name, empty in _EMPTY.items()))
