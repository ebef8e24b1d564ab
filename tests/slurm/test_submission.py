"""A study submitted to SLURM by the shipped profile, as it is: who asks for what, what comes of it, and what if …

The cluster's partitions have the names that the profile has; nothing else in it is made for the tests.
"""

import copy
import shutil
from collections import Counter
from contextlib import contextmanager
from datetime import datetime

import pytest

from cluster import Cluster
from workplace import TINY, Workplace

#: Takes as long as a test likes.
PATIENT = '''"""Fine-tune, once a file called hold has gone."""

import time
from pathlib import Path

from unlearning.bank.bank import Bank
from unlearning.bank.optim import Optimiser
from unlearning.bank.streams import Rows, Stream


class Options(Optimiser):
    """The optimiser's settings."""


def unlearn(bank: Bank, forget: Rows, retain: Rows, options: Options) -> None:
    """Waits, then trains for an epoch."""
    Path("begun").touch()
    while Path("hold").exists():
        time.sleep(0.1)
    bank.fit(Stream(retain), optimiser=options, epochs=1, purpose="patient")
'''

#: What one job asks for in its first attempt: partition, GPUs, memory in MB, minutes.
ASKED = {
    "rule_data": ("cpu", 0, 4000, 30),
    "rule_splits": ("cpu", 0, 2000, 10),
    "rule_train": ("gpu", 1, 8000, 240),
    "rule_unlearn": ("gpu", 1, 8000, 240),
    "rule_score": ("cpu", 0, 4000, 60),  # three attacks and three metrics, ten minutes each, one after the other
    "rule_comparisons": ("cpu", 0, 8000, 60),
}


@contextmanager
def submitted(place: Workplace, cluster: Cluster):
    """Snakemake, started as a user of the cluster starts it; what it says goes to a file."""
    said = place.folder / "said.txt"
    with said.open("w") as file:
        run = cluster.submit(place, stdout=file, stderr=file)
    try:
        yield run
        assert run.wait(1800) == 0, said.read_text()
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


def prepare(place: Workplace) -> Workplace:
    """The study that all tests here run, and its method's file."""
    place.folder.mkdir()
    (place.folder / "patient.py").write_text(PATIENT)
    study = copy.deepcopy(TINY)
    study["defaults"]["methods"] = {"none": {}, "retrain": {}, "patient": {"file": "patient.py"}}
    place.write(study)
    return place


@pytest.fixture(scope="module")
def local(tree, tmp_path_factory) -> Workplace:
    """The study as this machine makes it without a cluster."""
    place = prepare(Workplace(tree, tmp_path_factory.mktemp("local") / "work"))
    place.run()
    return place


def test_a_submitted_study_ends_as_a_local_one_and_asks_for_what_it_needs(slurm, local, tmp_path):
    place = prepare(Workplace(local.tree, tmp_path / "work"))
    first = len(slurm.jobs())
    with submitted(place, slurm) as run:
        run.wait(1800)
    assert place.contents() == local.contents()
    jobs = slurm.jobs()[first:]
    assert {stage(job): asked(job) for job in jobs} == ASKED
    # Six scoring jobs are one submission.
    assert Counter(map(stage, jobs)) == {name: 2 if name == "rule_unlearn" else 1 for name in ASKED}
    assert {job["Account"] for job in jobs} == {"(null)"}
    devices = slurm.devices()
    assert sorted(devices[job["JobId"]] for job in jobs if stage(job) == "rule_unlearn") == ["0", "1"]
    assert {devices[job["JobId"]] for job in jobs if asked(job)[0] == "cpu"} == {""}


@pytest.fixture
def unfinished(local, tmp_path) -> Workplace:
    """The study without what one method made, and without all that follows from it."""
    place = local.copy(tmp_path / "work")
    for folder in (*place.folder.glob("results/*/*-patient-*"), place.folder / "results/tiny"):
        shutil.rmtree(folder)
    (place.folder / "begun").unlink()
    return place


