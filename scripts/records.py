"""Gather which forgotten records are still recognised, as a list, a table and a figure."""

from job import script

from unlearning_audit.artifacts import records as lists
from unlearning_audit.display import naming, style
from unlearning_audit.display.figures import _records
from unlearning_audit.display.tables import formats
from unlearning_audit.display.tables import records as display


@script
def records(union: str, csv: str, md: str, tex: str, svg: str, png: str, settings: dict) -> None:
    """The files are named in ``settings``, case by case; the rule's inputs are the same, each once."""
    naming.know(settings["own_metrics"])
    lines = []
    for case in settings["cases"]:
        place = {"study": settings["study"], **{name: case[name] for name in ("scenario", "setting", "method")}}
        lines += [{**place, **line} for line in lists.read(case["records"])]
    lists.write(union, lines, lists.UNION)
    exposed = lists.grouped(lines)
    formats.write([display.sheet(exposed, settings["study"])], csv=csv, md=md, tex=tex)
    style.save(_records.draw(exposed), svg=svg, png=png)
