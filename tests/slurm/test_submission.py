"""A study submitted to SLURM by the shipped profile, as it is: who asks for what, what comes of it, and what if …

The cluster's partitions have the names that the profile has; nothing else in it is made for the tests.
"""

import os
import shutil
import subprocess
from collections import Counter
from contextlib import contextmanager

import pytest

from cluster import Cluster
from workplace import TINY, Workplace

#: Seconds between looks at the queue; jobs here take less, and the files of this machine are seen at once.
IMPATIENT = ("--slurm-init-seconds-before-status-checks", "10", "--latency-wait", "5")
#: What one job asks for in its first attempt: partition, GPUs, memory in MB, minutes.
ASKED = {
    "rule_data": ("cpu", 0, 4000, 30),
    "rule_splits": ("cpu", 0, 2000, 10),
    "rule_train": ("gpu", 1, 8000, 240),
    "rule_unlearn": ("gpu", 1, 8000, 240),
    "rule_score": ("cpu", 0, 4000, 60),  # three attacks and three metrics, ten minutes each, one after the other
}


@contextmanager
def submitted(place: Workplace, cluster: Cluster):
    """Snakemake, started as a user of the cluster starts it; what it says goes to a file."""
    command = [part for part in place.command() if part not in ("--cores", "2")]
    command += ["--workflow-profile", str(place.tree / "profiles/slurm"), *IMPATIENT]
    environment = {name: value for name, value in place.environment.items() if name != "CUDA_VISIBLE_DEVICES"}
    said = place.folder / "said.txt"
    with said.open("w") as file:
        run = subprocess.Popen(
            command, env={**environment, **cluster.environment}, cwd=place.folder, stdout=file, stderr=file
        )
    try:
        yield run
        assert run.wait(300) == 0, said.read_text()
    finally:
        run.kill()
        run.wait()


def asked(job: dict[str, str]) -> tuple[str, int, int, int]:
    """Partition, GPUs, memory in MB and minutes that a job asked for; one core is all that any may ask for."""
    resources = dict(part.split("=") for part in job["TRES"].split(","))
    assert resources["cpu"] == job["NumCPUs"] == "1"
    hours, minutes, seconds = map(int, job["TimeLimit"].split(":"))
    assert seconds == 0
    gpus = job.get("TresPerJob", "gres:gpu:0").removeprefix("gres:gpu:")
    return job["Partition"], int(gpus), int(resources["mem"].removesuffix("M")), 60 * hours + minutes


def stage(job: dict[str, str]) -> str:
    """ "rule_train" of a job that was submitted for one; a group has "rule_" before its name, too."""
    return "_".join(job["Comment"].split("_")[:2])


def test_a_submitted_study_ends_as_a_local_one_and_asks_for_what_it_needs(slurm, finished, tmp_path):
    place = Workplace(finished.tree, tmp_path / "work")
    place.folder.mkdir()
    place.write(TINY)
    first = len(slurm.jobs())
    with submitted(place, slurm) as run:
        run.wait(300)
    assert place.contents() == finished.contents()
    jobs = slurm.jobs()[first:]
    assert {stage(job): asked(job) for job in jobs} == ASKED
    # Six scoring jobs are one submission.
    assert Counter(map(stage, jobs)) == {name: 2 if name == "rule_unlearn" else 1 for name in ASKED}
    assert {job["Account"] for job in jobs} == {"(null)"}
    devices = slurm.devices()
    assert sorted(devices[job["JobId"]] for job in jobs if stage(job) == "rule_unlearn") == ["0", "1"]
    assert {devices[job["JobId"]] for job in jobs if asked(job)[0] == "cpu"} == {""}


@pytest.fixture
def unfinished(finished, tmp_path) -> Workplace:
    """The study without what one method made, and without all that follows from it."""
    place = finished.copy(tmp_path / "work")
    for folder in (*place.folder.glob("results/*/*-finetune-*"), place.folder / "results/tiny"):
        shutil.rmtree(folder)
    return place


@contextmanager
def disturbed(place: Workplace, cluster: Cluster):
    """The unfinished study, submitted; its body runs when the one job with a GPU has begun its work."""
    before = len(cluster.jobs())
    with submitted(place, cluster) as run:
        at_work = "unlearn/*-finetune-*/log.txt"
        cluster.until(lambda: place.find(at_work) or run.poll() is not None, "the method is at work")
        (job,) = cluster.jobs()[before:]
        assert job["JobState"] == "RUNNING", job
        yield job["JobId"]


def history(cluster: Cluster, first: str) -> list[tuple[str, str]]:
    """(stage, state) of all jobs from ``first`` on."""
    return [(stage(job), job["JobState"]) for job in cluster.jobs() if int(job["JobId"]) >= int(first)]


def test_a_cancelled_job_is_submitted_again_with_more_memory_and_time(slurm, finished, unfinished):
    """By Snakemake's retries, within the same run."""
    with disturbed(unfinished, slurm) as job:
        slurm.call("scancel", job)
    assert unfinished.contents() == finished.contents()
    assert history(slurm, job) == [
        ("rule_unlearn", "CANCELLED"), ("rule_unlearn", "COMPLETED"), ("rule_score", "COMPLETED")
    ]  # fmt: skip
    again = next(one for one in slurm.jobs() if int(one["JobId"]) > int(job))
    assert asked(again) == ("gpu", 1, 2 * 8000, 2 * 240)


def test_a_job_whose_node_goes_down_runs_again_when_it_is_back(slurm, finished, unfinished):
    """By SLURM itself, which puts the job back into its queue; Snakemake's run does not notice."""
    with disturbed(unfinished, slurm) as job:
        slurm.call("scontrol", "update", f"NodeName={slurm.host}", "State=DOWN", "Reason=test")
        slurm.until(lambda: "down" in slurm.call("sinfo", "-h", "-o", "%T"), "the node is down")
        slurm.call("scontrol", "update", f"NodeName={slurm.host}", "State=RESUME")
    assert unfinished.contents() == finished.contents()
    assert history(slurm, job) == [("rule_unlearn", "COMPLETED"), ("rule_score", "COMPLETED")]
    assert next(one["Restarts"] for one in slurm.jobs() if one["JobId"] == job) == "1"


def test_a_run_outlives_the_controller(slurm, finished, unfinished):
    """The job works on while slurmctld is dead, and the one that is started in its place learns how it ended."""
    saved = slurm.root / "state/job_state"
    with disturbed(unfinished, slurm) as job:
        begun = os.stat(unfinished.find("unlearn/*-finetune-*/log.txt")[0]).st_mtime
        slurm.until(lambda: saved.exists() and saved.stat().st_mtime > begun - 5, "the controller's memory is on disk")
        slurm.kill_controller()
        slurm.start_controller()
    assert unfinished.contents() == finished.contents()
    assert history(slurm, job) == [("rule_unlearn", "COMPLETED"), ("rule_score", "COMPLETED")]
