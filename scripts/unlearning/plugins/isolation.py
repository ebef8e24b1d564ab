"""Runs a user's code in a process of its own, so that a crash of it is a result and not the end of the job."""

import ctypes
import faulthandler
import json
import os
import re
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from unlearning.plugins.guard import PluginError, same, shown

#: How a crash of code is told; any other signal came from outside.
CRASHES = {
    signal.SIGSEGV: "segmentation fault",
    signal.SIGBUS: "bus error",
    signal.SIGILL: "illegal instruction",
    signal.SIGFPE: "arithmetic fault",
    signal.SIGABRT: "abort",
}


def isolated(function: Callable[[], dict], file: str | Path, *, trace: bool = True) -> dict:
    """What ``function`` returns, JSON values only, called in a fork of this process.

    Raises PluginError, with the place in ``file``, if the fork crashed or was ended by os._exit, and ChildProcessError
    if somebody else killed it, as a system without memory does. PluginError, MemoryError and ValueError of the function
    are raised here as well, others as RuntimeError; with ``trace``, their traceback is printed.
    """
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as crash:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _answer(function, answer, crash, trace)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            raise _killed(os.WTERMSIG(status), crash, file)
        answer.seek(0)
        text = answer.read()
    if not text:
        code = os.WEXITSTATUS(status)
        raise PluginError(f"{shown(file)}: it ended the process with os._exit({code}); return or raise instead")
    found = json.loads(text)
    if "returned" in found:
        return found["returned"]
    kinds = {kind.__name__: kind for kind in (PluginError, MemoryError, ValueError)}
    raise kinds.get(found["kind"], RuntimeError)(found["error"])


def apart(function: Callable[[], dict], file: str | Path | None, where: str) -> dict:
    """What ``function`` returns: of a user's ``file`` as `isolated` does, of the library's (None) as it is.

    ``where``: the path in the study by which errors of a user's file are told.
    """
    if file is None:
        return function()
    try:
        return isolated(function, file)
    except PluginError as error:
        raise PluginError(f"{where}: {error}") from None


def _answer(function: Callable[[], dict], answer, crash, trace: bool) -> None:
    """In the fork: write what the function returned or raised, and end."""
    try:
        end_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends this process, and is no fault of the file
        faulthandler.enable(crash)
        try:
            said = {"returned": function()}
        except BaseException as error:
            if trace:
                traceback.print_exc()
            kinds = (PluginError, MemoryError, ValueError)
            kind = next((kind.__name__ for kind in kinds if isinstance(error, kind)), "RuntimeError")
            text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            said = {"kind": kind, "error": text}
        answer.write(json.dumps(said).encode())
        answer.flush()
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        os._exit(0)


def _killed(number: int, crash, file: str | Path) -> Exception:
    if number not in CRASHES:
        name = signal.Signals(number).name
        return ChildProcessError(f"the job's process was ended by {name}, perhaps for want of memory")
    crash.seek(0)
    frames = re.findall(r'File "([^"]+)", line (\d+) in (\S+)', crash.read().decode(errors="replace"))
    own = next((frame for frame in frames if same(frame[0], file)), None)
    where = f"{shown(file)} line {own[1]}, in {own[2]}" if own else shown(file)
    return PluginError(f"{where}: the process crashed ({CRASHES[number]})")


def end_with_parent() -> None:
    """On Linux, die when the process that forked this one does."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
