"""Passes on what a fork prints, up to a limit."""

import codecs
import os
import select
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from unlearning_audit.plugins.guard import readable

#: Bytes of what a fork prints that are passed on.
MOST = 1 << 20


class Relay:
    """Two pipes in place of standard output and standard error of a fork; what comes through them is written to those
    of this process, the first ``most`` bytes of it."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.pipes = {name: os.pipe() for name in ("stdout", "stderr")}
        self.open = {reading: name for name, (reading, _) in self.pipes.items()}
        self.size = 0
        # A character may come in two parts.
        self.decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in self.pipes}

    def __enter__(self) -> "Relay":
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self.pipes.values():
            for end in pipe:
                with suppress(OSError):
                    os.close(end)

    def take_over(self) -> None:
        """In the fork: let all that is printed go into the pipes, by Python, by libraries and by other programs."""
        for number, (name, (reading, writing)) in enumerate(self.pipes.items(), start=1):
            os.close(reading)
            for stream in (getattr(sys, name), getattr(sys, f"__{name}__")):
                with suppress(OSError, ValueError, AttributeError):
                    os.dup2(writing, stream.fileno())
            os.dup2(writing, number)
            os.close(writing)

    def follow(self, child: int, seconds: float | None) -> None:
        """Pass on what comes until the child ends, or so many seconds are over."""
        try:
            handle = os.pidfd_open(child)
        except (AttributeError, OSError):  # not Linux, or an old one
            self._pass(select.select(list(self.open), [], [], 0.05)[0])
            return
        try:
            ready = select.select([handle, *self.open], [], [], seconds)[0]
        finally:
            os.close(handle)
        self._pass([stream for stream in ready if stream != handle])

    def drain(self) -> None:
        """Pass on the rest of the output when its writers have ended."""
        for _, writing in self.pipes.values():
            os.close(writing)
        while ready := select.select(list(self.open), [], [], 0)[0] if self.open else []:
            self._pass(ready)

    def sentence(self, file: str | Path) -> str:
        """What was not passed on, if anything was not."""
        if self.size <= self.most:
            return ""
        printed, limit = (f"{size / 1e6:.0f} MB" for size in (self.size, self.most))
        return f"{readable(file)}: it printed {printed}, of which the first {limit} are kept"

    def _pass(self, ready: list[int]) -> None:
        for reading in ready:
            text = os.read(reading, 1 << 16)
            if not text:
                name = self.open.pop(reading)
                _write(getattr(sys, name), self.decoders[name].decode(b"", final=True))
                continue
            rest = max(0, self.most - self.size)
            self.size += len(text)
            name = self.open[reading]
            _write(getattr(sys, name), self.decoders[name].decode(text[:rest]))


def _write(stream: TextIO, text: str) -> None:
    with suppress(OSError, ValueError):
        stream.write(text)
        stream.flush()
