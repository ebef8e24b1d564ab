"""A run that is told to end does so at once, with its jobs, whoever hears the signal and whoever reads, and the same
command goes on."""

import os
import signal

import pytest
from unlearning_audit.workflow import interruption

import endings

ALL = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(params=["audit", "Snakemake"])
def command(request, workplace) -> list[str]:
    """A run, as the command starts it and by Snakemake itself."""
    return endings.audit() if request.param == "audit" else workplace.command()


@pytest.mark.parametrize("everybody", [True, False], ids=["all", "one"])
@pytest.mark.parametrize("number", ALL, ids=lambda number: number.name)
def test_a_run_that_nobody_reads_ends_by_a_signal_with_its_jobs(workplace, command, number, everybody):
    run = endings.Waiting(workplace, command).waits().unread()
    code, _ = run.send(number, everybody).end()
    assert code == 128 + number


def test_a_run_that_nobody_reads_ends_with_a_job_that_fails(workplace, command):
    run = endings.Waiting(workplace, command).waits().unread()
    os.kill(run.job(), signal.SIGKILL)
    code, _ = run.end()
    assert code == 1


@pytest.mark.parametrize("everybody", [True, False], ids=["all", "one"])
@pytest.mark.parametrize("number", ALL, ids=lambda number: number.name)
def test_one_line_says_that_a_run_was_interrupted(workplace, command, number, everybody):
    code, output = endings.Waiting(workplace, command).waits().send(number, everybody).end()
    assert code == 128 + number
    assert output.splitlines()[-1] == interruption.SENTENCE
    for words in ("killed", "Exception", "Error", "Traceback", "Terminating", "Shutting"):
        assert words not in output


@pytest.mark.parametrize("number", ALL, ids=lambda number: number.name)
def test_jobs_that_are_no_forks_end_as_well(workplace, command, number):
    run = endings.Waiting(workplace, command, UNLEARNING_FORKSERVER="0").waits()
    code, output = run.send(number, everybody=False).end()
    assert (code, output.splitlines()[-1]) == (128 + number, interruption.SENTENCE)


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
