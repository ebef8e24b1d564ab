"""Print which plug-ins of a study failed, one line each, and fail if there are any: the last job of a run."""

import sys
from pathlib import Path

from unlearning_audit.evaluation.rows import FAILURE, read_study
from unlearning_audit.report import ending
from unlearning_audit.report.failures import doubted, lines, plugin_raised
from unlearning_audit.store.files import write_text

#: Where to read more about a failure than its line says.
WHY = "`audit why` with the study's file shows the calls that led there."


def tell(word: str, sentences: list[str]) -> None:
    """Print ``word`` and the first of the sentences on the terminal, and how many more there are."""
    rest = f"; {len(sentences) - 1} more under Checks in the report" if len(sentences) > 1 else ""
    print(f"\n{word}: {sentences[0]}{rest}", file=sys.__stderr__, flush=True)


def failures(metrics: str, html: str, text: str) -> None:
    """Print the doubts of a finished study. If a plug-in failed, raise ValueError with the first failures. If none
    failed, write the empty file ``text``.

    All results and the report exist before this job runs. Models that diverged are no failure of a plug-in: they are
    printed, and if nothing else failed, the file is written.

    Parameters
    ----------
    metrics
        The file with all numbers and failures.
    html
        The study's page, beside which the summary lies that is printed with failures.
    """
    if doubts := doubted(read_study(metrics, metrics=["doubt"])):
        tell("Doubted", doubts)
    records = read_study(metrics, metrics=[FAILURE])
    sentences = lines(records)
    if sentences and not plugin_raised(records):
        tell("Diverged", sentences)
    elif sentences:
        folder = Path(html).parent
        ending.show(folder.name, folder.parent, sys.__stderr__ or sys.stderr)
        listed, more = sentences[: ending.FAILURES], len(sentences) - ending.FAILURES
        rest = [f"… and {more} more, under Checks in {html}"] if more > 0 else []
        raise ValueError("\n".join(["everything else was computed and is in the report.", *listed, *rest, "", WHY]))
    write_text(text, "")
