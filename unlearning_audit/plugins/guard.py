"""Turns what a plug-in raises into one sentence with file, line and function; errors of the machine stay as such."""

import errno
import os
import re
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: So many of the last calls are kept of an error, and so many characters of its text are looked at.
CALLS, LONGEST = 10, 10_000

LIBRARY = Path(__file__).resolve().parents[1]

#: What the system says when it, and no plug-in, is at its end. How many files a process may open at once (EMFILE) is
#: the system's limit for the library's code, while a user's file that reaches it has left them open.
EXHAUSTED = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EIO, errno.ENFILE, errno.EROFS, errno.ESTALE)

#: How messages about memory, and those of a card and its libraries, are known; torch raises RuntimeError for most.
MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "alloc_failed", "allocation_failed")
CARD = (
    "cuda error", "cuda driver", "nvidia driver", "cuda-capable", "cudnn", "cublas", "cusolver", "cusparse", "cufft",
    "nccl", "nvrtc", "hip error", "hipblas", "rocblas", "miopen", "unable to find an engine",
)  # fmt: skip

#: What code does wrong on a card, which no other machine would do better.
MISUSE = ("device-side assert", "stream is capturing", "deterministic")


#: Sizes in messages about memory.
SIZE = re.compile(r"([\d.]+) ?(bytes|[KMGTPE]iB)", re.IGNORECASE)
UNITS = {"bytes": 1, **{f"{letter}ib": 1 << 10 * power for power, letter in enumerate("kmgtpe", start=1)}}

#: The working directory of the job, in a process where a plug-in may change it.
FOLDER: list[str] = []

#: Users' files of which code has run in this process, so that nothing in it need be as it was.
TOUCHED: set[str] = set()

#: The end of a process, which a user's file may exchange for something else.
end_process = os._exit


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

    def __init__(self, error: BaseException | str, file: str | Path = "") -> None:
        super().__init__(
            error
            if isinstance(error, str)
            else f"{place(error, file)}: {_error_text(error)}. Memory, a disk or a card "
            "is at its end: free it, or give the job more, and run again; or leave this file out of the study"
        )


@contextmanager
def guard(file: str | Path, but: type[Exception] = PluginError) -> Iterator[None]:
    """Raise PluginError for everything that code of the plug-in in ``file`` raises, its calls of sys.exit included.

    Memory that is used up, a full disk and an interruption are not the plug-in's fault, and are raised as they are; so
    is ``but``. A copy of the process that the code made with os.fork ends here. The working directory is afterwards
    what it was, because paths of a job are relative to it.
    """
    process, folder = os.getpid(), os.getcwd()
    if not in_library(file):
        TOUCHED.add(str(file))
    try:
        yield
    except BaseException as error:
        if os.getpid() != process:
            end_process(1)
        if isinstance(error, (PluginError, but)) or not faulty(error, file):
            raise
        raise blamed(error, file) from error
    finally:
        if os.getpid() == process:
            os.chdir(folder)
    if os.getpid() != process:
        end_process(0)


def blamed(error: BaseException, file: str | Path) -> PluginError:
    """An error as the failure of a plug-in's file: the place and the words; the calls that led there, if they are
    known."""
    trace = ""
    with suppress(Exception):  # the code may have exchanged what tells them
        trace = printable("".join(traceback.format_exception(error, limit=-CALLS)).strip(), ends=True)
    try:
        return PluginError(f"{place(error, file)}: {_error_text(error)}", readable(file), line(error, file), trace)
    except Exception:
        return PluginError(f"{readable(file)}: {_error_text(error)}", readable(file), 0, trace)


def faulty(error: BaseException, file: str | Path | None = None) -> bool:
    """Whether an error is the fault of the code in ``file`` that raised it, and not of the machine or of who runs it.

    Where nothing is said of a ``file``, the code is the library's.
    """
    if isinstance(error, KeyboardInterrupt):  # where Ctrl-C ends the process, only the code can have raised it
        return signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    if isinstance(error, GeneratorExit):
        return False
    if isinstance(error, MemoryError):
        return _beyond_machine(str(error))
    if isinstance(error, OSError):
        limits = (*EXHAUSTED, errno.EMFILE) if file is None or in_library(file) else EXHAUSTED
        return error.errno not in limits
    if isinstance(error.__cause__, OSError):
        return faulty(error.__cause__, file)
    return not (isinstance(error, RuntimeError) and of_machine(str(error))) or _beyond_machine(str(error))


