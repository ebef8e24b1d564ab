"""A submitted run that is killed, its jobs cancelled or left to themselves, goes on later to the same bytes."""

import random
import shutil
import subprocess
import time

from cluster import Cluster
from test_submission import IMPATIENT, prepare, submitted
from workplace import Workplace

KILLS = 4


def kill_sometime(place: Workplace, cluster: Cluster, moments: random.Random, cancel: bool) -> None:
    """Start a run, kill Snakemake soon after it has submitted a job that is there, and maybe cancel what it left."""
    command = [part for part in place.command() if part not in ("--cores", "2")]
    command += ["--workflow-profile", str(place.tree / "profiles/slurm"), *IMPATIENT]
    before = len(cluster.jobs())
    run = subprocess.Popen(
        command, env={**place.environment, **cluster.environment}, cwd=place.folder, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    cluster.until(lambda: run.poll() is not None or len(cluster.jobs()) > before, "a job is submitted", 300)
    time.sleep(moments.uniform(0, 3))
    run.kill()
    run.wait()
    if cancel:
        cluster.call("scancel", *cluster.call("squeue", "-h", "-o", "%A").split(), check=False)
    cluster.until(lambda: not cluster.call("squeue", "-h"), "no job is left", 300)


def test_killed_submitted_runs_resume_to_the_same_results(slurm, tree, tmp_path):
    local = prepare(Workplace(tree, tmp_path / "local"))
    local.run()
    place, moments = prepare(Workplace(tree, tmp_path / "work")), random.Random(4)
    for number in range(KILLS):
        kill_sometime(place, slurm, moments, cancel=number % 2 == 0)
        shutil.rmtree(place.folder / ".snakemake" / "locks", ignore_errors=True)  # as --unlock does
    with submitted(place, slurm) as run:
        run.wait(300)
    assert place.contents() == local.contents()
