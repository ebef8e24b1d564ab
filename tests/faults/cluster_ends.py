"""Disturbs runs of the tiny study on a SLURM of its own: the tables must be those of an undisturbed run on one machine.

As in `kills`: what happens follows in one folder until a run reaches its end, which is compared; then it is emptied.
"""

import contextlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "slurm"))

from cluster import Cluster
from kills import _differences
from workplace import Workplace

#: Seconds until a run counts as hanging.
PATIENCE = 1800


def _running(cluster: Cluster) -> list[str]:
    return cluster.call("squeue", "-h", "-o", "%A", check=False).split()


def _cancel(run: subprocess.Popen, cluster: Cluster, rng: np.random.Generator, *how: str) -> None:
    """One job, at work or waiting."""
    if jobs := _running(cluster):
        cluster.call("scancel", *how, str(rng.choice(jobs)), check=False)


def _controller(run: subprocess.Popen, cluster: Cluster, rng: np.random.Generator) -> None:
    """Gone for some seconds."""
    cluster.kill_controller()
    time.sleep(float(rng.uniform(0, 5)))
    cluster.start_controller()


#: What may happen to a run, or to a job of it.
ENDS: dict[str, Callable[[subprocess.Popen, Cluster, np.random.Generator], None]] = {
    "SIGKILL to Snakemake": lambda run, cluster, rng: run.kill(),
    "scancel of a job": _cancel,
    "SIGTERM to Snakemake": lambda run, cluster, rng: run.terminate(),
    "SIGKILL to a job": lambda run, cluster, rng: _cancel(run, cluster, rng, "--signal=KILL", "--full"),
    "SIGINT to Snakemake": lambda run, cluster, rng: run.send_signal(signal.SIGINT),
    "SIGKILL to slurmctld": _controller,
}


def attempt(
    place: Workplace, cluster: Cluster, whole: dict[str, bytes], rng: np.random.Generator, number: int
) -> tuple[str, str]:
    """(what happened to a run, what was wrong with what came of it). ``whole``: the bytes that must come out.

    Jobs that a killed Snakemake left behind go on while the next run begins.
    """
    end = list(ENDS)[number % len(ENDS)]
    shutil.rmtree(place.folder / ".snakemake" / "locks", ignore_errors=True)
    log, jobs_before = place.folder / "said.txt", len(cluster.jobs())
    with log.open("w") as file:
        run = cluster.submit(place, stdout=file, stderr=file, start_new_session=True)
    jobs = int(rng.integers(1, 4))
    while run.poll() is None and len(cluster.jobs()) < jobs_before + jobs:
        time.sleep(0.2)
    time.sleep(float(rng.uniform(0, 12)))
    if run.poll() is None:
        ENDS[end](run, cluster, rng)
    try:
        code = run.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        run.kill()
        return end, f"{number}: {end}: the run hangs: {log.read_text()[-600:]}"
    text = log.read_text(errors="replace")
    wrong = [f"a traceback: {text[text.index('Traceback') :][:600]}"] if "Traceback" in text else []
    if code == 0:
        cluster.until(lambda: not _running(cluster), "jobs of earlier runs have ended")
        wrong += _differences(place.contents(), whole)
        for name in ("results", ".snakemake"):
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(place.folder / name)
    return end, f"{number}: {end}: {'; '.join(wrong)}" if wrong else ""
