"""Gather the numbers of every method in every scenario in one table."""

from job import script

from unlearning_audit.artifacts import rows
from unlearning_audit.display.tables import union as gathered


@script
def collect(union: str, settings: dict) -> None:
    """The files are named in ``settings``, case by case; the rule's inputs are the same, each once."""
    rows.write_union(union, settings["study"], gathered.records(settings["cases"]))
