"""Measure the metrics: one table and one figure of what every metric of the study is worth."""

from job import script
from unlearning.artifacts.arrays import Membership
from unlearning.artifacts.tables import UNION_COLUMNS, read_rows
from unlearning.comparisons import compared
from unlearning.comparisons import meta as worth
from unlearning.display import naming, style
from unlearning.display.figures import _meta
from unlearning.display.tables import formats
from unlearning.display.tables import meta as display


@script
def meta(metrics: str, csv: str, md: str, tex: str, svg: str, png: str, settings: dict) -> None:
    """``metrics`` is the union of all numbers; ``settings`` names the axes of budget and size, and of each scenario
    its protocol and the memberships from which its models are counted."""
    made = {
        name: compared.made(one["protocol"], Membership.concatenate([Membership.read(path) for path in one["splits"]]))
        for name, one in settings["scenarios"].items()
    }
    naming.know(settings["own_metrics"])
    rows = worth.evaluate(
        read_rows(metrics, UNION_COLUMNS),
        naming.quantities().values(),
        budget=settings["budget"],
        size=settings["size"],
        made=made,
    )
    formats.write(display.sheets(rows), csv=csv, md=md, tex=tex)
    style.save(_meta.draw(rows), svg=svg, png=png)
