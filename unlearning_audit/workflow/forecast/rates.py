"""The memory and time that jobs of each stage request from a cluster: the numbers behind `resources` of the rules."""

import os
from collections.abc import Mapping

from unlearning_audit.store.files import paths_in

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
PROCESS_MB = 250

#: Memory of a scoring job as a multiple of its inputs. Measured beyond the process with 2, 10 and 100 classes: 2 to 7
#: times the logits for six to eight attacks, up to 6 times for all metrics of swapped pairs.
TIMES = 8


def scoring(inputs: Mapping[str, str | list[str]]) -> int:
    """Return the MB that a job needs to score its ``inputs``, role of an input → path or paths.

    As long as an input does not exist, the result is ``MEMORY["metrics"]``.
    """
    try:
        return PROCESS_MB + int(TIMES * sum(map(os.path.getsize, paths_in(inputs))) / 1e6)
    except FileNotFoundError:
        return MEMORY["metrics"]
