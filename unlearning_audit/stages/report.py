"""Write the study's page, and what is printed when a run ends."""

from collections.abc import Sequence
from typing import Any

from unlearning_audit.evaluation.rows import read_study
from unlearning_audit.report import decisions, ending, naming
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.page import page
from unlearning_audit.report.tables import cost
from unlearning_audit.store.files import write_json, write_text


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

    Parameters
    ----------
    metrics
        The study's file of all numbers.
    ledger
        The study's file of the seconds of every job.
    records
        The study's file of recognised records.
    specs
        The spec.json of every job.
    tables, figures
        Files that the page shows or offers for download.
    settings
        As `workflow.parameters.report` returns them.
    """
    naming.set_aliases(settings["own_metrics"])  # what follows names the study's own metrics too
    comparisons = settings["verdicts"]["comparisons"]
    numbers = Numbers(read_study(metrics), settings["cases"])
    seconds = cost.read(ledger)
    judged = decisions.read(comparisons, seconds)
    write_json(summary, ending.summary(numbers, judged, settings["study"], comparisons))
    write_text(html, page.render(numbers, judged, seconds, records, specs, [*tables, *figures], settings))
