"""Runs a user's code in a process of its own, so that whatever it does there is a result and not the end of the job."""

import ctypes
import faulthandler
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import connection
from pathlib import Path
from typing import Any

from unlearning_audit.plugins.guard import MachineError, PluginError, of_machine, readable

#: Kinds of errors that keep their kind across processes.
KINDS = (PluginError, MachineError, ValueError, RuntimeError)

#: What was noticed about users' files in this process, in sentences: for the record of the job.
REMARKS: list[str] = []


def isolated(
    function: Callable[[], dict[str, Any]], file: str | Path, *, trace: bool = True, time_limit: float | None = None
) -> dict[str, Any]:
    """What ``function`` returns, plain values and arrays, called in a fork of this process.

    ``time_limit``: seconds after which the fork is ended. With ``trace``, the traceback of an error is printed.

    Raises PluginError if the fork crashed, ended itself or took too long, MachineError where memory, a disk or a card
    failed, ValueError as the function does, and RuntimeError for any other error.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(function, there, trace))
    process.start()
    there.close()
    try:
        if not connection.wait([here, process.sentinel], time_limit):
            problem = f"it was ended after {time_limit:g} s, its time_limit; make it faster or raise time_limit"
            raise PluginError(f"{readable(file)}: {problem}")
        try:
            reply = here.recv() if here.poll() else None
        except EOFError:
            reply = None
        if not reply:
            process.join()
            raise _ended(process.exitcode or 0, file)
    finally:
        process.kill()
        process.join()
        here.close()
    if "returned" in reply:
        return dict(reply["returned"])
    raise reply["kind"](*reply["error"])


def apart(
    function: Callable[[], dict[str, Any]], file: str | Path | None, where: str, *, time_limit: float | None = None
) -> dict[str, Any]:
    """What ``function`` returns: of a user's ``file`` as `isolated` does, of the library's (None) as it is.

    ``where``: the field of the study that errors of a user's file begin with.
    """
    if file is None:
        return function()
    try:
        return isolated(function, file, time_limit=time_limit)
    except PluginError as error:
        raise PluginError(f"{where}: {error}", error.file, error.line, error.trace) from None


def remark(sentence: str) -> None:
    """Keep what was noticed, if anything was, and say it in the log and on the terminal."""
    if sentence:
        REMARKS.append(sentence)
        for stream in {sys.stderr, sys.__stderr__} - {None}:
            print(f"\n{sentence}\n", file=stream, flush=True)


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """On Linux, be sent a signal when the process that forked this one dies: by default, die as well."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG


def _send(function: Callable[[], dict[str, Any]], there: connection.Connection, trace: bool) -> None:
    """In the fork: send what the function returned or raised, and end without taking libraries down."""
    end_with_parent()
    with suppress(OSError, ValueError, AttributeError):  # where standard error is no file
        faulthandler.enable(sys.stderr)
    try:
        reply: dict[str, Any] = {"returned": function()}
    except BaseException as error:
        if trace:
            traceback.print_exc()
        reply = _failure(error)
    sys.stdout.flush()
    sys.stderr.flush()
    there.send(reply)
    os._exit(0)


def _failure(error: BaseException) -> dict[str, Any]:
    if isinstance(error, PluginError):
        return {"kind": PluginError, "error": [str(error), error.file, error.line, error.trace]}
    kind = next((kind for kind in KINDS if isinstance(error, kind)), RuntimeError)
    text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    if of_machine(error):
        advice = "Memory, a disk or a card is at its end: free it, or give the job more, and run again"
        kind, text = MachineError, f"{text}. {advice}; or leave this file out of the study"
    return {"kind": kind, "error": [text]}


def _ended(code: int, file: str | Path) -> Exception:
    """Why a fork sent nothing, by its exit status: negative for a signal."""
    if code == -signal.SIGKILL:
        return MachineError("the job's process was ended by SIGKILL, perhaps for want of memory")
    if code < 0:
        name = signal.Signals(-code).name
        return PluginError(f"{readable(file)}: the process crashed ({name}); log.txt has the calls")
    return PluginError(f"{readable(file)}: it ended the process with os._exit({code}); return or raise instead")
