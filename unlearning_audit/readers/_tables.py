"""Read a table from its file: recognise format, encoding, separator and header."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.readers import _columnar, _texts

#: Suffixes of tables: text files, files with typed values, and workbooks, which are not read.
TEXT, TYPED, WORKBOOKS = (".csv", ".tsv", ".txt"), (".parquet", ".npz", ".jsonl", ".json"), (".xlsx", ".xls", ".ods")


def frame(path: Path) -> Any:
    """Read a table of any known format as a pandas DataFrame.

    Texts such as None, NA and nan stay texts, because methods and samples can be called so. Raises ValueError that
    names the file if it is empty, a workbook, not valid, or in another encoding.
    """
    import pandas

    if not path.stat().st_size:
        raise ValueError(f"{path}: this file is empty; was the run that wrote it interrupted?")
    if _texts.kind(path) in WORKBOOKS:
        raise ValueError(f"{path}: workbooks are not read; save the sheet of the samples as CSV UTF-8, and give it")
    if _texts.kind(path) == ".npz" or _columnar.header(path):
        return _columnar.frame(path)
    try:
        if _texts.kind(path) == ".parquet":
            return pandas.read_parquet(path)
        if _texts.kind(path) in (".jsonl", ".json"):
            is_list = _texts.head(path).lstrip("\ufeff \r\n\t").startswith("[")  # rather than a record on each line
            return pandas.read_json(path, lines=not is_list)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            return pandas.read_csv(
                path, sep=_separator(_first_line(path)), skipinitialspace=True, index_col=False,
                encoding=_texts.encoding(path), keep_default_na=False, na_values=[""],
            )  # fmt: skip
    except pandas.errors.ParserWarning:
        advice = "name every column, and write all numbers with a point"
        raise ValueError(f"{path}: rows have more cells than the header; {advice}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: this table is not in UTF-8; save it anew, in Excel as CSV UTF-8") from None
    except Exception as error:
        raise ValueError(f"{path}: this table cannot be read ({str(error).strip()}); is it complete?") from None


def header(path: Path) -> list[str]:
    """Return the names of a table's columns, in most formats without reading all of it; [] for a file that is not a
    table, cannot be read, or is a workbook. Any text file other than JSON counts as a table."""
    names = _columnar.header(path)
    if names or _texts.kind(path) in (".npz", *WORKBOOKS):
        return names
    try:
        if _texts.kind(path) == ".parquet":
            from pyarrow import parquet

            return list(parquet.read_schema(path).names)
        if _texts.kind(path) in (".jsonl", ".json"):
            text = _texts.head(path).lstrip("\ufeff \r\n\t").removeprefix("[").lstrip()
            record, end = json.JSONDecoder().raw_decode(text)  # the first record, and where it ends
            is_alone = _texts.kind(path) == ".json" and not text[end:].strip()  # a single object is not a table
            return list(record) if isinstance(record, dict) and not is_alone else []
    except (ValueError, OSError):
        return []
    line = _first_line(path)
    return [name.strip().strip('"') for name in line.split(_separator(line))]


def numbers(path: Path, column: Any) -> np.ndarray:
    """Return a column of `frame` as float64, NaN for cells that are not numbers.

    Raises ValueError for a cell that has digits, but is no number: it may have a comma, which may separate decimals or
    thousands, or a per cent sign.
    """
    import pandas

    value = np.array(pandas.to_numeric(column, errors="coerce"), np.float64)
    for row in np.flatnonzero(np.isnan(value)):
        if isinstance(cell := column.iloc[row], str) and re.search(r"\d", cell):
            raise ValueError(f"{path}: column {column.name!r} says {cell!r}; write all numbers with a point")
    return value


def _first_line(path: Path) -> str:
    """Return the first line of a file, without a byte order mark."""
    return _texts.head(path).split("\n", 1)[0].strip("\ufeff \r\t")


def _separator(line: str) -> str:
    """Return the separator of a table's cells: of comma, tabulator, semicolon and bar the most frequent in ``line``."""
    return max(",\t;|", key=line.count)
