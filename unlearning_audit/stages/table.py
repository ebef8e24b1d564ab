"""Write one table of the study as csv, Markdown and LaTeX."""

from typing import Any

from unlearning_audit.evaluation.rows import read_study
from unlearning_audit.report import naming
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.tables import formats, grid


def table(metrics: str, csv: str, md: str, tex: str, settings: dict[str, Any]) -> None:
    """Write the table that ``settings`` describe, from the numbers in ``metrics``. If it names a paper's table, the
    paper's numbers stand beside ours."""
    naming.set_aliases(settings["own_metrics"])  # what follows names the study's own metrics too
    cases = settings["cases"]
    numbers = Numbers(read_study(metrics, {case["scenario"] for case in cases}), cases)
    formats.write(grid.sheets_of(numbers, settings), csv=csv, md=md, tex=tex)
