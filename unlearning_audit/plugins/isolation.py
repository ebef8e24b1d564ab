"""Run a user's code in a process of its own, so that a crash there is a result and does not end the job."""

import ctypes
import faulthandler
import multiprocessing
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from unlearning_audit.plugins.guard import MachineError, PluginError, of_machine, readable
from unlearning_audit.store.files import NoAnswerError


def isolated(
    function: Callable[[], dict[str, Any]],
    file: str | Path | None,
    *,
    where: str = "",
    trace: bool = True,
    time_limit: float | None = None,
) -> dict[str, Any]:
    """Call ``function`` in a fork of this process, and return the plain values and arrays that it returns.

    The traceback of an error that becomes RuntimeError is always printed, and with ``trace`` that of every error.

    Raises PluginError if the fork crashed, ended itself or took too long, MachineError where memory, a disk or a card
    failed, NoAnswerError and ValueError as the function does, and RuntimeError for any other error.

    Parameters
    ----------
    file
        The user's file whose code the function runs; with None, only code of the library is run, and the function is
        called in this process.
    where
        The field of the study that errors of the file begin with.
    time_limit
        Seconds after which the fork is ended.
    """
    if file is None:
        return function()
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(function, sending, trace))
    process.start()
    sending.close()  # only the fork holds this end, so that its death ends the waiting below
    reply: Any  # what the function returned, or the error that is raised in its place
    try:
        problem = f"it was stopped after its time_limit of {time_limit or 0:g} s; make it faster or raise time_limit"
        reply = receiving.recv() if receiving.poll(time_limit) else PluginError(f"{readable(file)}: {problem}")
    except EOFError:  # the fork ended without a reply
        process.join()
        reply = _ended(process.exitcode or 0, file)
    finally:
        process.kill()
        process.join()
        receiving.close()
    if isinstance(reply, PluginError) and where:
        raise PluginError(f"{where}: {reply}", reply.file, reply.line, reply.trace)
    if isinstance(reply, Exception):
        raise reply
    return dict(reply)


def _send(function: Callable[[], dict[str, Any]], sending: Connection, trace: bool) -> None:
    """Call the ``function`` and send its result to the parent process; this runs in the fork that `isolated` starts.

    If the function raises an error, the error is sent in place of a result, as a type that the parent process knows.

    Parameters
    ----------
    sending
        The end of the pipe to write to.
    trace
        Whether to print the traceback of every error, and not only of one that becomes RuntimeError.
    """
    with suppress(AttributeError):  # only Linux lets a process end with its parent
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: else a killed job would leave this one behind
    with suppress(OSError, ValueError, AttributeError):  # where standard error is no file
        faulthandler.enable(sys.stderr)
    reply: dict[str, Any] | Exception
    try:
        reply = function()
    except BaseException as error:
        text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        if isinstance(error, (PluginError, MachineError, NoAnswerError)):
            reply = error
        elif of_machine(error):
            advice = "Memory, a disk or a GPU is full: free some, or give the job more, and run again"
            reply = MachineError(f"{text}. {advice}; or leave this file out of the study")
        else:
            reply = ValueError(text) if isinstance(error, ValueError) else RuntimeError(text)
        if trace or isinstance(reply, RuntimeError):
            traceback.print_exc()
    sys.stdout.flush()  # the parent kills this process as soon as it has the reply
    sending.send(reply)


def _ended(code: int, file: str | Path) -> Exception:
    """Return the error for a fork that sent nothing, by its exit status ``code``, which is negative for a signal."""
    if code == -signal.SIGKILL:
        return MachineError("the job's process was killed (SIGKILL), perhaps because memory ran out")
    how = f"crashed ({signal.Signals(-code).name}); log.txt has the calls" if code < 0 else f"ended itself ({code})"
    return PluginError(f"{readable(file)}: the process {how}")
