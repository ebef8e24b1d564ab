"""Draw one figure of the study as svg and png."""

from importlib import import_module

from job import script
from unlearning.artifacts.tables import UNION_COLUMNS, read_rows
from unlearning.display import naming, style
from unlearning.display.lookup import Numbers


@script
def figures(metrics: str, svg: str, png: str, settings: dict) -> None:
    """The figure's kind names the module that draws it."""
    naming.know(settings["own_metrics"])
    cases = settings["cases"]
    numbers = Numbers(read_rows(metrics, UNION_COLUMNS, {case["scenario"] for case in cases}), cases)
    kind = import_module(f"unlearning.display.figures.{settings['figure']['kind']}")
    style.save(kind.draw(numbers, settings), svg=svg, png=png)
