"""What jobs of each stage ask a cluster for: the numbers behind `resources` of the rules."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unlearning_audit.workflow.forecast.reading import Reading

#: MB of main memory that a job is given at its first attempt. Those that hold models ask for ``memory`` of the study,
#: those that score for what they read (`scoring`), and for this where it is not there yet.
MEMORY = {
    "data": 4000, "external": 4000, "splits": 2000, "selection": 8000, "metrics": 4000,
    "comparisons": 8000,
}  # fmt: skip

#: Minutes that a job is given at its first attempt.
MINUTES = {
    "external": 30, "data": 30, "pretrain": 240, "splits": 10, "train": 240, "selection": 60, "tune": 240,
    "unlearn": 240, "signals": 60, "metrics": 60, "comparisons": 60,
}  # fmt: skip


#: MB of a process that scores, with its libraries: 85 to 145 were measured, by what attacks import.
PROCESS = 250

#: By how much what attacks and metrics hold at once exceeds the logits that they read. Measured beyond the process with
#: 2, 10 and 100 classes: 2 to 7 times for six to eight attacks, up to 6 times for all metrics of swapped pairs.
OF_ATTACKS, OF_METRICS = 8, 6

#: Bytes that metrics keep of each model and sample: three populations' predictions.
PREDICTED = 24


def scoring(reading: "Reading") -> int:
    """MB of a job that judges what it reads: attacks learn from all rows of logits; metrics, which come after them,
    hold those of the samples that attacks are asked about, and what models predict of all."""
    metrics = OF_METRICS * reading.logits * reading.queried + PREDICTED * reading.cells
    return PROCESS + int((max(OF_ATTACKS * reading.attacked, metrics) + 2 * reading.other_bytes) / 1e6)


def reserved(stage: str, memory: int, attempt: int, reading: "Reading | None" = None) -> tuple[int, int]:
    """MB and minutes of a job of a ``stage`` at this ``attempt``, every further one as much again; ``memory``: MB of a
    job with models; ``reading``: what a job that scores reads, if it is there."""
    first = MEMORY.get(stage, memory) if reading is None else scoring(reading)
    return attempt * first, attempt * MINUTES[stage]
