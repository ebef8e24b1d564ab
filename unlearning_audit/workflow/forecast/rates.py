"""What jobs of each stage take and ask for: the numbers behind forecast, progress and what a cluster is asked for."""

#: Mean seconds of a job of the default study on two cores of a server (AMD EPYC); of import, of jobs of that size.
#: Relative weights until a job of the same kind is measured.
SECONDS = {
    "external": 0.05, "data": 1.0, "pretrain": 11.0, "splits": 0.02, "train": 2.5, "selection": 0.05, "tune": 12.0,
    "unlearn": 0.9,
    "readings": 0.4, "relearn": 0.4, "generate": 0.4, "attack": 0.4, "metrics": 0.25, "comparisons": 0.5,
}  # fmt: skip

#: MB of main memory that a job is given at its first attempt. Those that hold models ask for ``memory`` of the study.
MEMORY = {
    "data": 4000, "external": 4000, "splits": 2000, "selection": 8000, "attack": 4000, "metrics": 4000,
    "comparisons": 8000,
}  # fmt: skip

#: Minutes that a job is given at its first attempt.
MINUTES = {
    "external": 30, "data": 30, "pretrain": 240, "splits": 10, "train": 240, "selection": 60, "tune": 240,
    "unlearn": 240, "readings": 60, "relearn": 60, "generate": 60, "attack": 60, "metrics": 60, "comparisons": 60,
}  # fmt: skip


def reserved(stage: str, memory: int, attempt: int) -> tuple[int, int]:
    """MB and minutes of a job of a ``stage`` at this ``attempt``, every further one as much again; ``memory``: MB of a
    job with models."""
    return attempt * MEMORY.get(stage, memory), attempt * MINUTES[stage]
