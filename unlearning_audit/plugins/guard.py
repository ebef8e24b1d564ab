"""Turn an error in a plug-in into one sentence with file, line and function."""

import errno
import os
import textwrap
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: How many of an error's last calls are kept, and how many characters of its text.
CALLS, LONGEST = 10, 300

LIBRARY = Path(__file__).resolve().parents[1]

#: Errors of the system for exhausted memory or disks, which are not a plug-in's fault.
EXHAUSTED = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EIO, errno.ENFILE, errno.EMFILE, errno.EROFS)

#: Texts of torch's RuntimeErrors for exhausted memory, and for a graphics card or driver that failed.
OUT_OF_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "alloc_failed", "allocation_failed")
CARD_FAILED = ("cuda error", "cuda driver", "nvidia driver", "cudnn", "cublas", "hip error")


class PluginError(ValueError):
    """An error of a plug-in: it raised an exception, returned something of the wrong type or shape, or ended the
    process.

    The study reports it as a result on the plug-in, and the other jobs continue. ``file`` and ``line`` (0 = unknown)
    locate the error; ``trace`` holds the calls that led there, "" if there are none.
    """

    def __init__(self, sentence: str, file: str = "", line: int = 0, trace: str = "") -> None:
        super().__init__(sentence)
        self.file, self.line, self.trace = file, line, trace


class MachineError(ValueError):
    """An error of the machine while a user's file ran: memory, a disk or a graphics card was exhausted or failed. It
    says nothing about the file, and the job can be run again."""


@contextmanager
def guard(file: str | Path, but: type[Exception] = PluginError) -> Iterator[None]:
    """Raise PluginError for any exception within the context, wherever it is raised, calls of sys.exit included.

    Errors of the machine, interruptions and exceptions of the type ``but`` are raised unchanged. The sentence names the
    plug-in's ``file``, and the last line of it that the error passed, if there is one.
    """
    try:
        yield
    except (PluginError, but, KeyboardInterrupt):
        raise
    except BaseException as error:
        if of_machine(error):
            raise
        calls = traceback.extract_tb(error.__traceback__)
        inside = [call for call in calls if os.path.realpath(call.filename) == os.path.realpath(file)]
        line = (inside[-1].lineno or 0) if inside else 0
        where = f" line {line}, in {inside[-1].name.strip('<>')}" if inside else ""
        trace = "".join(traceback.format_exception(error, limit=-CALLS)).strip()  # a negative limit: the last calls
        sentence = f"{readable(file)}{where}: {_error_text(error)}"
        raise PluginError(sentence, readable(file), line, trace) from error


def of_machine(error: BaseException) -> bool:
    """Return whether an error comes from memory, a disk or a graphics card, and not from the code that raised it."""
    # A full disk may be reported by another error that was raised from it.
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
    if isinstance(cause, OSError):
        return cause.errno in EXHAUSTED
    text = str(error).lower() if isinstance(error, RuntimeError) else ""
    # A device-side assert is an error of the code, such as a label that is too large, although CUDA reports it.
    machine_failed = any(words in text for words in (*OUT_OF_MEMORY, *CARD_FAILED)) and "device-side assert" not in text
    return machine_failed or isinstance(error, MemoryError)


def readable(file: str | Path) -> str:
    """Return a file's path for a message: of a file in the library, the path below the library's folder; of any other
    file, the relative or the absolute path, whichever is shorter."""
    path = Path(file).resolve()
    if in_library(path):
        return str(path.relative_to(LIBRARY))
    return min(os.path.relpath(path), str(path), key=len)


def in_library(file: str | Path) -> bool:
    """Return whether a file belongs to the library."""
    return Path(file).resolve().is_relative_to(LIBRARY)


def type_of(value: object) -> str:
    """Return the type of a plug-in's result for a message, with dtype and shape for an array."""
    # None is shown as "None", although its type is NoneType.
    shape, kind = getattr(value, "shape", None), type(value).__name__.removesuffix("Type")
    return kind if shape is None else f"{kind} of {getattr(value, 'dtype', '')} with shape {tuple(shape)}"


def _error_text(error: BaseException) -> str:
    """Return an error's type and text in one line, cut at `LONGEST` characters."""
    if isinstance(error, SystemExit):
        return f"it called sys.exit({'' if error.code is None else repr(error.code)})"
    text = textwrap.shorten(str(error), LONGEST, placeholder=" …")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
