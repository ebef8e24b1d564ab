"""Cells of csv that no spreadsheet takes for formulas, whatever text they hold."""

import csv
from collections.abc import Iterable

#: What formulas of spreadsheets begin with, and such text itself.
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "'=", "'+", "'-", "'@", "'\t", "'\r")


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


def read(lines: Iterable[str]) -> tuple[list[str], list[dict[str, str]]]:
    """The header and the rows, column → text, of csv whose cells are `inert`; None where a line ends too early."""
    reader = csv.DictReader(lines)
    return list(map(plain, reader.fieldnames or ())), [
        {plain(name) if isinstance(name, str) else name: plain(cell) if isinstance(cell, str) else cell
         for name, cell in row.items()}
        for row in reader
    ]  # fmt: skip
