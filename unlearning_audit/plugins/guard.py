"""Turns what a plug-in raises into one sentence with file, line and function."""

import errno
import os
import textwrap
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: So many of the last calls are kept of an error, and so many characters of its text.
CALLS, LONGEST = 10, 300

LIBRARY = Path(__file__).resolve().parents[1]

#: What the system says when it, and no plug-in, is at its end.
EXHAUSTED = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EIO, errno.ENFILE, errno.EMFILE, errno.EROFS)

#: How torch, which raises RuntimeError, says that memory is used up or that the card or its driver failed.
MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "alloc_failed", "allocation_failed")
CARD = ("cuda error", "cuda driver", "nvidia driver", "cudnn", "cublas", "hip error")


class PluginError(ValueError):
    """A plug-in did not do what it promises: it raised, gave back something else, or ended the process.

    That is a result about the plug-in, which the study reports, and no reason to stop everything else. ``file`` and
    ``line`` (0 = unknown) say where, ``trace`` holds the calls that led there, "" if there were none.
    """

    def __init__(self, sentence: str, file: str = "", line: int = 0, trace: str = "") -> None:
        super().__init__(sentence)
        self.file, self.line, self.trace = file, line, trace


class MachineError(ValueError):
    """Memory, a disk or a card was at its end while a user's file ran: no result about the file, and worth another
    run."""


@contextmanager
def guard(file: str | Path, but: type[Exception] = PluginError) -> Iterator[None]:
    """Raise PluginError for everything that code of the plug-in in ``file`` raises, its calls of sys.exit included.

    What the machine is to blame for, an interruption and ``but`` are raised as they are.
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
        line = inside[-1].lineno or 0 if inside else 0
        where = f" line {line}, in {inside[-1].name.strip('<>')}" if inside else ""
        trace = "".join(traceback.format_exception(error, limit=-CALLS)).strip()
        sentence = f"{readable(file)}{where}: {_error_text(error)}"
        raise PluginError(sentence, readable(file), line, trace) from error


def of_machine(error: BaseException) -> bool:
    """Whether memory, a disk or a card failed, and not the code that raised the error."""
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
    if isinstance(cause, OSError):
        return cause.errno in EXHAUSTED
    text = str(error).lower() if isinstance(error, RuntimeError) else ""
    said = any(words in text for words in (*MEMORY, *CARD)) and "device-side assert" not in text
    return said or isinstance(error, MemoryError)


def readable(file: str | Path) -> str:
    """A file as people know it: ours by its room, others relative to the working directory where that is shorter."""
    path = Path(file).resolve()
    if in_library(path):
        return str(path.relative_to(LIBRARY))
    return min(os.path.relpath(path), str(path), key=len)


def in_library(file: str | Path) -> bool:
    """Whether a file belongs to the library."""
    return Path(file).resolve().is_relative_to(LIBRARY)


def type_of(value: object) -> str:
    """What a plug-in gave back, in a word or two."""
    shape, kind = getattr(value, "shape", None), type(value).__name__.removesuffix("Type")
    return kind if shape is None else f"{kind} of {getattr(value, 'dtype', '')} with shape {tuple(shape)}"


def _error_text(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it called sys.exit({'' if error.code is None else repr(error.code)})"
    text = textwrap.shorten(str(error), LONGEST, placeholder=" …")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
