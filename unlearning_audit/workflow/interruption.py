"""How a run ends early: at once by SIGINT (Ctrl-C), SIGTERM and SIGHUP, with its jobs; what is whole stays."""

import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType

#: What is said of it, once.
SENTENCE = "interrupted; the same command goes on"

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: Exit statuses of jobs that such a signal ended, as Python and as shells have them.
STATUSES = frozenset(status for number in SIGNALS for status in (-number, 128 + number))

#: Seconds in which this process learns of a signal that has ended a job already: both are sent it at once.
GRACE = 1.0

_numbers: list[int] = []
_event = threading.Event()


def answered() -> list[int]:
    """The signals that this process is to answer. Under nohup SIGHUP is none."""
    return [number for number in SIGNALS if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]


def begin(number: int) -> bool:
    """Note that the run is to end, and say so once. Returns whether this is the first signal."""
    _numbers.append(number)
    if len(_numbers) > 1:
        return False
    _event.set()
    with suppress(OSError):
        if sys.__stderr__ is not None:  # a stream of Python's may be in use where a signal is answered
            os.write(2, f"{chr(10) * os.isatty(2)}{SENTENCE}\n".encode())
    return True


def noticed(seconds: float = 0.0) -> bool:
    """Whether the run is to end, or is told so within so many ``seconds``."""
    return _event.wait(seconds) if seconds else _event.is_set()


def leave() -> None:
    """End this process, with the status that shells have for the signal, if the run is to end."""
    if noticed():
        sys.exit(128 + _numbers[0])


def heed() -> None:
    """Let these signals end this process wherever it is, as long as it has no jobs."""
    for number in answered():
        signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    if begin(number):
        leave()
