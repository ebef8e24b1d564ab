"""A run that is told to end leaves nobody behind, and the same command goes on."""

import os
import signal

import pytest
from unlearning_audit.workflow import warm

import endings

pytestmark = pytest.mark.slow


@pytest.fixture(params=["audit", "Snakemake"])
def command(request, workplace) -> list[str]:
    """A run, as the command starts it and by Snakemake itself."""
    return endings.audit() if request.param == "audit" else workplace.command()


def test_ctrl_c_ends_a_run_with_its_jobs_and_is_one_line(workplace, command):
    code, output = endings.Waiting(workplace, command).waits().send(signal.SIGINT, everybody=True).end()
    assert code
    assert output.splitlines()[-1] == "interrupted; the same command continues"
    assert "Traceback" not in output
    workplace.folder.joinpath("go").touch()
    workplace.run("--until", "data")


def test_without_the_warm_process_as_well(workplace):
    run = endings.Waiting(workplace, workplace.command(), **{warm.SWITCH: "0"}).waits()
    code, output = run.send(signal.SIGINT, everybody=True).end()
    assert code
    assert output.splitlines()[-1] == "interrupted; the same command continues"


def test_sigterm_lets_jobs_end_that_run_and_starts_no_other(workplace, command):
    run = endings.Waiting(workplace, command).waits().send(signal.SIGTERM, everybody=False)
    workplace.folder.joinpath("go").touch()
    assert run.end()[0]
    assert workplace.find("data/*/spec.json")
    assert not workplace.find("train/*/spec.json")


def test_a_run_that_nobody_reads_ends_with_a_job_that_fails(workplace, command):
    run = endings.Waiting(workplace, command).waits().unread()
    os.kill(run.job(), signal.SIGKILL)
    assert run.end()[0]


def test_what_a_killed_run_leaves_is_snakemakes_lock_and_unlock_removes_it(workplace):
    run = endings.Waiting(workplace, workplace.command()).waits()
    run.send(signal.SIGKILL, everybody=False).end()
    workplace.folder.joinpath("go").touch()
    refused = workplace.run("--until", "data", check=False)
    assert refused.returncode == 1
    assert "--unlock" in refused.stdout
    workplace.run("--unlock")
    workplace.run("--until", "data")
    assert workplace.find("data/*/spec.json")