@contextmanager
def disturbed(place: Workplace, cluster: Cluster):
    """The unfinished study, submitted; its body runs while the one job with a GPU is at work, which ends when the body
    removes the file ``hold``. Gives the job's number and that file."""
    before = len(cluster.jobs())
    hold = place.folder / "hold"
    hold.touch()
    with submitted(place, cluster) as run:
        begun = place.folder / "begun"
        cluster.until(lambda: begun.exists() or run.poll() is not None, "the method is at work")
        (job,) = cluster.jobs()[before:]
        assert job["JobState"] == "RUNNING", job
        yield job["JobId"], hold
        assert not hold.exists()


def known(cluster: Cluster, job: str) -> dict[str, str]:
    """What the controller knows of a job."""
    (found,) = (one for one in cluster.jobs() if one["JobId"] == job)
    return found


def state(cluster: Cluster, job: str) -> tuple[str, str]:
    """(state, restarts) of a job."""
    return known(cluster, job)["JobState"], known(cluster, job)["Restarts"]


def history(cluster: Cluster, first: str) -> list[tuple[str, str]]:
    """(stage, state) of all jobs from ``first`` on."""
    return [(stage(job), job["JobState"]) for job in cluster.jobs() if int(job["JobId"]) >= int(first)]


def test_a_cancelled_job_is_submitted_again_with_more_memory_and_time(slurm, local, unfinished):
    """By Snakemake's retries, within the same run."""
    with disturbed(unfinished, slurm) as (job, hold):
        slurm.call("scancel", job)
        slurm.until(lambda: state(slurm, job)[0] == "CANCELLED", "the job is cancelled")
        hold.unlink()
    assert unfinished.contents() == local.contents()
    assert history(slurm, job) == [
        ("rule_unlearn", "CANCELLED"), ("rule_unlearn", "COMPLETED"), ("rule_score", "COMPLETED"),
        ("rule_comparisons", "COMPLETED"),
    ]  # fmt: skip
    again = next(one for one in slurm.jobs() if int(one["JobId"]) > int(job))
    assert asked(again) == ("gpu", 1, 2 * 8000, 2 * 240)


def test_a_job_whose_node_goes_down_runs_again_when_it_is_back(slurm, local, unfinished):
    """By SLURM itself, which puts the job back into its queue; Snakemake's run does not notice."""
    with disturbed(unfinished, slurm) as (job, hold):
        slurm.call("scontrol", "update", f"NodeName={slurm.host}", "State=DOWN", "Reason=test")
        slurm.until(lambda: state(slurm, job)[0] != "RUNNING", "the job has lost its node")
        slurm.until(lambda: not slurm.steps(job), "the node has ended what was left of the job")
        slurm.call("scontrol", "update", f"NodeName={slurm.host}", "State=RESUME")
        slurm.until(lambda: state(slurm, job) == ("RUNNING", "1"), "the job runs again")
        hold.unlink()
    assert unfinished.contents() == local.contents()
    assert history(slurm, job) == [(f"rule_{name}", "COMPLETED") for name in ("unlearn", "score", "comparisons")]


def test_a_run_outlives_the_controller(slurm, local, unfinished):
    """The job is at work while slurmctld dies, and the one that is started in its place learns how it ends."""
    saved = slurm.root / "state/job_state"
    with disturbed(unfinished, slurm) as (job, hold):
        # What it has not written down when it dies, it has never known: that the job runs, for example.
        started = datetime.fromisoformat(known(slurm, job)["StartTime"]).timestamp()
        slurm.until(lambda: saved.exists() and saved.stat().st_mtime > started + 1, "the controller has taken notes")
        slurm.kill_controller()
        slurm.until(lambda: "DOWN" in slurm.call("scontrol", "ping", check=False), "the controller is gone")
        slurm.start_controller()
        hold.unlink()
    assert unfinished.contents() == local.contents()
    assert history(slurm, job) == [(f"rule_{name}", "COMPLETED") for name in ("unlearn", "score", "comparisons")]
