"""Turns whatever a plug-in raises into one sentence with its file, line and function; not what the machine does."""

import errno
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[1]

#: What the system says when it, and no plug-in, is at its end.
EXHAUSTED = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EIO, errno.EMFILE, errno.ENFILE, errno.EROFS, errno.ESTALE)


class PluginError(ValueError):
    """A plug-in did not do what it promises: it raised, gave back something else, or ended the process.

    That is a result about the plug-in, which the study reports, and no reason to stop everything else.
    """


@contextmanager
def guard(file: str | Path, but: type[Exception] = PluginError) -> Iterator[None]:
    """Raise PluginError for everything that code of the plug-in in ``file`` raises, its calls of sys.exit included.

    Memory that is used up, a full disk and an interruption are not the plug-in's fault, and are raised as they are; so
    is ``but``.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, (PluginError, but)) or not faulty(error):
            raise
        raise PluginError(f"{place(error, file)}: {_what(error)}") from error


def faulty(error: BaseException) -> bool:
    """Whether an error is the fault of the code that raised it, and not of the machine or of who runs it."""
    if isinstance(error, (KeyboardInterrupt, GeneratorExit, MemoryError)):
        return False
    if isinstance(error, OSError):
        return error.errno not in EXHAUSTED
    text = str(error).lower()
    memory = "out of memory" in text or "not enough memory" in text or "can't allocate memory" in text
    return not (isinstance(error, RuntimeError) and memory)


def place(error: BaseException, file: str | Path) -> str:
    """ "my_method.py line 12, in unlearn": where in ``file`` an error came from; if none of its lines was running, the
    file and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if same(frame.filename, file)]
    if not (own or frames):
        return shown(file)
    frame = (own or frames)[-1]
    where = f"line {frame.lineno}, in {frame.name.strip('<>')}"
    return f"{shown(file)} {where}" if own else f"{shown(file)}: {Path(frame.filename).name} {where}"


def shown(file: str | Path) -> str:
    """A file as people know it: ours by its room, others relative to the working directory where that is shorter."""
    path = Path(file).resolve()
    if ours(path):
        return str(path.relative_to(LIBRARY))
    return min(os.path.relpath(path), str(path), key=len)


def ours(file: str | Path) -> bool:
    """Whether a file belongs to the library."""
    return Path(file).resolve().is_relative_to(LIBRARY)


def same(one: str | Path, other: str | Path) -> bool:
    """Whether two paths name one file."""
    return os.path.realpath(one) == os.path.realpath(other)


def said(value: object) -> str:
    """What a plug-in gave back, in a word or two."""
    if value is None:
        return "None"
    shape = getattr(value, "shape", None)
    kind = type(value).__name__
    return kind if shape is None else f"{kind} of {getattr(value, 'dtype', '')} with shape {tuple(shape)}"


def _what(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it called sys.exit({'' if error.code is None else repr(error.code)})"
    text = " ".join(str(error).split())
    text = text if len(text) <= 300 else f"{text[:297]}..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
