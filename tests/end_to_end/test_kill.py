"""A run that is killed at any moment, with all its processes, goes on where it was and ends with the same numbers."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from workplace import Workplace

pytestmark = pytest.mark.slow

#: Folders of results/ in the order in which a run fills them; a run is killed in each, and once soon after its start.
STAGES = ("", "data", "splits", "train", "unlearn", "metrics", "comparisons", "tiny")


def killed(place: Workplace, due: Callable[[], bool], seconds: float = 0.0, **environment: str) -> bool:
    """Start a run and kill its whole process group some ``seconds`` after it is ``due``. False if the run ended by
    itself before."""
    run = subprocess.Popen(
        place.command("--nolock"), env=place.environment | environment, cwd=place.folder, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    while run.poll() is None and not due():
        time.sleep(0.002)
    try:
        assert run.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        return True
    return False


def restart(place: Workplace) -> None:
    for folder in ("results", ".snakemake"):
        shutil.rmtree(place.folder / folder)


def test_trainings_that_were_killed_go_on_where_their_checkpoints_are(finished, workplace):
    """Of runs that write a checkpoint after every epoch."""
    left: list = []
    while not left:
        for stage in ("train", "unlearn"):
            written = f"results/{stage}/*/.checkpoint-*.blake2b"
            due = killed(workplace, lambda written=written: any(workplace.folder.glob(written)),
                         UNLEARNING_CHECKPOINT_SECONDS="0")  # fmt: skip
            kept = {path.parent for path in workplace.find(f"{stage}/*/checkpoint-*")}
            if not (due and kept):
                restart(workplace)
                left.clear()
                break
            left += kept
    workplace.run("--nolock")
    logs = [(folder / "log.txt").read_text() for folder in left]
    assert all(" go on after " in log for log in logs), logs
    assert workplace.contents() == finished.contents()
    assert not workplace.find("**/*checkpoint*"), "what jobs have ended with needs no checkpoints"


def test_killed_runs_resume_to_the_same_results(finished, workplace):
    """Within half a second of the next new file of each stage, so that no stage is spared on a machine of any speed."""
    moments = random.Random(20)
    stages = list(STAGES)
    while stages:
        stage = stages[0]
        before = set(workplace.find(f"{stage}/**/*")) if stage else set()

        def due(stage=stage, before=before) -> bool:
            return not stage or not before >= set(workplace.find(f"{stage}/**/*"))

        if killed(workplace, due, moments.uniform(0, 0.5 if stage else 3)):
            del stages[0]
            continue
        assert workplace.contents() == finished.contents()
        restart(workplace)
    workplace.run("--nolock")
    assert workplace.contents() == finished.contents()
    assert not workplace.find("**/*.part"), "what killed jobs left half-written is gone"
