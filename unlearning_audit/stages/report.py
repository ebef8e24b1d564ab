"""Write the study's page, and what is printed when a run ends."""

from collections.abc import Sequence
from typing import Any

from unlearning_audit import ROOT
from unlearning_audit.evaluation.rows import read_union
from unlearning_audit.report import decisions, ending, naming
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.page import page as display
from unlearning_audit.store.files import write_json, write_text

RESOURCES = ROOT / "resources"


def report(
    metrics: str,
    ledger: str,
    records: str,
    specs: list[str],
    html: str,
    summary: str,
    settings: dict[str, Any],
    tables: Sequence[str] = (),
    figures: Sequence[str] = (),
) -> None:
    """Write the study's page to ``html``, and to ``summary`` what `report.ending` prints when a run ends.

    ``tables`` and ``figures``: files that the page shows or offers for download. ``specs``: the records of all jobs.
    """
    naming.know(settings["own_metrics"])
    order = settings["headline"]
    unions = read_union(metrics)
    numbers, comparisons = Numbers(unions, order["cases"]), order.get("comparisons", [])
    write_json(summary, ending.summary(numbers, decisions.read(comparisons), order["study"], comparisons))
    rendered = display.render(
        metrics=metrics, costs=ledger, records=records, published=RESOURCES / "published/published.csv",
        resources=RESOURCES / "page", specs=specs, displays=[*tables, *figures], order=settings,
    )  # fmt: skip
    write_text(html, rendered)
