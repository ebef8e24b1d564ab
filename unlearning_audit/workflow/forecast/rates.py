"""The memory and time that jobs of each stage request from a cluster: the numbers behind `resources` of the rules."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unlearning_audit.workflow.forecast.reading import Reading

#: MB of main memory for a job's first attempt. Jobs that hold models request the study's ``memory``.
#: Scoring jobs request what their inputs need (`scoring`), and the value here if the inputs do not exist yet.
MEMORY = {
    "data": 4000, "external": 4000, "splits": 2000, "selection": 8000, "metrics": 4000,
    "comparisons": 8000,
}  # fmt: skip

#: Minutes for a job's first attempt.
MINUTES = {
    "external": 30, "data": 30, "pretrain": 240, "splits": 10, "train": 240, "selection": 60, "tune": 240,
    "unlearn": 240, "signals": 60, "metrics": 60, "comparisons": 60,
}  # fmt: skip


#: MB of a scoring process with its libraries. Measured: 85 to 145, depending on what attacks import.
PROCESS = 250

#: Memory of attacks and metrics as multiples of the logits that they read. Measured beyond the process with
#: 2, 10 and 100 classes: 2 to 7 times for six to eight attacks, up to 6 times for all metrics of swapped pairs.
OF_ATTACKS, OF_METRICS = 8, 6

#: Bytes that metrics keep for each model and sample: the predictions of three populations.
PREDICTED = 24


def scoring(reading: "Reading") -> int:
    """Return the MB that a job needs to score models which read so much data.

    Attacks learn from all rows of logits. Metrics come after them; they hold the logits of the samples that attacks
    score, and the predictions for all samples. The larger of the two decides.
    """
    metrics = OF_METRICS * reading.logits * reading.queried + PREDICTED * reading.cells
    return PROCESS + int((max(OF_ATTACKS * reading.attacked, metrics) + 2 * reading.other_bytes) / 1e6)


def reserved(stage: str, memory: int, attempt: int, reading: "Reading | None" = None) -> tuple[int, int]:
    """Return the MB and minutes of a job of a ``stage``, which grow in proportion to the ``attempt``.

    ``memory``: MB of a job with models; ``reading``: what a scoring job reads, if its inputs exist.
    """
    first = MEMORY.get(stage, memory) if reading is None else scoring(reading)
    return attempt * first, attempt * MINUTES[stage]
