"""Runs a program that hears the signals which this process is sent, and is waited for."""

import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

from unlearning_audit.workflow import interruption


def run(command: Sequence[str], environment: dict[str, str]) -> int:
    """The exit status of a ``command``, as shells have it. SIGINT, SIGTERM and SIGHUP are passed on to it, also where a
    terminal sends them to both: the second changes nothing."""
    numbers: list[int] = []
    processes: list[subprocess.Popen] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        numbers.append(number)
        for process in processes:
            with suppress(ProcessLookupError):
                process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in interruption.answered()}
    try:
        processes.append(subprocess.Popen(command, env=environment))
        for number in numbers[:1]:  # it came while the program was started
            processes[0].send_signal(number)
        status = processes[0].wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status
