"""Output that fails nothing: where nobody reads on, or a disk is full, what is printed is lost."""

import errno
import os
import sys
from typing import TextIO


class Lossy:
    """A stream of text whose reader may leave, or whose disk may be full: what is written then is lost, and nothing
    fails by it. ``problem``: why, where it is another reason than that nobody reads on."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.problem = stream, ""

    def __getattr__(self, name: str):
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """As of the stream."""
        try:
            return self.stream.write(text)
        except OSError as error:
            self._lose(error)
            return len(text)

    def flush(self) -> None:
        """As of the stream."""
        try:
            self.stream.flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        """Where a pipe or a terminal has gone, jobs that start from now on write to nowhere, too."""
        if error.errno in (errno.EPIPE, errno.EIO):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)
        else:
            self.problem = os.strerror(error.errno) if error.errno else str(error)


def tolerant(stream: TextIO | None) -> TextIO | Lossy | None:
    """A stream that is `Lossy`; None where it is closed."""
    return stream if isinstance(stream, Lossy | None) else Lossy(stream)


def standard() -> None:
    """Let nothing fail that this process prints to its standard output or standard error."""
    sys.stdout, sys.stderr = tolerant(sys.stdout), tolerant(sys.stderr)


def problem() -> str:
    """Why what this process printed to its standard output is not there; "" if it is, or if nobody reads it."""
    if sys.stdout is not None:
        sys.stdout.flush()
    return getattr(sys.stdout, "problem", "")
