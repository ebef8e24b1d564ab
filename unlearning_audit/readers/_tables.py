"""Read a table from its file: recognise format, encoding, separator and header.

A table may be stored by column: one JSON object with a list per column, or an archive of numpy with an array per
column. A single value stands for all rows. Nothing is ever unpickled. A JSON object may contain one list of records
instead; if the records name samples but do not say which are forgotten or held out, all samples count as forgotten.
"""

import contextlib
import json
import re
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.readers import _texts
from unlearning_audit.readers._columns import layout_of

#: Suffixes of tables: text files, files with typed values, and workbooks, which are not read.
TEXT, TYPED, WORKBOOKS = (".csv", ".tsv", ".txt"), (".parquet", ".npz", ".jsonl", ".json"), (".xlsx", ".xls", ".ods")

#: The beginning of a column in JSON: a list of values, or values by row number, as pandas writes them.
_COLUMN = re.compile(r'"\s*:\s*(\[\s*[^\[{\s]|\{\s*"0"\s*:\s*[^\[{\s])')
#: The beginning of a list of records under a name.
_RECORDS = re.compile(r'\{\s*"\w+"\s*:\s*\[\s*\{')
#: Errors from a file that is not an archive, or is cut off.
_BROKEN = (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile)


def frame(path: Path) -> Any:
    """Read a table of any known format as a pandas DataFrame.

    Texts such as None, NA and nan stay texts, because methods and samples can be called so. Raises ValueError that
    names the file if it is empty, a workbook, not valid, or in another encoding than UTF-8 or UTF-16. Of a table that
    is stored by column, columns with several values for a sample and columns of Python objects are left out.
    """
    import pandas

    if not path.stat().st_size:
        raise ValueError(f"{path}: this file is empty; was the run that wrote it interrupted?")
    kind = _texts.kind(path)
    if kind in WORKBOOKS:
        raise ValueError(f"{path}: workbooks are not read; save the sheet of the samples as CSV UTF-8, and give it")
    if (columns := _of_archive(path) if kind == ".npz" else _of_json(path)) or kind == ".npz":
        nested = [name for name, value in columns.items() if np.ndim(np.asarray(value, object)) > 1]
        try:
            return pandas.DataFrame({name: value for name, value in columns.items() if name not in nested})
        except ValueError as error:
            raise ValueError(f"{path}: every column must have one value for each sample ({error})") from None
    try:
        if kind == ".parquet":
            return pandas.read_parquet(path)
        if kind in (".jsonl", ".json"):
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
    kind = _texts.kind(path)
    if (columns := _of_json(path)) or kind in WORKBOOKS:
        return list(columns)
    try:
        if kind == ".npz":
            with _texts.opened(path) as file, np.load(file, allow_pickle=False) as archive:
                return list(archive.files)
        if kind == ".parquet":
            from pyarrow import parquet

            return list(parquet.read_schema(path).names)
        if kind in (".jsonl", ".json"):
            text = _texts.head(path).lstrip("\ufeff \r\n\t").removeprefix("[").lstrip()
            record, end = json.JSONDecoder().raw_decode(text)  # the first record, and where it ends
            is_alone = kind == ".json" and not text[end:].strip()  # a single object is not a table
            return list(record) if isinstance(record, dict) and not is_alone else []
    except _BROKEN:
        return []
    line = _first_line(path)
    return [name.strip().strip('"') for name in line.split(_separator(line))]


def numbers(path: Path, column: Any) -> np.ndarray:
    """Return a ``column`` of a pandas table as float64 [rows], NaN for cells that are not numbers.

    Raises ValueError for a cell that has digits, but is no number: such as one with a per cent sign, or with a comma,
    which may separate decimals or thousands.
    """
    import pandas

    value = np.array(pandas.to_numeric(column, errors="coerce"), np.float64)
    for row in np.flatnonzero(np.isnan(value)):
        if isinstance(cell := column.iloc[row], str) and re.search(r"\d", cell):
            raise ValueError(f"{path}: column {column.name!r} says {cell!r}; write all numbers with a point")
    return value


def _first_line(path: Path) -> str:
    """Return the first line of a file, without a byte order mark."""
    return _texts.head(path).partition("\n")[0].strip("\ufeff \r\t")  # before the first line break


def _separator(line: str) -> str:
    """Return the separator of a table's cells: of comma, tabulator, semicolon and bar the most frequent in ``line``; of
    equally frequent ones the first, so a comma if there is none."""
    return max(",\t;|", key=line.count)


def _of_archive(path: Path) -> dict[str, Any]:
    """Read the arrays of a numpy archive: name → array, or the value alone for an array without dimensions. Arrays of
    Python objects are left out. Raises ValueError that names the file."""
    columns: dict[str, Any] = {}
    try:
        with _texts.opened(path) as file, np.load(file, allow_pickle=False) as archive:
            for name in archive.files:
                with contextlib.suppress(ValueError):  # it holds Python objects
                    columns[name] = archive[name] if archive[name].ndim else archive[name].item()
    except _BROKEN:
        raise ValueError(f"{path}: this numpy archive cannot be read; is the file complete?") from None
    return columns


def _of_json(path: Path) -> dict[str, Any]:
    """Read a table that is stored as one JSON object, name of a column → values; {} for any other file or content. The
    columns are the lists of the object or, if its only list is one of records, the fields of the first record, None
    where another lacks one. The whole file is read only if it begins like such an object."""
    text = _texts.head(path).lstrip("\ufeff \r\n\t") if _texts.kind(path) == ".json" else ""
    if not text.startswith("{") or not (_COLUMN.search(text) or _RECORDS.match(text)):
        return {}
    with _texts.opened(path) as file:
        try:
            content = json.loads(file.read().decode(_texts.encoding(path)).removeprefix("\ufeff"))
        except ValueError:
            return {}
    rows, *others = [value for value in content.values() if isinstance(value, list)] or [[]]
    if rows and not others and all(isinstance(row, dict) for row in rows):
        # Records that name samples but no sides are of what was to be forgotten.
        records = {name: [row.get(name) for row in rows] for name in next(iter(rows))}
        known = layout_of(list(records), renamed={}).columns
        return records if "side" in known or "sample" not in known else records | {"side": "forget"}
    columns = {}
    for name, value in content.items():  # pandas writes a column by row number, "0", "1" and so on
        by_row = isinstance(value, Mapping) and list(value) == [*map(str, range(len(value)))]
        columns[name] = list(value.values()) if by_row else value
    kinds = set(map(type, columns.values()))
    # A table has a column with a list, and no nested objects. Single values stand for all rows.
    return columns if list in kinds and dict not in kinds else {}
