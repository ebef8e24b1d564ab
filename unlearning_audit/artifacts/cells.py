"""Tables in csv: read and checked column by column, with cells that no spreadsheet takes for formulas."""

import csv
from collections.abc import Collection
from pathlib import Path

from unlearning_audit.artifacts.files import ArtifactError, checked

#: What formulas of spreadsheets begin with, and such text itself.
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "'=", "'+", "'-", "'@", "'\t", "'\r")

#: Bytes of a cell: a picture as text is longer than what Python allows by itself.
LONGEST = 1 << 27


def inert(text: str) -> str:
    """``text`` that is no formula: with an apostrophe before it, which `plain` takes away; numbers stay numbers."""
    if not text.startswith(FORMULAS):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def plain(text: str) -> str:
    """The text that `inert` made a cell of."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULAS) else text


def read(path: str | Path) -> list[dict[str, str]]:
    """The rows, column → text, of csv whose cells are `inert`; None where a line ends too early. Raises ArtifactError
    for a missing or damaged file."""

    def load() -> list[dict[str, str]]:
        with Path(path).open(newline="", encoding="utf-8") as file:
            return [
                {plain(name) if isinstance(name, str) else name: plain(cell) if isinstance(cell, str) else cell
                 for name, cell in row.items()}
                for row in csv.DictReader(file)
            ]  # fmt: skip

    return checked(path, load)


def table(
    path: str | Path, columns: tuple[str, ...], *, text: Collection[str], whole: Collection[str] = ()
) -> list[dict]:
    """The rows of csv with these columns: ``text`` as it is, ``whole`` numbers, others as floats, NaN where a cell is
    empty. Raises ArtifactError that names the file, the line and the column."""

    def load() -> tuple[list[str], list[list[str]]]:
        csv.field_size_limit(LONGEST)
        with Path(path).open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file)
            return list(map(plain, next(lines, []))), [line for line in lines if line]

    header, lines = checked(path, load)
    if tuple(header) != columns:
        raise ArtifactError(f"{path}: the columns are not {', '.join(columns)}; delete the file and run again")
    for number, line in enumerate(lines, start=2):
        if len(line) < len(columns):
            problem = f"line {number} lacks column {columns[len(line)]!r}"
            raise ArtifactError(f"{path}: {problem}; delete the file and run again")
    values = []
    for name, column in zip(columns, zip(*lines, strict=False), strict=False):
        convert = plain if name in text else int if name in whole else _real
        meanings = {}
        for cell in dict.fromkeys(column):  # most cells of a column are alike
            try:
                meanings[cell] = convert(cell)
            except ValueError:
                problem = f"line {column.index(cell) + 2}, column {name!r}: {cell!r} is not a number"
                raise ArtifactError(f"{path}: {problem}; delete the file and run again") from None
        values.append([meanings[cell] for cell in column])
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


def _real(cell: str) -> float:
    return float(cell or "nan")
