"""Gather the numbers of every method in every scenario in one table."""

from job import script
from unlearning.artifacts import tables
from unlearning.display.tables import union as gathered


@script
def collect(union: str, settings: dict) -> None:
    """The files are named in ``settings``, case by case; the rule's inputs are the same, each once."""
    tables.write_rows(union, gathered.rows(settings["study"], settings["cases"]), tables.UNION_COLUMNS)
