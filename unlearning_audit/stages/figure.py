"""Draw one figure of the study as svg and png."""

from typing import Any

from unlearning_audit.evaluation.rows import read_study
from unlearning_audit.plugins.registry import load
from unlearning_audit.report import naming, style
from unlearning_audit.report.lookup import Numbers


def figure(metrics: str, svg: str, png: str, settings: dict[str, Any]) -> None:
    """Draw the figure of ``settings["figure"]`` from the numbers in ``metrics``, by the module that its kind names."""
    naming.set_aliases(settings["own_metrics"])  # what follows names the study's own metrics too
    cases = settings["cases"]
    numbers = Numbers(read_study(metrics, {case["scenario"] for case in cases}), cases)
    kind = load("report/figures", settings["figure"]["kind"])
    style.save(kind.draw(numbers, settings), svg=svg, png=png)
