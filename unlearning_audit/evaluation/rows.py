"""Rows of numbers and failures, the same from a metric to the report, and their csv files."""

import csv
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from unlearning_audit.store.cells import inert, plain
from unlearning_audit.store.files import read_verified
from unlearning_audit.store.tables import cell_of, write_lines

#: What `_read` returns for each line of a file.
T = TypeVar("T")


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
        The rule of thresholds, or of rounding.
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
        What failed, one of `KINDS`.
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
        Axis of the study → the label of its value.
    row
        The row or the failure.
    """

    scenario: str
    protocol: str
    method: str
    axes: dict[str, str]
    row: Row | Failure


#: Kinds of failures. "model", "method", "attack" and "metric": a plug-in raised, or returned something of the wrong
#: type. "diverged": a model diverged. "missing": a metric needs other models, which failed.
KINDS = ("model", "method", "attack", "metric", "diverged", "missing")

COLUMNS = tuple(field.name for field in fields(Row))

#: Fields of a row that narrow down what its number is about.
PLACES = COLUMNS[COLUMNS.index("role") :]

#: Columns of failures; their sentence stands in the column "note", and "failed" in the column "metric".
FAILED = ("failed", "name", "file", "line", "traceback")

#: The entry of a failure in the column metric.
FAILURE = "failed"

#: Columns of the table of a study that say whose row it is, and the prefix of its columns for axes.
OWNER = ("study", "scenario", "protocol", "method")
AXIS = "axis_"

#: Fields of whole numbers and of real ones; what an empty cell stands for in each field; a function that returns all
#: fields of a row.
_WHOLE = ("n", "pair", "model", "models", "request", "step")
_REAL = ("value", "ci_low", "ci_high", "rate", "confidence")
_EMPTY = {field.name: field.default for field in fields(Row)} | {"metric": ""}
_VALUES = attrgetter(*COLUMNS)


def problem(rows: Sequence[Row]) -> str:
    """Return what is wrong with rows of a user's metric, or "": a field of the wrong type, ci_low > ci_high, or two
    rows with the same metric, attack and other fields that say what the number is about (`PLACES`)."""
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
    if name in _WHOLE:
        return "" if number and isinstance(value, int) and value >= 0 else "a whole number of at least 0"
    if name in _REAL:
        return "" if number else "a number"
    printable = isinstance(value, str) and (name == "note" or value.isprintable())
    return "" if printable else "printable text in one line"


def write(path: str | Path, rows: Iterable[Row | Failure]) -> None:
    """Write ``metrics.csv``: a column for each field; numbers in full precision, NaN and None as empty cells."""
    write_lines(path, (*COLUMNS, *FAILED), map(_cells, rows))


def read(path: str | Path) -> list[Row | Failure]:
    """Read ``metrics.csv``. Raises ArtifactError that names the file."""
    return _read(path, (), {}, lambda header, cells, row: row)


def write_study(path: str | Path, study: str, records: Collection[Record]) -> None:
    """Write the rows of all methods of a study to one csv file. Beside the columns of ``metrics.csv``, it says whose
    row each is (`OWNER`), and has a column for every axis, such as ``axis_epsilon``."""
    axes = list(dict.fromkeys(axis for record in records for axis in record.axes))

    def line(record: Record) -> list[str]:
        """Return the cells of one line. Labels of axes are `inert`, so that no program takes them for a formula."""
        labels = (inert(str(record.axes.get(axis, ""))) for axis in axes)
        return [study, record.scenario, record.protocol, record.method, *labels, *_cells(record.row)]

    write_lines(path, (*OWNER, *(AXIS + axis for axis in axes), *COLUMNS, *FAILED), map(line, records))


def read_study(
    path: str | Path, scenarios: Collection[str] | None = None, metrics: Collection[str] | None = None
) -> list[Record]:
    """Read the rows of a study as `write_study` wrote them, or only those of some ``scenarios`` and ``metrics``. Raises
    ArtifactError that names the file."""
    filters = {name: values for name, values in (("scenario", scenarios), ("metric", metrics)) if values is not None}

    def record(header: dict[str, int], cells: Sequence[str], row: Row | Failure) -> Record:
        """Return the record of one line, with the axes that have a label there."""
        axes = {name.removeprefix(AXIS): plain(cells[n]) for name, n in header.items() if name.startswith(AXIS)}
        scenario, protocol, method = (cells[header[name]] for name in OWNER[1:])
        return Record(scenario, protocol, method, {name: label for name, label in axes.items() if label}, row)

    return _read(path, OWNER, filters, record)


def _cells(row: Row | Failure) -> list[str]:
    """Return the texts of one line of ``metrics.csv``, for a number or a failure, in the order of the columns."""
    if isinstance(row, Failure):
        blank = dict.fromkeys(COLUMNS, "") | {"metric": FAILURE, "note": row.sentence}
        texts = [*blank.values(), row.kind, row.name, row.file, str(row.line or ""), row.traceback]
        return list(map(inert, texts))
    return [*map(cell_of, _VALUES(row)), *[""] * len(FAILED)]


def _read(
    path: str | Path, further: tuple[str, ...], filters: dict[str, Collection[str]], make: Callable[..., T]
) -> list[T]:
    """Read a csv file of rows; return what ``make`` returns for each line whose cells pass all ``filters``.

    Parameters
    ----------
    further
        Columns that must exist besides those of rows.
    filters
        Column → accepted texts.
    make
        ``make(header, cells, row)``: ``header`` is column → position, ``cells`` are the texts of the line, and ``row``
        is the row or the failure in them.

    Raises
    ------
    ArtifactError
        If the file cannot be read. The message names it.
    """

    def load() -> list[T]:
        """Read the file. Raises ValueError, which `checked` turns into an ArtifactError."""
        with open(path, newline="", encoding="utf-8") as file:
            lines = csv.reader(file)
            header = {name: position for position, name in enumerate(next(lines, []))}
            if missing := {*further, *COLUMNS, *FAILED} - header.keys():
                raise ValueError(f"column {min(missing)!r} is missing")
            accepted = [(header[name], frozenset(values)) for name, values in filters.items()]
            parsed: dict[str, dict[str, Any]] = {name: {} for name in COLUMNS}
            results = []
            for cells in lines:
                if len(cells) != len(header):
                    raise ValueError(f"a line has {len(cells)} cells, and the header {len(header)}")
                if all(cells[position] in values for position, values in accepted):
                    results.append(make(header, cells, _row(header, cells, parsed)))
            return results

    return read_verified(path, load)


def _row(header: dict[str, int], cells: Sequence[str], parsed: dict[str, dict[str, Any]]) -> Row | Failure:
    """Return the row in a line or, if its column "failed" has a text, the failure.

    Parameters
    ----------
    header
        Column → position of its cell.
    cells
        The texts of the line.
    parsed
        Column → text → value, a cache that all lines share, since most texts of a column are equal. New texts are added
        to it.
    """
    values = []
    for name in COLUMNS:
        text, of_column = cells[header[name]], parsed[name]
        if text not in of_column:
            of_column[text] = _EMPTY[name] if text == "" else _KIND.get(name, plain)(text)
        values.append(of_column[text])
    kind, name, file, number, trace = (plain(cells[header[column]]) for column in FAILED)
    if not kind:
        return Row(*values)
    return Failure(kind, name, values[COLUMNS.index("note")], file, int(number or 0), trace)


#: Field → the function that turns its text into a value; all others are texts (`plain`).
_KIND = dict.fromkeys(_WHOLE, int) | dict.fromkeys(_REAL, float)
