"""Say which plug-ins of a study failed, one line each, and fail if there are any: the last job of a run."""

import sys
from pathlib import Path

from job import script

from unlearning_audit.artifacts.files import write_text
from unlearning_audit.artifacts.rows import FAILURE, read_union
from unlearning_audit.display import ending
from unlearning_audit.display.failures import broken, doubted, lines

#: How to see more of a failure than its line.
WHY = "`audit why` with the study's file shows the calls that led there."


@script
def failures(metrics: str, html: str, text: str) -> None:
    """Everything else is there by then, and shown. Raises ValueError with the first lines, unless models diverged and
    nothing else failed: then that is told."""
    if doubts := doubted(read_union(metrics, metrics=["doubt"])):
        rest = f"; {len(doubts) - 1} more under Controls in the report" if len(doubts) > 1 else ""
        print(f"\nDoubted: {doubts[0]}{rest}", file=sys.__stderr__, flush=True)
    records = read_union(metrics, metrics=[FAILURE])
    sentences = lines(records)
    if sentences and not broken(records):
        rest = f"; {len(sentences) - 1} more under Controls in the report" if len(sentences) > 1 else ""
        print(f"\nDiverged: {sentences[0]}{rest}", file=sys.__stderr__, flush=True)
    elif sentences:
        folder = Path(html).parent
        ending.show(folder.name, folder.parent, sys.__stderr__)
        listed = sentences[: ending.FAILURES]
        rest = (
            [f"… and {len(sentences) - len(listed)} more, under Controls in {html}"]
            if len(sentences) > len(listed)
            else []
        )
        raise ValueError("\n".join(["everything else was computed and is in the report.", *listed, *rest, "", WHY]))
    write_text(text, "")
