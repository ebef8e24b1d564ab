"""A run that is told to end does so at once, with its jobs, whoever hears the signal and whoever reads, and the same
command goes on."""

import os
import signal

import pytest
from unlearning_audit.workflow import interruption

import endings
from slow_cases import slow

pytestmark = pytest.mark.slow

ALL = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(params=["audit", "Snakemake"])
def command(request, workplace) -> list[str]:
    """A run, as the command starts it and by Snakemake itself."""
    return endings.audit() if request.param == "audit" else workplace.command()


@pytest.mark.parametrize("everybody", [True, *slow(False)])
def test_a_run_that_nobody_reads_ends_by_a_signal_with_its_jobs(workplace, command, everybody):
    run = endings.Waiting(workplace, command).waits().unread()
    code, _ = run.send(signal.SIGTERM, everybody).end()
    assert code == 128 + signal.SIGTERM


def test_a_run_that_nobody_reads_ends_with_a_job_that_fails(workplace, command):
    run = endings.Waiting(workplace, command).waits().unread()
    os.kill(run.job(), signal.SIGKILL)
    code, _ = run.end()
    assert code == 1


@pytest.mark.parametrize(
    ("number", "everybody"),
    [
        (signal.SIGINT, True),
        (signal.SIGTERM, False),
        *slow((signal.SIGINT, False), (signal.SIGTERM, True), (signal.SIGHUP, True), (signal.SIGHUP, False)),
    ],
)
def test_one_line_says_that_a_run_was_interrupted(workplace, command, number, everybody):
    code, output = endings.Waiting(workplace, command).waits().send(number, everybody).end()
    assert code == 128 + number
    assert output.splitlines()[-1] == interruption.SENTENCE
    for words in ("killed", "Exception", "Error", "Traceback", "Terminating", "Shutting"):
        assert words not in output


def test_jobs_that_are_no_forks_end_as_well(workplace):
    run = endings.Waiting(workplace, workplace.command(), UNLEARNING_FORKSERVER="0").waits()
    code, output = run.send(signal.SIGTERM, everybody=False).end()
    assert (code, output.splitlines()[-1]) == (128 + signal.SIGTERM, interruption.SENTENCE)


@pytest.mark.parametrize("number", ALL, ids=lambda number: number.name)
def test_a_run_that_has_no_jobs_yet_ends_with_the_same_line(workplace, number):
    run = endings.Waiting(workplace, endings.planning(workplace)).waits()
    code, output = run.send(number, everybody=True).end()
    assert (code, output.splitlines()[-1]) == (128 + number, interruption.SENTENCE)
    assert "Traceback" not in output


def test_a_run_ends_with_the_command_that_started_it(workplace):
    run = endings.Waiting(workplace, endings.audit()).waits()
    code, output = run.send(signal.SIGKILL, everybody=False).end()
    assert (code, output.splitlines()[-1]) == (-signal.SIGKILL, interruption.SENTENCE)


def test_a_run_of_arrays_ends_with_the_python_that_started_it(workplace):
    run = endings.Waiting(workplace, endings.arrays(workplace)).waits()
    assert run.send(signal.SIGKILL, everybody=False).end()[0] == -signal.SIGKILL


def test_a_run_goes_on_where_one_was_killed_whose_lock_nobody_holds(workplace):
    run = endings.Waiting(workplace, workplace.command()).waits()
    run.send(signal.SIGKILL, everybody=True).end()
    assert workplace.folder.joinpath(".snakemake", "locks", "0.output.lock").exists()
    workplace.folder.joinpath("go").touch()
    assert "audit unlock" not in workplace.run("--until", "data").stdout
    assert workplace.find("data/*/spec.json")
    workplace.run("--until", "data")


def test_a_run_beside_one_that_is_alive_names_it_and_leaves_it_alone(workplace):
    run = endings.Waiting(workplace, workplace.command("--until", "data")).waits()
    beside = workplace.run(check=False)
    assert beside.returncode == 1
    assert f"{workplace.folder}: the run in {workplace.folder} (process {run.process.pid} on " in beside.stdout
    assert 'File "' not in beside.stdout, "nothing has gone wrong in the code"
    workplace.folder.joinpath("go").touch()
    assert run.end()[0] == 0


def test_a_lock_that_may_be_somebodys_names_the_command_that_removes_it(workplace):
    locks = workplace.folder / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    (locks / "0.output.lock").write_text("results/tiny/report.html\n")
    process = workplace.run(check=False)
    assert process.returncode == 1
    assert "this folder was locked by a run that was killed" in process.stdout
    assert "if none goes on: audit unlock study.yaml\n" in process.stdout
    assert 'File "' not in process.stdout
    assert (locks / "0.output.lock").exists()
