"""A study submitted to SLURM by the shipped profile, as it is: who asks for what, what comes of it, and what if …

The cluster's partitions have the names that the profile has; nothing else in it is made for the tests.
"""

import copy
import shutil
import subprocess
from collections import Counter
from contextlib import contextmanager

import pytest
from unlearning_audit.workflow.forecast import rates

from cluster import Cluster
from workplace import TINY, Workplace

pytestmark = pytest.mark.slow

#: Takes as long as a test likes.
PATIENT = '''"""Fine-tune, once a file called hold has gone."""

import time
from pathlib import Path

from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.optim import Optimiser
from unlearning_audit.training.streams import Rows, Stream


class Options(Optimiser):
    """The optimiser's settings."""


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Waits, then trains for an epoch."""
    Path("begun").touch()
    while Path("hold").exists():
        time.sleep(0.1)
    stack.fit(Stream(retain), optimiser=options, epochs=1, purpose="patient")
'''

#: Jobs that score ask for what they read; here that is next to nothing beside the process, if the rule looks at files
#: that other jobs have just written.
SMALL = pytest.approx(1.1 * rates.PROCESS_MB, rel=0.1)

#: What one job asks for in its first attempt: partition, GPUs, memory in MB, minutes.
ASKED = {
    "rule_data": ("cpu", 0, 4000, 30),
    "rule_splits": ("cpu", 0, 2000, 10),
    "rule_train": ("gpu", 1, 8000, 240),
    "rule_unlearn": ("gpu", 1, 8000, 240),
    "rule_score": ("cpu", 0, SMALL, 60),  # three attacks and three metrics, ten minutes each, one after the other
    "rule_comparisons": ("cpu", 0, 8000, 60),
}


#: Seconds after which a run counts as hanging, on the busiest machine.
LONGEST = 3600


@contextmanager
def submitted(place: Workplace, cluster: Cluster):
    """Snakemake, started as a user of the cluster starts it; what it says goes to a file."""
    output = place.folder / "output.txt"
    with output.open("w") as file:
        run = cluster.submit(place, stdout=file, stderr=file)
    try:
        yield run
        assert run.wait(LONGEST) == 0, output.read_text()
    finally:
        run.kill()
        run.wait()


def request(job: dict[str, str]) -> tuple[str, int, int, int]:
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


def at_work(place: Workplace, cluster: Cluster, run: subprocess.Popen) -> dict[str, str]:
    """The newest job, once the method is at work, which ends when the file ``hold`` is removed.

    Until then Snakemake plans twice, starts three interpreters and imports torch: as long as it takes, while it lives.
    """
    start = place.folder / "begun"
    cluster.until(lambda: start.exists() or run.poll() is not None, "the method is at work", LONGEST)
    running = [job for job in cluster.jobs() if job["JobState"] == "RUNNING"]
    assert running, cluster.jobs()[-1]
    return running[-1]


def test_a_submitted_study_outlives_the_controller_ends_as_a_local_one_and_asks_for_what_it_needs(
    slurm, local, tmp_path
):
    """A job is at work while slurmctld dies, and the one that is started in its place learns how it ends."""
    place = prepare(Workplace(local.tree, tmp_path / "work"))
    first = len(slurm.jobs())
    hold = place.folder / "hold"
    hold.touch()
    with submitted(place, slurm) as run:
        at_work(place, slurm, run)

        def unlearn(state: str) -> list[str]:
            jobs = [job for job in slurm.jobs()[first:] if stage(job) == "rule_unlearn"]
            return [job["JobId"] for job in jobs if job["JobState"] == state]

        # slurmd reports the end of the other job once; a controller that dies before it saves that never learns of it.
        slurm.until(
            lambda: len(unlearn("COMPLETED")) == len(unlearn("RUNNING")) == 1 or run.poll() is not None,
            "the method is alone at work", LONGEST,
        )  # fmt: skip
        slurm.write_down(*unlearn("RUNNING"))
        slurm.kill_controller()
        slurm.until(lambda: "DOWN" in slurm.call("scontrol", "ping", check=False), "the controller is gone")
        slurm.start_controller()
        hold.unlink()
        run.wait(LONGEST)
    assert place.contents() == local.contents()
    jobs = slurm.jobs()[first:]
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}
    assert {stage(job): request(job) for job in jobs} == ASKED
    # Six scoring jobs are one submission.
    assert Counter(map(stage, jobs)) == {name: 2 if name == "rule_unlearn" else 1 for name in ASKED}
    assert {job["Account"] for job in jobs} == {"(null)"}
    devices = slurm.devices()
    assert sorted(devices[job["JobId"]] for job in jobs if stage(job) == "rule_unlearn") == ["0", "1"]
    assert {devices[job["JobId"]] for job in jobs if request(job)[0] == "cpu"} == {""}


def test_a_cancelled_job_is_submitted_again_with_more_memory_and_time_and_then_outlives_its_node(
    slurm, local, tmp_path
):
    """Again by Snakemake's retries, within the same run. When the node goes down, SLURM itself puts the job back into
    its queue, so that it runs again when the node is back, and Snakemake's run does not notice."""
    # what one method made is missing, and all that follows from it
    unfinished = local.copy(tmp_path / "work")
    for folder in (*unfinished.folder.glob("results/*/*-patient-*"), unfinished.folder / "results/tiny"):
        shutil.rmtree(folder)
    (unfinished.folder / "begun").unlink()
    hold = unfinished.folder / "hold"
    hold.touch()
    before = len(slurm.jobs())
    with submitted(unfinished, slurm) as run:
        first = at_work(unfinished, slurm, run)["JobId"]
        assert len(slurm.jobs()) == before + 1
        (unfinished.folder / "begun").unlink()
        slurm.call("scancel", first)
        slurm.until(lambda: slurm.state(first)[0] == "CANCELLED", "the job is cancelled")
        again = at_work(unfinished, slurm, run)["JobId"]
        slurm.take_node_down(again)
        slurm.bring_node_back(again)
        slurm.until(lambda: slurm.state(again) == ("RUNNING", "1"), "the job runs again")
        hold.unlink()
    assert unfinished.contents() == local.contents()
    later = [job for job in slurm.jobs() if int(job["JobId"]) >= int(first)]
    assert [(stage(job), job["JobState"]) for job in later] == [
        ("rule_unlearn", "CANCELLED"), ("rule_unlearn", "COMPLETED"), ("rule_score", "COMPLETED"),
        ("rule_comparisons", "COMPLETED"),
    ]  # fmt: skip
    assert int(again) > int(first)
    assert request(slurm.job(again)) == ("gpu", 1, 2 * 8000, 2 * 240)
