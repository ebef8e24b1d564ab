"""Tables that hold a list or an array for each column: one JSON object, or an archive of numpy.

A single value stands for all rows. Nothing is ever unpickled. A JSON object may hold one list of records instead; where
these name samples and say no sides, all are to be forgotten.
"""

import json
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.readers import _texts
from unlearning_audit.readers._columns import layout_of

#: How a column begins in JSON: as a list of values, or by rows, as pandas writes it.
_COLUMN = re.compile(r'"\s*:\s*(\[\s*[^\[{\s]|\{\s*"0"\s*:\s*[^\[{\s])')

#: How one list of records begins, under a name.
_RECORDS = re.compile(r'\{\s*"\w+"\s*:\s*\[\s*\{')


def header(path: Path) -> list[str]:
    """Names of columns; none for what has other content."""
    if _texts.kind(path) == ".json":
        return list(_of_json(path))
    if _texts.kind(path) != ".npz":
        return []
    try:
        with _texts.opened(path) as file, zipfile.ZipFile(file) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile):
        return []


def frame(path: Path):
    """The table as a pandas DataFrame. Raises ValueError that names the file for columns of unequal lengths, for arrays
    of several axes and for those of Python objects; such that are no column of a table are left out."""
    import pandas

    layout = layout_of(header(path), {})
    layout_names = {*layout.columns.values(), *layout.keys, *layout.values}
    columns = _of_archive(path, layout_names) if _texts.kind(path) == ".npz" else _of_json(path)
    nested = [name for name, value in columns.items() if _is_nested(value)]
    if wrong := next((name for name in nested if name in layout_names), None):
        raise ValueError(f"{path}: column {wrong!r} has more than one axis; it must hold one value for each sample")
    columns = {name: value for name, value in columns.items() if name not in nested}
    sizes = {name: len(value) for name, value in columns.items() if isinstance(value, (list, np.ndarray))}
    if not sizes:
        raise ValueError(f"{path}: nothing in it has one value for each sample")
    first = next(iter(sizes))
    if unequal := next((name for name in sizes if sizes[name] != sizes[first]), None):
        raise ValueError(
            f"{path}: column {first!r} has {sizes[first]} values and column {unequal!r} has {sizes[unequal]}; they "
            "must have one for each sample"
        )
    return pandas.DataFrame(columns)


def _is_nested(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 1
    return isinstance(value, list) and any(isinstance(cell, (list, dict)) for cell in value)


def _of_archive(path: Path, layout_names: set[str]) -> dict[str, Any]:
    """Arrays by name, those of no axis as single values; those of Python objects, which must not be of
    ``layout_names``, are left out."""
    columns: dict[str, Any] = {}
    try:
        with _texts.opened(path) as file, np.load(file, allow_pickle=False) as archive:
            for name in archive.files:
                value = _array(archive, name)
                if value is not None:
                    columns[name] = value if value.ndim else value.item()
                elif name in layout_names:
                    raise ValueError(
                        f"{path}: array {name!r} holds Python objects, which are not unpickled; save it as text, with "
                        f"{name}.astype(str), or as numbers"
                    )
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile):
        raise ValueError(f"{path}: this is no archive of numpy that can be read; is the file complete?") from None
    return columns


def _array(archive: Mapping[str, np.ndarray], name: str) -> np.ndarray | None:
    try:
        return archive[name]
    except ValueError:  # Python objects
        return None


def _of_json(path: Path) -> dict[str, Any]:
    """Columns by name of one JSON object; nothing of any other content. It is read whole only if it begins so."""
    text = _texts.head(path).lstrip("\ufeff \r\n\t")
    if not text.startswith("{") or not (_COLUMN.search(text) or _RECORDS.match(text)):
        return {}
    with _texts.opened(path) as file:
        try:
            content = json.loads(file.read().decode(_texts.encoding(path)).removeprefix("\ufeff"))
        except ValueError:
            return {}
    rows = [value for value in content.values() if isinstance(value, list)]
    if len(rows) == 1 and rows[0] and all(isinstance(row, dict) for row in rows[0]):
        return _of_records(rows[0])
    columns = {name: _by_rows(value) if isinstance(value, Mapping) else value for name, value in content.items()}
    lists = any(isinstance(value, list) for value in columns.values())
    return columns if lists and not any(isinstance(value, dict) for value in columns.values()) else {}


def _of_records(rows: list[dict[str, Any]]) -> dict[str, Any]:
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in rows[0]}
    known = layout_of(list(columns), {}).columns
    return columns if "side" in known or "sample" not in known else columns | {"side": "forget"}


def _by_rows(value: Mapping[str, Any]) -> Any:
    """A column that pandas wrote, of which the names are numbers of rows, as a list; anything else as it is."""
    return list(value.values()) if list(value) == [str(row) for row in range(len(value))] else value
