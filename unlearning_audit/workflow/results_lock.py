"""One run at a time works in a folder, and writes a folder of results, also where several clones share it."""

import contextlib
import fcntl
import os
import platform
from pathlib import Path
from typing import IO

#: Held until the process ends, however it ends.
_locks: list["Lock"] = []


class Lock:
    """A lock that this process holds until it frees it or ends, however it ends; its ``file`` says whose it is, or was
    when that run was killed."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file

    @property
    def holder(self) -> str:
        """Who signed it last, and did not free it; "" if nobody did."""
        self.file.seek(0)
        return self.file.read().strip()

    def is_left_here(self) -> bool:
        """Whether who signed it last was a run in this folder on this machine, which did not come to free it."""
        return self.holder.startswith(f"the run in {Path.cwd()} (process ") and self.holder.endswith(
            f" on {platform.node()})"
        )

    def sign(self) -> None:
        """Write down that this process holds it."""
        with contextlib.suppress(OSError):
            self.file.truncate(0)
            self.file.write(f"the run in {Path.cwd()} (process {os.getpid()} on {platform.node()})\n")
            self.file.flush()

    def free(self) -> None:
        """Let others have it."""
        with contextlib.suppress(OSError):
            self.file.truncate(0)
        self.file.close()


def take(folder: str | Path, name: str = ".lock") -> Lock | None:
    """The lock of ``folder``, in its file ``name``. Raises ValueError, which names it, if another run holds it. A file
    system without locks, or a folder that cannot be written yet, has none."""
    try:
        file = (Path(folder) / name).open("a+", encoding="utf-8")
    except OSError:
        return None
    lock = Lock(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(
            f"{Path(folder).resolve()}: {lock.holder or 'another run'} writes these results; run this again when that "
            "has ended, only what is missing will be made"
        ) from None
    except OSError:
        return None
    return lock


def hold(folder: str | Path = "results") -> None:
    """Keep other runs from ``folder`` until this process ends. Raises ValueError, which names it, if one is there.

    Snakemake locks the folder in which it runs; where ``folder`` is shared by link, its runs know nothing of each
    other, and each removes the files that it is going to write while the other reads them. Without a lock (`take`) no
    run is prevented.
    """
    if lock := take(folder):
        lock.sign()
        _locks.append(lock)
