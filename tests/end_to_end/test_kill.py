"""A run that is killed at any moment, with all its processes, goes on where it was and ends with the same numbers."""

import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from workplace import Workplace

pytestmark = pytest.mark.slow

#: Folders of results/ in the order in which a run fills them; a run is killed in each, and once soon after its start.
STAGES = ("", "data", "splits", "train", "unlearn", "metrics", "comparisons", "tiny")


def kill_sometime(place: Workplace, stage: str, moments: random.Random) -> bool:
    """Start a run and kill its whole process group at a random moment, within half a second of the next new file of a
    stage, so that no stage is spared on a machine of any speed; "": at any time from the start. False if the run ended
    by itself before.
    """
    before = set(place.find(f"{stage}/**/*")) if stage else set()
    seconds = moments.uniform(0, 0.5 if stage else 3)
    with open(os.devnull, "w") as null:
        run = subprocess.Popen(
            place.command("--nolock"),
            env=place.environment,
            cwd=place.folder,
            stdout=null,
            stderr=null,
            start_new_session=True,
        )
    while stage and run.poll() is None and set(place.find(f"{stage}/**/*")) <= before:
        time.sleep(0.02)
    try:
        assert run.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        return True
    return False


def kill_in_training(place: Workplace, stage: str) -> bool:
    """Start a run that writes a checkpoint after every epoch, and kill its whole process group when a job of a stage
    has written one. False if the run ended by itself before."""
    environment = place.environment | {"UNLEARNING_CHECKPOINT_SECONDS": "0"}
    with open(os.devnull, "w") as null:
        run = subprocess.Popen(
            place.command("--nolock"),
            env=environment,
            cwd=place.folder,
            stdout=null,
            stderr=null,
            start_new_session=True,
        )
    while run.poll() is None:
        if any(place.folder.glob(f"results/{stage}/*/.checkpoint-*.blake2b")):
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            return bool(place.find(f"{stage}/*/checkpoint-*"))
        time.sleep(0.002)
    return False


def test_trainings_that_were_killed_go_on_where_their_checkpoints_are(finished, workplace):
    left: list = []
    while not left:
        for stage in ("train", "unlearn"):
            if not kill_in_training(workplace, stage):
                shutil.rmtree(workplace.folder / "results")
                shutil.rmtree(workplace.folder / ".snakemake")
                left.clear()
                break
            left += {path.parent for path in workplace.find(f"{stage}/*/checkpoint-*")}
    workplace.run("--nolock")
    logs = [(folder / "log.txt").read_text() for folder in left]
    assert all(" go on after " in log for log in logs), logs
    assert workplace.contents() == finished.contents()
    assert not workplace.find("**/*checkpoint*"), "what jobs have ended with needs no checkpoints"


def test_killed_runs_resume_to_the_same_results(finished, workplace):
    moments = random.Random(20)
    stages = list(STAGES)
    while stages:
        if kill_sometime(workplace, stages[0], moments):
            del stages[0]
            continue
        assert workplace.contents() == finished.contents()
        shutil.rmtree(workplace.folder / "results")
        shutil.rmtree(workplace.folder / ".snakemake")
    workplace.run("--nolock")
    assert workplace.contents() == finished.contents()
    assert not workplace.find("**/*.part"), "what killed jobs left half-written is gone"
