"""A run that is killed at any moment, with all its processes, goes on where it was and ends with the same numbers."""

import os
import random
import shutil
import signal
import subprocess
import time

from workplace import Workplace

KILLS = 20


def kill_sometime(place: Workplace, moments: random.Random) -> bool:
    """Start a run and kill its whole process group at a random moment; False if it ended by itself before.

    One kill in four comes at any time from the start; the others within a second and a half of the next new file, so
    that the run as a whole comes forward on a machine of any speed.
    """
    there = set(place.find("**/*"))
    at_once, seconds = moments.random() < 0.25, moments.uniform(0, 1.5)
    with open(os.devnull, "w") as null:
        run = subprocess.Popen(
            place.command(), env=place.environment, cwd=place.folder, stdout=null, stderr=null, start_new_session=True
        )
    while not at_once and run.poll() is None and set(place.find("**/*")) <= there:
        time.sleep(0.02)
    try:
        assert run.wait(2 * seconds if at_once else seconds) == 0
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        return True
    return False


def test_killed_runs_resume_to_the_same_results(finished, workplace):
    moments = random.Random(20)
    kills = ends = 0
    while kills < KILLS:
        shutil.rmtree(workplace.folder / ".snakemake" / "locks", ignore_errors=True)  # as --unlock does, but quicker
        if kill_sometime(workplace, moments):
            kills += 1
            continue
        ends += 1
        assert workplace.contents() == finished.contents()
        shutil.rmtree(workplace.folder / "results")
        shutil.rmtree(workplace.folder / ".snakemake")
    workplace.run("--unlock")
    workplace.run()
    assert workplace.contents() == finished.contents()
    assert not workplace.find("**/*.part"), "what killed jobs left half-written is gone"
