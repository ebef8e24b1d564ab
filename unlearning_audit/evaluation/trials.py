"""The table of all settings of a method that were tried: trials.csv."""

from pathlib import Path

from unlearning_audit.store import cells

#: Distances and losses of worth in margins, with 95 % limits; ``margin``: the study's for that metric;
#: ``stage`` from 1 on; ``seconds`` of the method alone.
COLUMNS = ("stage", "trial", "pairs", "metric", "margin", "distance", "ci_low", "ci_high", "worth", "seconds", "chosen",
           "options", "note")  # fmt: skip


def read(path: str | Path) -> list[dict]:
    """The rows of trials.csv. Raises ArtifactError as `cells.table`."""
    return cells.table(path, COLUMNS, text=("metric", "options", "note"), whole=("stage", "trial", "pairs", "chosen"))
