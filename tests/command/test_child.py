"""A program that the command waits for hears what the command is told."""

import os
import signal
import sys

import pytest
from unlearning_audit.command import child
from unlearning_audit.workflow import interruption

#: Sends a signal to the process that started it, and waits for what comes of it.
ASKS = "import os, signal, time; os.kill(os.getppid(), {}); time.sleep(600)"


@pytest.mark.parametrize("number", interruption.SIGNALS)
def test_a_signal_is_passed_on_and_answered_as_before_afterwards(number):
    before = signal.signal(number, signal.SIG_DFL)
    try:
        assert child.run([sys.executable, "-c", ASKS.format(int(number))], dict(os.environ)) == 128 + number
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize(("end", "status"), [("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", 137), ("pass", 0)])
def test_the_status_is_that_of_shells(end, status):
    assert child.run([sys.executable, "-c", f"import os, sys; {end}"], dict(os.environ)) == status
