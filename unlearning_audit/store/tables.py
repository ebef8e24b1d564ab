"""Tables of scores and metrics in parquet and csv. Equal content gives equal bytes."""

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.store.cells import inert
from unlearning_audit.store.files import Check, read_verified, replacing


def write_scores(path: str | Path, columns: dict[str, np.ndarray], failed: dict[str, str] | None = None) -> None:
    """Write ``scores.parquet``.

    Parameters
    ----------
    columns
        Name → values, all of equal length: ``attack`` and ``form`` (str; the form says from which models the attack
        learned, such as "trained"), ``model`` int32, ``index`` int32 (the sample), ``role`` (str: forget, heldout,
        retain or test), ``score`` float64 (higher = more likely a forgotten member), ``decision`` bool.
    failed
        Attack → why it has no scores.
    """
    import pyarrow.parquet  # here, because modules that only write csv need not wait for it

    with replacing(path) as temporary:
        arrays = {name: pyarrow.array(values) for name, values in columns.items()}
        text = [name for name, values in columns.items() if np.asarray(values).dtype.kind == "U"]
        arrays |= {name: arrays[name].dictionary_encode() for name in text}
        metadata = {"failed": json.dumps(failed, sort_keys=True)} if failed else {}
        table = pyarrow.table(arrays).replace_schema_metadata(metadata)
        pyarrow.parquet.write_table(table, temporary, compression="zstd")


def no_scores() -> dict[str, np.ndarray]:
    """Return the columns of an empty table of scores, for a method without models to score."""
    kinds = {"attack": "U1", "form": "U1", "model": "i4", "index": "i4", "role": "U1", "score": "f8", "decision": "?"}
    return {name: np.zeros(0, kind) for name, kind in kinds.items()}


def read_scores(path: str | Path) -> dict[tuple[str, str], dict[str, np.ndarray]]:
    """Read and check ``scores.parquet``: (attack, form) → columns model, index, role, score and decision.

    Raises ArtifactError that names the file and the column, also for a score that is NaN or infinite.
    """
    import pyarrow.parquet

    def read() -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
        """Read the columns of the file. A column of texts is read as codes; for such columns, also return the texts
        that the codes stand for, in their order."""
        columns, texts = {}, {}
        with pyarrow.parquet.ParquetFile(path) as file:
            table = file.read()
            for name in table.column_names:
                column = table[name].combine_chunks()
                if name in ("attack", "form", "role"):
                    column = column if hasattr(column, "dictionary") else column.dictionary_encode()
                    texts[name], column = column.dictionary.to_pylist(), column.indices
                columns[name] = column.to_numpy(zero_copy_only=False)
        return columns, texts

    columns, texts = read_verified(path, read)
    check = Check(path, columns)
    # Kinds of dtypes: "i" for whole numbers and for the codes of texts, "b" for true and false, "f" for reals.
    for name, kind in {"attack": "i", "form": "i", "model": "i", "index": "i", "role": "i", "decision": "b"}.items():
        check.field(name, kind)
    check.field("score", "f")
    role = np.array(texts["role"], "U")[columns["role"]]
    values = {"model": columns["model"], "index": columns["index"], "role": role}
    values |= {"score": columns["score"], "decision": columns["decision"]}
    # One code for each pair of attack and form; divmod takes it apart again.
    group = columns["attack"].astype(np.int64) * len(texts["form"]) + columns["form"]
    tables = {}
    for code in np.unique(group):
        attack, form = divmod(int(code), len(texts["form"]))
        rows = group == code
        tables[texts["attack"][attack], texts["form"][form]] = {name: column[rows] for name, column in values.items()}
    return tables


def rows_of(scores: Mapping[tuple[str, str], dict[str, np.ndarray]], name: str) -> list[dict[str, np.ndarray]]:
    """Return the scores of one attack, one dict of columns for each form: those of ``scores``, (attack, form) →
    columns, with the columns attack and form before them."""
    return [
        {"attack": np.full(len(values["model"]), attack), "form": np.full(len(values["model"]), form), **values}
        for (attack, form), values in scores.items() if attack == name
    ]  # fmt: skip


def read_failures(path: str | Path) -> dict[str, str]:
    """Read attack → why ``scores.parquet`` has no scores of it, from the file's metadata. Raises ArtifactError if the
    file cannot be read."""
    import pyarrow.parquet

    def read() -> dict[str, str]:
        """Read the metadata only. Without the entry "failed", every attack has scores."""
        with pyarrow.parquet.ParquetFile(path) as file:
            return dict(json.loads((file.schema_arrow.metadata or {}).get(b"failed", b"{}")))

    return read_verified(path, read)


def cell_of(value: object) -> str:
    """Return the text of a value in csv: numbers in full (round-trip) precision, NaN and None as "", and texts that a
    spreadsheet would take for formulas made `inert`."""
    if isinstance(value, (float, np.floating)):
        return "" if math.isnan(value) else repr(float(value))
    text = "" if value is None else str(value)
    return inert(text) if isinstance(value, str) else text


def write_rows(path: str | Path, rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    """Write one line of csv for each row, column → value, with these ``columns``; a value that a row lacks is an empty
    cell. Numbers are in full (round-trip) precision, NaN is an empty cell, and no cell is a formula."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(inert, columns))
        writer.writerows([cell_of(row.get(column, "")) for column in columns] for row in rows)
