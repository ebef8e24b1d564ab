"""One run at a time writes a folder of results, also where several clones share it."""

import contextlib
import fcntl
import os
import platform
from pathlib import Path
from typing import IO

#: Held until the process ends, however it ends.
_locks: list[IO[str]] = []


def hold(folder: str | Path = "results") -> None:
    """Keep other runs from ``folder`` until this process ends. Raises ValueError, which names it, if one is there.

    Snakemake locks the folder in which it runs; where ``folder`` is shared by link, its runs know nothing of each
    other, and each removes the files that it is going to write while the other reads them. A file system without
    locks, or a folder that cannot be written yet, prevents no run.
    """
    try:
        lock = (Path(folder) / ".lock").open("a+", encoding="utf-8")
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        writer = lock.read().strip() or "another run"
        raise ValueError(
            f"{Path(folder).resolve()}: {writer} writes these results; run this again when that has ended, only what "
            "is missing will be made"
        ) from None
    except OSError:
        return
    _locks.append(lock)
    with contextlib.suppress(OSError):
        lock.truncate(0)
        lock.write(f"the run in {Path.cwd()} (process {os.getpid()} on {platform.node()})\n")
        lock.flush()