def _beyond_machine(text: str) -> bool:
    """Whether a message says that more memory was asked for at once than the whole machine has."""
    if "cuda" in text.lower() or not (size := SIZE.search(text)):
        return False
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return float(size[1].strip(".") or 0) * UNITS[size[2].lower()] > machine


def of_machine(text: str) -> bool:
    """Whether the message of a RuntimeError says that memory is used up, or that a card or its libraries failed.

    A card that is busy, has lost its driver or has no kernels for an operation fails whatever code it runs; an index
    out of range and an operation that a recording forbids fail on every card.
    """
    text = text.lower()
    if any(words in text for words in MEMORY):
        return True
    return any(words in text for words in CARD) and not any(words in text for words in MISUSE)


def used_up(error: BaseException | None) -> bool:
    """Whether memory is used up, a card's or the machine's: by the error itself or by the one that it came from, as
    where a recording ends for want of memory and torch says that it ended."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        if isinstance(error, MemoryError) or (
            isinstance(error, RuntimeError) and any(words in str(error).lower() for words in MEMORY)
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def place(error: BaseException, file: str | Path) -> str:
    """ "my_method.py line 12, in unlearn": where in ``file`` an error came from; if none of its lines was running, the
    file and where it was raised."""
    frames, inside = _frames(error, file)
    if not (inside or frames):
        return readable(file)
    frame = (inside or [frame for frame in frames if not in_library(frame.filename)] or frames)[-1]
    where = f"line {frame.lineno}, in {frame.name.strip('<>')}"
    return f"{readable(file)} {where}" if inside else f"{readable(file)}: {Path(frame.filename).name} {where}"


def line(error: BaseException, file: str | Path) -> int:
    """The line of ``file`` that was running when an error was raised; 0 if none was."""
    _, inside = _frames(error, file)
    return inside[-1].lineno if inside else 0


def readable(file: str | Path) -> str:
    """A file as people know it: ours by its room, others relative to the working directory where that is shorter."""
    path = Path(_folder(), file).resolve()
    if in_library(path):
        return str(path.relative_to(LIBRARY))
    return min(os.path.relpath(path, _folder()), str(path), key=len)


def in_library(file: str | Path) -> bool:
    """Whether a file belongs to the library."""
    return Path(file).resolve().is_relative_to(LIBRARY)


def same(first: str | Path, second: str | Path) -> bool:
    """Whether two paths name one file."""
    return os.path.realpath(os.path.join(_folder(), first)) == os.path.realpath(os.path.join(_folder(), second))


def _folder() -> str:
    """The working directory, or what it was before a plug-in could change it."""
    return FOLDER[-1] if FOLDER else os.getcwd()


def type_of(value: object) -> str:
    """What a plug-in gave back, in a word or two."""
    if value is None:
        return "None"
    shape = getattr(value, "shape", None)
    kind = type(value).__name__
    return kind if shape is None else f"{kind} of {getattr(value, 'dtype', '')} with shape {tuple(shape)}"


def _frames(error: BaseException, file: str | Path) -> tuple[list, list]:
    frames = traceback.extract_tb(error.__traceback__)
    return frames, [frame for frame in frames if same(frame.filename, file)]


def _error_text(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        call = f"it called sys.exit({'' if error.code is None else repr(error.code)})"
        return "; ".join([call, *map(str, getattr(error, "__notes__", ()))])
    text = printable(" ".join(_text(error)[:LONGEST].split()))
    text = text if len(text) <= 300 else f"{text[:297]}..."
    if isinstance(error, StopIteration) and not text:
        text = "next() was called on a loader or iterator that has nothing left; start a new one with iter()"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _text(error: BaseException) -> str:
    """The error's own words, which a class of its own may refuse."""
    try:
        return str(error)
    except Exception:
        return ""


def printable(text: str, *, ends: bool = False) -> str:
    """``text`` without what would move the cursor or colour a terminal: such characters as Python writes them. Spaces
    stand in place of ends of lines, unless these stay (``ends``)."""

    def escape(c: str) -> str:
        return c if c.isprintable() or (ends and c == "\n") else " " if c.isspace() else repr(c)[1:-1]

    return "".join(map(escape, text))
