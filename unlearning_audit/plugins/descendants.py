"""Processes that code started and left behind: found and ended, on Linux."""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unlearning_audit.plugins.guard import readable

#: Options of prctl that set and get whether orphans among the descendants of a process become its children.
SET_SUBREAPER, GET_SUBREAPER = 36, 37

#: Seconds in which what is left behind has to end after it was killed.
PATIENCE = 5.0


class Orphans:
    """The processes that descend from this one, but for those ``before``."""

    def __init__(self, file: str | Path, before: set[int]) -> None:
        self.file, self.before, self.ended = file, before, set()

    def end(self) -> None:
        """Kill them, and those that they start meanwhile."""
        last = time.monotonic() + PATIENCE
        while (left := children(os.getpid()) - self.before) and time.monotonic() < last:
            for pid in left:
                self.ended |= kill(pid)
            for pid in left:
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(0.001)

    @property
    def sentence(self) -> str:
        """What happened, if anything did."""
        number = len(self.ended)
        if not number:
            return ""
        subject = "a process that it started was" if number == 1 else f"{number} processes that it started were"
        end = "still running when it had ended, and had to be killed; wait for them there"
        return f"{readable(self.file)}: {subject} {end}"


@contextmanager
def ended(file: str | Path) -> Iterator[Orphans]:
    """While this lasts, orphans among the descendants of this process become its children, so that `Orphans.end`
    reaches them."""
    orphans = Orphans(file, children(os.getpid()))
    adopting = _adopt(True)
    try:
        yield orphans
    finally:
        if adopting:
            _adopt(False)


def _adopt(adopting: bool) -> bool:
    """Let this process take orphans over, or not; whether that changed anything."""
    if sys.platform != "linux":
        return False
    library, setting = ctypes.CDLL(None), ctypes.c_int()
    library.prctl(GET_SUBREAPER, ctypes.byref(setting), 0, 0, 0)
    if bool(setting.value) == adopting:
        return False
    library.prctl(SET_SUBREAPER, int(adopting), 0, 0, 0)
    return True


def kill(pid: int) -> set[int]:
    """Kill a process and all that descend from it; those of them that were alive.

    It is stopped first: a job that sees its own child die would say that it was killed for want of memory.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGSTOP)
    killed = {process for child in children(pid) for process in kill(child)}
    if _alive(pid):
        killed.add(pid)
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    return killed


def children(pid: int) -> set[int]:
    """The children of a process; none where /proc does not tell."""
    pids: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            pids.update(map(int, task.read_text().split()))
    return pids


def _alive(pid: int) -> bool:
    """Whether a process still runs, and does not only wait to be noticed."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
