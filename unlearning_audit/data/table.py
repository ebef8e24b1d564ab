"""Table: a CSV or Parquet file of your own, read by the names of its columns."""

import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from unlearning_audit.data import Settings, Source
from unlearning_audit.plugins.suggest import unknown
from unlearning_audit.store.files import reason

if TYPE_CHECKING:
    import pandas

#: Words in the column that tells training from test rows → the part of the row.
PARTS = {"train": 0, "test": 1, "0": 0, "1": 1, "false": 0, "true": 1, "0.0": 0, "1.0": 1}

#: Suffixes of files that are read, and the separators of their cells.
SEPARATORS = {".csv": ",", ".tsv": "\t", ".parquet": ","}

#: A number with a comma, such as 1,5 or 1,000.
COMMA = re.compile(r"\s*[-+]?(?=.*\d)[\d.]*,[\d.,]*(e[-+]?\d+)?\s*", re.IGNORECASE)

#: The number of rows that are checked before a run.
HEAD = 100


class Options(Settings):
    """``path`` of a file .csv, .tsv or .parquet, relative to the working directory; ``label``: the column of labels.

    ``columns``: those that models read, all others by default. Columns of numbers are standardised, by mean and
    standard deviation of the training rows, unless ``standardise`` is false. Text, true and false, and columns named in
    ``categories`` become a column of 0 and 1 for each value. ``test``: a column that holds train or test, 0 or 1;
    without it, give ``test_size``. ``group``: a column by which some metrics divide the test part. ``most``: the
    largest number of different values of a label or a category. Rows with a missing value are refused.
    """

    path: str
    label: str
    columns: list[str] | None = None
    categories: list[str] = Field(default_factory=list)
    standardise: bool = True
    test: str | None = None
    group: str | None = None
    most: int = Field(100, ge=2)


def load(options: Options, root: Path) -> Source:
    """Read ``x`` float32 [n, features] and ``y`` int64 [n]. Labels are numbered from 0 in the ascending order of their
    values.

    Raises ValueError that names the file and the column.
    """
    path = Path(root) / options.path
    try:
        return _source(_read(path), options)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def problem(options: Options, root: Path) -> tuple[str, str] | None:
    """Check the head of the file, so that a wrong study is refused before any job runs.

    Return the first wrong option and a sentence, or None if nothing is wrong there.
    """
    path = Path(root) / options.path
    try:
        head = _read(path, HEAD)
        if wrong := _wrong_column(options, head.columns):
            return wrong[0], f"{path}: {wrong[1]}"  # the option, and the sentence on it
        for name in _columns_to_read(options, head.columns):
            if _is_category(head[name]) and name not in options.categories:
                _no_decimal_commas(name, head[name].dropna().astype(str))
    except ValueError as error:
        return "path", f"{path}: {error}"
    return None


def _read(path: Path, rows: int | None = None) -> "pandas.DataFrame":
    """Return the table as a pandas DataFrame; from a text file, read the first ``rows`` only (None: all). Raises
    ValueError if its suffix is unknown or it cannot be read."""
    import pandas

    kind = path.suffix.lower()
    if kind not in SEPARATORS:
        raise ValueError(f"a file of the kind {path.suffix!r} is not read; save the table as {', '.join(SEPARATORS)}")
    try:
        if kind == ".parquet":
            return pandas.read_parquet(path)
        return pandas.read_csv(path, sep=_separator(path), nrows=rows)
    except (OSError, ValueError, UnicodeError) as error:  # errors of pandas and arrow are subclasses of these
        raise ValueError(f"it cannot be read as {path.suffix}: {reason(error)}") from None


def _separator(path: Path) -> str:
    """Return the separator of a file's cells. A ".csv" file may have semicolons, as Excel writes them in Europe: it has
    them if there are some in its first line that is not blank, and no comma."""
    separator = SEPARATORS[path.suffix.lower()]
    if separator != ",":
        return separator
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        header = next((line for line in file if line.strip()), "")
    return ";" if ";" in header and "," not in header else separator


def _columns_to_read(options: Options, columns: Iterable[str]) -> list[str]:
    """Return the names of the columns that models read: the columns that the options name, or, if they name none, all
    of ``columns`` but label, test part and group."""
    return options.columns or [name for name in columns if name not in (options.label, options.test, options.group)]


def _wrong_column(options: Options, columns: Iterable[str]) -> tuple[str, str] | None:
    """Return the name of the first wrong option and a sentence on it; None if no option is wrong. An option is wrong if
    it names a column that is not among ``columns`` of the table. If all exist, the option columns is wrong if it
    contains the label, which models must not read."""
    fields: dict[str, list[Any]] = {"label": [options.label], "test": [options.test], "group": [options.group]}
    fields |= {"columns": options.columns or [], "categories": options.categories}
    columns = list(columns)
    for field, names in fields.items():
        for name in names:
            if name is not None and name not in columns:
                return field, unknown(name, map(str, columns), f"column {name!r}")
    if options.label in (options.columns or []):
        return "columns", f"{options.label!r} is the label, which models must not read"
    return None


def _no_decimal_commas(name: object, cells: Iterable[str]) -> None:
    """Raise ValueError if one of the ``cells`` of the column ``name`` is a number with a comma, which may separate
    decimals or thousands."""
    number = next((cell for cell in cells if COMMA.fullmatch(cell)), None)
    if number is not None:
        advice = "write its numbers with a point, or name the column in categories"
        raise ValueError(f"column {name!r} says {number!r}; {advice}")


