"""Say which plug-ins of a study failed, one line each, and fail if there are any: the last job of a run."""

import sys
from pathlib import Path

from job import script
from unlearning.artifacts.files import replacing
from unlearning.artifacts.tables import UNION_COLUMNS, read_rows
from unlearning.display.failures import lines
from unlearning.workflow import progress


@script
def failures(metrics: str, html: str, text: str) -> None:
    """Everything else is there by then, and shown. Raises ValueError with the lines."""
    found = lines(read_rows(metrics, UNION_COLUMNS, metrics=["failed"]))
    if found:
        folder = Path(html).parent
        progress.close(folder.name, folder.parent, sys.__stderr__)
        raise ValueError("\n".join(["everything else was computed and is in the report.", *found]))
    with replacing(text) as part:
        part.write_text("")
