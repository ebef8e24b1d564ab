"""Gather the numbers of every method in every scenario, and which forgotten records are still recognised."""

from typing import Any

from unlearning_audit.evaluation import records as lists_of
from unlearning_audit.evaluation import rows
from unlearning_audit.report import naming
from unlearning_audit.report.tables import formats
from unlearning_audit.report.tables import records as display
from unlearning_audit.report.tables import union as gathered


def collect(union: str, lists: str, csv: str, md: str, tex: str, settings: dict[str, Any]) -> None:
    """Write the numbers of all evaluations to the file ``union``, all their lists of recognised records to ``lists``,
    and a table of these records.

    ``settings["cases"]`` has one entry for each method in each scenario, with the paths of its numbers and records.
    ``csv``, ``md`` and ``tex`` are the files of the table.
    """
    rows.write_union(union, settings["study"], gathered.records(settings["cases"]))
    naming.know(settings["own_metrics"])
    lines = []
    for case in settings["cases"]:
        place = {"study": settings["study"], **{name: case[name] for name in ("scenario", "setting", "method")}}
        lines += [{**place, **line} for line in lists_of.read(case["records"])]
    lists_of.write(lists, lines, lists_of.UNION)
    exposed = lists_of.grouped(lines)
    formats.write([display.sheet(exposed, settings["study"])], csv=csv, md=md, tex=tex)