def _source(table: "pandas.DataFrame", options: Options) -> Source:
    """Return the samples of a table, and log how its columns are read. Raises ValueError that names the column."""
    if wrong := _wrong_column(options, table.columns):
        raise ValueError(": ".join(wrong))
    names = _columns_to_read(options, table.columns)
    for name in names:
        if _is_category(table[name]) and name not in options.categories:
            cells = table[name].dropna().astype(str)
            _no_decimal_commas(name, cells)
            _no_word_among_numbers(name, cells)
    part = _parts(table[options.test], options.test) if options.test else np.zeros(len(table), np.uint8)
    labels, y = _levels(table[options.label], options, "label")
    train = part == 0
    if not train.any():
        raise ValueError(f"column {options.test!r} leaves no row for training")
    x, numeric, encoded = _features(table, names, train, options)
    logging.info("%s: %d rows; labels %s", options.path, len(table), ", ".join(map(str, labels)))
    how = "standardised by mean and standard deviation of the training rows" if options.standardise else "as they are"
    logging.info("columns of numbers, %s: %s", how, ", ".join(numeric) or "none")
    logging.info("columns of categories, one column of 0 and 1 for each value: %s", ", ".join(encoded) or "none")
    group = None
    if options.group:
        values, codes = _levels(table[options.group], options, "group")
        if len(values) > 255:
            raise ValueError(f"column {options.group!r} has {len(values):,} different values; groups are at most 255")
        group = np.where(train, 0, codes + 1).astype(np.uint8)  # 0 is for training rows, which have no group
        logging.info("groups of the test part, from 1 on: %s", ", ".join(map(str, values)))
    # ``rescaled`` returns the features alone, without the names of columns that `_features` returns too.
    return Source(
        x, y, part, len(labels), group=group, rescaled=lambda train: _features(table, names, train, options)[0]
    )


def _features(
    table: "pandas.DataFrame", names: list[str], train: np.ndarray, options: Options
) -> tuple[np.ndarray, list[str], list[str]]:
    """Return the features of the columns ``names`` of the ``table``, float32 [rows, features]: a column of numbers,
    standardised by the training rows ``train`` bool [rows] if the options say so, gives one feature, and a category one
    of 0 and 1 for each value. Also return the names of the columns of numbers, and of categories with the number of
    their values. Raises ValueError if ``names`` is empty, or if a column does not fit its kind."""
    columns, numeric, encoded = [], [], []
    for name in names:
        if _is_category(table[name]) or name in options.categories:
            values, codes = _levels(table[name], options, "category")
            columns += [(codes == i).astype(np.float64) for i in range(len(values))]
            encoded.append(f"{name} ({len(values)})")
        else:
            columns.append(_numbers(table[name], train, options))
            numeric.append(name)
    if not columns:
        raise ValueError("no column is left for models to read")
    return np.stack(columns, axis=1).astype(np.float32), numeric, encoded


def _no_word_among_numbers(name: object, cells: "pandas.Series") -> None:
    """Raise ValueError if most ``cells`` of the column ``name`` are numbers and some are words such as "?", which stand
    for missing values. As a category, the column would become one of 0 and 1 for every number."""
    import pandas

    numeric = pandas.to_numeric(cells, errors="coerce").notna()
    if len(cells) > numeric.sum() > len(cells) / 2:
        raise ValueError(
            f"column {name!r}: {numeric.sum():,} of {len(cells):,} cells are numbers, {cells[~numeric].iloc[0]!r} is "
            "not; leave the cell empty where a value is missing, or name the column in categories"
        )


def _is_category(column: "pandas.Series") -> bool:
    """Return whether a column holds anything else than numbers: text, true and false, or dates."""
    return column.dtype.kind not in "iuf"


def _levels(column: "pandas.Series", options: Options, role: str) -> tuple[list[object], np.ndarray]:
    """Return the different values of a column in ascending order, and which of them each row has, int64 [rows] from 0.

    ``role``: "label", "category" or "group", for messages. Raises ValueError for empty cells, or for more than
    ``options.most`` different values.
    """
    if gaps := int(column.isna().sum()):
        raise ValueError(f"column {column.name!r} has no value in {gaps:,} rows; fill them, or drop these rows")
    values, codes = np.unique(column, return_inverse=True)
    if len(values) > options.most:
        other = "name the column of classes as label" if role == "label" else "leave it out of columns"
        raise ValueError(
            f"column {column.name!r} has {len(values):,} different values, more than most ({options.most}) for a "
            f"{role}; {other}, or raise most"
        )
    return values.tolist(), codes.astype(np.int64)


def _numbers(column: "pandas.Series", train: np.ndarray, options: Options) -> np.ndarray:
    """Return a column of numbers, float64 [rows]. If the options say so, it is standardised by mean and standard
    deviation of the training rows ``train`` bool [rows]. Raises ValueError for values that are missing or infinite."""
    values = column.to_numpy(np.float64, na_value=np.nan)
    if wrong := int((~np.isfinite(values)).sum()):
        raise ValueError(f"column {column.name!r} has no finite value in {wrong:,} rows; fill them, or drop these rows")
    spread = values[train].std()  # 0 for a constant column, which is only moved to 0
    return np.asarray((values - values[train].mean()) / (spread or 1.0) if options.standardise else values)


def _parts(column: "pandas.Series", name: str) -> np.ndarray:
    """Return 0 for training and 1 for test rows, uint8 [rows], by the words in the column ``name``. Raises ValueError
    for any other word."""
    words = [str(value).strip().lower() for value in column]
    strange = next((word for word in words if word not in PARTS), None)
    if strange is not None:
        raise ValueError(f"column {name!r} holds {strange!r}; it must tell train (or 0) from test (or 1)")
    return np.array([PARTS[word] for word in words], np.uint8)
