"""Runs a user's code in a process of its own, so that whatever it does there is a result and not the end of the job."""

import ctypes
import faulthandler
import json
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from unlearning_audit.plugins import descendants
from unlearning_audit.plugins.guard import (
    FOLDER,
    TOUCHED,
    MachineError,
    PluginError,
    blamed,
    end_process,
    faulty,
    printable,
    readable,
    same,
)
from unlearning_audit.plugins.output import MOST, Relay
from unlearning_audit.plugins.reads import Reads, unnamed

#: Signals by which code crashes, in words.
CRASHES = {
    signal.SIGSEGV: "segmentation fault",
    signal.SIGBUS: "bus error",
    signal.SIGILL: "illegal instruction",
    signal.SIGFPE: "arithmetic fault",
    signal.SIGABRT: "abort",
}

#: Kinds of errors that keep their kind across processes.
KINDS = (PluginError, MachineError, MemoryError, ValueError)

#: Exit status of a fork that could not send what it made.
UNSENT = 113

#: What was noticed about users' files in this process, in sentences: for the record of the job.
REMARKS: list[str] = []


def isolated(
    function: Callable[[], dict],
    file: str | Path,
    *,
    trace: bool = True,
    time_limit: float | None = None,
    declared: Collection[str | Path] | None = None,
    quiet: bool = False,
) -> dict:
    """What ``function`` returns, JSON values only, called in a fork of this process.

    ``time_limit``: seconds after which the fork is ended. ``declared``: files and folders on which keys depend, if
    others that ``file`` opens are to be remarked on. Processes that the fork leaves behind are ended, and of what it
    prints only the first part is passed on; both are remarked on, unless all of it is to be ``quiet``.

    Raises PluginError, with the place in ``file``, if the fork crashed, was ended by os._exit, by a signal to it alone
    or took too long, or if anything failed there after code of a user's file had run (see `guard`), or MachineError
    where the machine failed then or the fork was killed, as a system without memory does. `KINDS` of the function are
    raised here as well, others as RuntimeError; with ``trace``, their traceback is printed.
    """
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as crash, Relay(0 if quiet else MOST) as relay:
        with descendants.ended(file) as orphans:
            child = os.fork()
            if child == 0:
                _answer(function, answer, crash, relay, trace, file, declared)
            status = _wait(child, relay, time_limit)
            orphans.end()
        relay.drain()
        if not quiet:
            remark(orphans.sentence, relay.sentence(file))
        if status is None:
            raise PluginError(
                f"{readable(file)}: it was ended after {time_limit:g} s, its time_limit; make it faster or raise "
                "time_limit"
            )
        if os.WIFSIGNALED(status):
            raise _killed(os.WTERMSIG(status), crash, file)
        answer.seek(0)
        text = answer.read()
    code = os.WEXITSTATUS(status)
    if not text and code != UNSENT:
        raise PluginError(f"{readable(file)}: it ended the process with os._exit({code}); return or raise instead")
    return _received(text, file)


def _received(text: bytes, file: str | Path) -> dict:
    """What a fork returned, in the ``text`` that it sent; raises what it raised."""
    try:
        reply = json.loads(text)
        remarks, returned = [str(sentence) for sentence in reply["remarks"]], reply.get("returned")
        error = None if isinstance(returned, dict) else (reply["kind"], str(reply["error"]), [*reply["where"]])
    except (ValueError, LookupError, TypeError, AttributeError):
        raise PluginError(
            f"{readable(file)}: what it made could not be sent back; it changed how its process writes"
        ) from None
    remark(*remarks)
    if error is None:
        return returned
    kind, sentence, where = error
    if kind == "PluginError":
        raise PluginError(sentence, *where)
    kinds = {kind.__name__: kind for kind in KINDS}
    raise kinds.get(kind, RuntimeError)(sentence)


