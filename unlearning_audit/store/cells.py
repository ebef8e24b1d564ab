"""Tables in csv, read and checked column by column, with cells that spreadsheets do not take for formulas."""

import csv
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from unlearning_audit.store.files import read_verified

#: Beginnings of formulas in spreadsheets, with and without the apostrophe that `inert` adds.
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "'=", "'+", "'-", "'@", "'\t", "'\r")

#: The largest number of characters of a cell. A picture as text is longer than Python's default limit.
LONGEST = 1 << 27


def inert(text: str) -> str:
    """Return ``text`` with an apostrophe before it if a spreadsheet would take it for a formula, or if it begins with
    an apostrophe and then such a sign, so that `plain` undoes this. Numbers are unchanged."""
    if not text.startswith(FORMULAS):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def plain(text: str) -> str:
    """Return the text from which `inert` made a cell: without the apostrophe that it added, if it added one."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULAS) else text


def table(
    path: str | Path,
    columns: tuple[str, ...] | None = None,
    *,
    text: Collection[str] | None = None,
    whole: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Read csv: return column → value for each row. Empty lines are left out.

    Values are float, NaN where a cell is empty, except in the columns of ``text`` and ``whole``.

    Parameters
    ----------
    columns
        The columns that the file must have, in this order; None: any.
    text
        Columns whose values stay text, without the apostrophe that `inert` adds; None: all columns.
    whole
        Columns whose values become int.

    Raises
    ------
    ArtifactError
        If the file cannot be read, or has other columns.
    """

    def real(cell: str) -> float:
        """Return the number in a ``cell``, NaN for an empty one."""
        return float(cell or "nan")

    def load() -> list[dict[str, Any]]:
        """Return the rows of the file at ``path``. Raises ValueError if it has other columns; `read_verified` then
        raises an ArtifactError."""
        csv.field_size_limit(LONGEST)
        with Path(path).open(newline="", encoding="utf-8") as file:
            header, *lines = [line for line in csv.reader(file) if line] or [[]]  # [[]]: an empty file
        names = tuple(map(plain, header))
        if columns not in (None, names):
            raise ValueError(f"the columns are not {', '.join(columns or ())}")
        # Column → the function that reads its cells. What stands later counts.
        readers: dict[str, Callable[[str], Any]] = {**dict.fromkeys(names, real), **dict.fromkeys(whole, int)}
        readers |= dict.fromkeys(names if text is None else text, plain)
        by_column = zip(*lines, strict=True)  # nothing if there are no rows
        values = [list(map(readers[name], cells)) for name, cells in zip(names, by_column, strict=bool(lines))]
        return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]

    return read_verified(path, load)
