"""Tables stored by column: one JSON object with a list per column, or an archive of numpy with an array per column.

A single value stands for all rows. Nothing is ever unpickled. A JSON object may contain one list of records instead; if
the records name samples but do not say which are forgotten or held out, all samples count as forgotten.
"""

import contextlib
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

#: The beginning of a column in JSON: a list of values, or values by row number, as pandas writes them.
_COLUMN = re.compile(r'"\s*:\s*(\[\s*[^\[{\s]|\{\s*"0"\s*:\s*[^\[{\s])')

#: The beginning of a list of records under a name.
_RECORDS = re.compile(r'\{\s*"\w+"\s*:\s*\[\s*\{')


#: Errors from a file that is not an archive, or is cut off.
_BROKEN = (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile)


def header(path: Path) -> list[str]:
    """Return the names of the columns of an ``.npz`` archive or of one JSON object; [] for a file of another kind, or
    one that cannot be read."""
    if _texts.kind(path) == ".json":
        return list(_of_json(path))
    try:
        with _texts.opened(path) as file, np.load(file, allow_pickle=False) as archive:
            return list(archive.files)
    except _BROKEN:
        return []


def frame(path: Path) -> Any:
    """Read an ``.npz`` archive or one JSON object, whose entries are columns, as a pandas DataFrame.

    Columns that have several axes or hold Python objects are left out. Raises ValueError that names the file if the
    others have unequal lengths.
    """
    import pandas

    columns = _of_archive(path) if _texts.kind(path) == ".npz" else _of_json(path)
    nested = [name for name, value in columns.items() if np.ndim(np.asarray(value, object)) > 1]
    try:
        return pandas.DataFrame({name: value for name, value in columns.items() if name not in nested})
    except ValueError as error:
        raise ValueError(f"{path}: every column must have one value for each sample ({error})") from None


def _of_archive(path: Path) -> dict[str, Any]:
    """Read the arrays of an archive: name → array, or a single value for an array without an axis. Arrays of Python
    objects are left out. Raises ValueError that names the file."""
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
    """Read the columns of one JSON object by name; {} for any other content. The columns are the object's lists, or the
    fields of the records in its only list. The whole file is read only if it begins like such an object."""
    text = _texts.head(path).lstrip("\ufeff \r\n\t")
    if not text.startswith("{") or not (_COLUMN.search(text) or _RECORDS.match(text)):
        return {}
    with _texts.opened(path) as file:
        try:
            content = json.loads(file.read().decode(_texts.encoding(path)).removeprefix("\ufeff"))
        except ValueError:
            return {}
    lists = [value for value in content.values() if isinstance(value, list)]
    if len(lists) == 1 and lists[0] and all(isinstance(row, dict) for row in lists[0]):
        # Records that name samples but no sides are of what was to be forgotten.
        records = {name: [row.get(name) for row in lists[0]] for name in lists[0][0]}
        known = layout_of(list(records), {}).columns
        return records if "side" in known or "sample" not in known else records | {"side": "forget"}
    columns = {name: _as_list(value) if isinstance(value, Mapping) else value for name, value in content.items()}
    kinds = set(map(type, columns.values()))
    # A table has a column with a list, and no nested objects. Single values stand for all rows.
    return columns if list in kinds and dict not in kinds else {}


def _as_list(column: Mapping[str, Any]) -> Any:
    """Return a column that pandas wrote by row number, "0", "1" and so on, as a list; any other mapping unchanged."""
    return list(column.values()) if list(column) == [str(row) for row in range(len(column))] else column