def apart(function: Callable[[], dict], file: str | Path | None, where: str, **terms) -> dict:
    """What ``function`` returns: of a user's ``file`` as `isolated` does, of the library's (None) as it is.

    ``where``: the field of the study that errors of a user's file begin with.
    """
    if file is None:
        return function()
    try:
        return isolated(function, file, **terms)
    except PluginError as error:
        raise PluginError(f"{where}: {error}", error.file, error.line, error.trace) from None


def _wait(child: int, relay: Relay, time_limit: float | None) -> int | None:
    """The status with which the child ended, while what it prints is passed on; None if it had to be ended."""
    end = None if time_limit is None else time.monotonic() + time_limit
    try:
        while True:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return status
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return None
            relay.follow(child, left)
    finally:
        with suppress(ProcessLookupError, ChildProcessError):
            if os.waitpid(child, os.WNOHANG) == (0, 0):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def _answer(function: Callable[[], dict], answer, crash, relay: Relay, trace: bool, file, declared) -> None:
    """In the fork: write what the function returned or raised, and end."""
    pid, code = os.getpid(), UNSENT
    try:
        FOLDER.append(os.getcwd())
        TOUCHED.clear()
        end_with_parent()
        os.setpgid(0, 0)  # what the code sends to its group stays with it
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends this process, and is no fault of the file
        relay.take_over()
        faulthandler.enable(crash)
        reads = None if declared is None else Reads()
        try:
            reply = {"returned": function()}
        except BaseException as error:
            if trace:
                with suppress(BaseException):  # the code may have exchanged what prints
                    traceback.print_exc()
            reply = _failure(error, file)
        reply["remarks"] = unnamed(reads.paths(), file, declared) if reads else []
        if os.getpid() == pid:  # and no copy that the code made of this process
            answer.write(json.dumps(reply).encode())
            answer.flush()
            code = 0
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        end_process(code)


def _failure(error: BaseException, file: str | Path) -> dict:
    """What is sent of an error: after code of a user's file has run, whatever is not the machine's is the file's."""
    if TOUCHED and not isinstance(error, (PluginError, MachineError)):
        if isinstance(error, ValueError):
            error = PluginError(str(error)) if faulty(error, file) else MachineError(str(error))
        elif isinstance(error, GeneratorExit) or faulty(error, file):
            error = blamed(error, file)
        else:
            error = MachineError(error, file)
    kind = next((kind.__name__ for kind in KINDS if isinstance(error, kind)), "RuntimeError")
    text = f"{type(error).__name__}: {error}" if kind == "RuntimeError" else str(error)
    where = (error.file, error.line, error.trace) if isinstance(error, PluginError) else ()
    return {"kind": kind, "error": printable(text), "where": where}


def remark(*sentences: str) -> None:
    """Keep what was noticed, and say it in the log and on the terminal."""
    for sentence in filter(None, sentences):
        REMARKS.append(sentence)
        for stream in {sys.stderr, sys.__stderr__}:
            with suppress(OSError, ValueError, AttributeError):
                print(f"\n{sentence}\n", file=stream, flush=True)


def _killed(number: int, crash, file: str | Path) -> Exception:
    if number == signal.SIGKILL:
        return MachineError("the job's process was ended by SIGKILL, perhaps for want of memory")
    if number not in CRASHES:
        time.sleep(1)  # whoever ends the job sends the same signal to this process, which does not outlive it
        return PluginError(f"{readable(file)}: the process that ran it was ended by {signal.Signals(number).name}")
    crash.seek(0)
    frames = re.findall(r'File "([^"]+)", line (\d+) in (\S+)', crash.read().decode(errors="replace"))
    inside = next((frame for frame in frames if same(frame[0], file)), None)
    where = f"{readable(file)} line {inside[1]}, in {inside[2]}" if inside else readable(file)
    return PluginError(f"{where}: the process crashed ({CRASHES[number]})")


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """On Linux, be sent a signal when the process that forked this one dies: by default, die as well."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG
