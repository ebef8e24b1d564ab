"""Write one table of the study as csv, Markdown and LaTeX."""

from unlearning_audit.artifacts.rows import read_union
from unlearning_audit.display import naming
from unlearning_audit.display.lookup import Numbers
from unlearning_audit.display.tables import formats, grid


def tables(metrics: str, published: str, csv: str, md: str, tex: str, settings: dict) -> None:
    """``published`` holds the papers' printed numbers, for tables that ask for them."""
    naming.know(settings["own_metrics"])
    cases = settings["cases"]
    numbers = Numbers(read_union(metrics, {case["scenario"] for case in cases}), cases)
    formats.write(grid.sheets_of(numbers, settings, published), csv=csv, md=md, tex=tex)
