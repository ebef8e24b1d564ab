"""Write the study's page: verdicts, numbers, figures, tables, controls and costs in one file."""

from job import script

from unlearning_audit.artifacts.files import write_text
from unlearning_audit.display import naming
from unlearning_audit.display.page import page as display


@script
def report(
    metrics: str,
    ledger: str,
    curves: str,
    records: str,
    published: str,
    page: str,
    specs: list[str],
    html: str,
    settings: dict,
    tables: list[str] = (),
    figures: list[str] = (),
) -> None:
    """``tables`` and ``figures`` are the files that the page holds or offers for download; ``page`` is the folder of
    its template, style, script and libraries."""
    naming.know(settings["own_metrics"])
    text = display.render(
        metrics=metrics, costs=ledger, curves=curves, records=records, published=published, resources=page, specs=specs,
        displays=[*tables, *figures], order=settings,
    )  # fmt: skip
    write_text(html, text)
