"""Measure the measures: one table of what every metric of the study is worth."""

from job import script
from unlearning.display import formats
from unlearning.display import meta as display
from unlearning.meta import evaluate
from unlearning.tables import UNION_COLUMNS, read_rows


@script
def meta(metrics: str, csv: str, md: str, tex: str, settings: dict) -> None:
    """``metrics`` is the union of all numbers; ``settings`` names the axes of budget and size."""
    rows = evaluate(read_rows(metrics, UNION_COLUMNS), budget=settings["budget"], size=settings["size"])
    formats.write([display.sheet(rows)], csv=csv, md=md, tex=tex)
