"""trials.csv: all settings of a method that were tried."""

from pathlib import Path
from typing import Any

from unlearning_audit.store import cells

#: The columns. ``distance`` and ``lost``, the loss of utility, are in units of the ``margin`` of the study for the
#: metric, with 95 % limits; ``stage`` counts from 1; ``seconds`` of the method alone.
COLUMNS = ("stage", "trial", "pairs", "metric", "margin", "distance", "ci_low", "ci_high", "lost", "seconds", "chosen",
           "options", "note")  # fmt: skip


def read(path: str | Path) -> list[dict[str, Any]]:
    """Read the rows of trials.csv: column → text, int or float, NaN for an empty cell. Raises ArtifactError that names
    the file if it cannot be read or has other columns."""
    return cells.table(path, COLUMNS, text=("metric", "options", "note"), whole=("stage", "trial", "pairs", "chosen"))
