"""The table of all settings of a method that were tried: trials.csv."""

import csv
from pathlib import Path

from unlearning_audit.artifacts.files import ArtifactError

#: Distances and losses of worth in margins, with 95 % limits; ``margin``: the study's for that metric;
#: ``stage`` from 1 on; ``seconds`` of the method alone.
COLUMNS = ("stage", "trial", "pairs", "metric", "margin", "distance", "ci_low", "ci_high", "worth", "seconds", "chosen",
           "options", "note")  # fmt: skip
_TEXT = ("metric", "options", "note")
_WHOLE = ("stage", "trial", "pairs", "chosen")


def read(path: str | Path) -> list[dict]:
    """The rows of trials.csv; NaN where a cell is empty. Raises ArtifactError that names the file and the line."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ArtifactError(f"{path}: columns must be {', '.join(COLUMNS)}; delete it and run again")
        rows = []
        for number, row in enumerate(reader, 2):
            try:
                rows.append({name: _value(name, text) for name, text in row.items()})
            except ValueError as error:
                raise ArtifactError(f"{path}: line {number}: {error}; delete it and run again") from None
    return rows


def _value(name: str, text: str) -> str | int | float:
    if name in _TEXT:
        return text
    return int(text) if name in _WHOLE else float(text or "nan")
