"""Write the study's page: numbers, figures, tables, controls and costs in one file."""

from job import script
from unlearning.artifacts.files import replacing
from unlearning.display import naming
from unlearning.display.page import page


@script
def report(
    metrics: str,
    ledger: str,
    published: str,
    template: str,
    stylesheet: str,
    specs: list[str],
    html: str,
    settings: dict,
    tables: list[str] = (),
    figures: list[str] = (),
) -> None:
    """``tables`` and ``figures`` are the files that the page holds or offers for download."""
    naming.know(settings["own_metrics"])
    text = page.render(
        metrics=metrics, costs=ledger, published=published, template=template, stylesheet=stylesheet,
        specs=specs, displays=[*tables, *figures], order=settings,
    )  # fmt: skip
    with replacing(html) as part:
        part.write_text(text, encoding="utf-8")
