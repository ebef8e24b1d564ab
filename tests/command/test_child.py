"""The command waits for Snakemake, whatever it is told meanwhile."""

import signal
import sys

import pytest
from unlearning_audit.command import child

#: Sends a signal to the process that started it, and waits for what comes of it.
ASKS = "import os, signal, time; os.kill(os.getppid(), signal.SIG{}); time.sleep({})"


def run(monkeypatch, text: str) -> int:
    monkeypatch.setattr(child, "command", lambda *arguments: [sys.executable, "-c", *arguments])
    return child.run([text])


def test_sigterm_is_passed_on_and_answered_as_before_afterwards(monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    assert run(monkeypatch, ASKS.format("TERM", 600)) == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_interrupt_which_a_terminal_sends_to_both_is_left_to_snakemake(monkeypatch):
    assert run(monkeypatch, ASKS.format("INT", 0.5)) == 0


@pytest.mark.parametrize(("end", "status"), [("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", 137), ("pass", 0)])
def test_the_status_is_that_of_shells(monkeypatch, end, status):
    assert run(monkeypatch, f"import os, sys; {end}") == status


def test_a_library_without_the_workflow_says_what_to_install(monkeypatch):
    monkeypatch.setattr(child, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install .unlearning-audit\[workflow\]"):
        child.command()
