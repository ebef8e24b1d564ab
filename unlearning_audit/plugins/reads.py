"""Which files code opens, as the interpreter reports it, and which of them a study does not know of."""

import os
import sys
import sysconfig
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from stat import S_ISREG

import unlearning_audit
from unlearning_audit.plugins.guard import FOLDER, readable

#: Files named in a sentence; of more, their number is said.
MOST_FILES = 3

#: What opens a file to write.
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT

#: Folders of what is installed, whose files have versions of their own; also those of an environment below this one, as
#: ``uv run --with`` and virtual environments that see the system's packages have it.
INSTALLED = tuple(
    os.path.join(path, "")
    for path in {
        sys.prefix, sys.base_prefix, *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")),
        *(path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")),
    }
)  # fmt: skip

#: Folders of the system.
SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/lib/", "/usr/lib/", "/usr/share/")


class Reads:
    """Files that this process opens to read from now on; until it ends, because such a hook cannot be taken away."""

    def __init__(self) -> None:
        self.start, self._paths = time.time(), {}
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple) -> None:
        if event == "open" and isinstance(arguments[0], str) and not (arguments[2] or 0) & WRITES:
            self._paths[os.path.abspath(arguments[0])] = None

    def paths(self) -> list[str]:
        """Those that are still there and were there before."""
        return [path for path in tuple(self._paths) if self._older(path)]

    def _older(self, path: str) -> bool:
        try:
            status = os.stat(path)
        except OSError:
            return False
        return S_ISREG(status.st_mode) and status.st_ctime < self.start


def unnamed(paths: Iterable[str], file: str | Path, declared: Collection[str | Path]) -> list[str]:
    """A sentence about those of the ``paths`` that ``file`` opened and no key depends on, if there are any.

    ``declared``: files and folders on which keys depend. Left out are files of the system and of the library, results,
    what is installed, and hidden folders, such as caches (one that holds the working directory hides nothing).
    """
    folder = os.path.join(os.path.realpath(os.path.join(*FOLDER[-1:], "")), "")
    places = {os.path.realpath(os.path.join(*FOLDER[-1:], path)) for path in (file, *declared)}
    root = os.path.realpath(unlearning_audit.ROOT)
    library = [os.path.join(root, name, "") for name in ("scripts", "rules", "resources", "unlearning_audit")]
    results = os.path.join(os.path.realpath(os.path.join(*FOLDER[-1:], "results")), "")
    skipped = (*SYSTEM, *INSTALLED, *library, results)
    strange = [path for path in sorted({os.path.realpath(path) for path in paths})
               if not path.startswith(skipped) and "/." not in f"/{path.removeprefix(folder)}"
               and places.isdisjoint({path, *map(str, Path(path).parents)})]  # fmt: skip
    if not strange:
        return []
    names = ", ".join(readable(path) for path in strange[:MOST_FILES])
    more = f" and {len(strange) - MOST_FILES} other files" if len(strange) > MOST_FILES else ""
    return [
        f"{readable(file)}: it reads {names}{more}, and an edit there renews no result; "
        f"name what it reads in the study, such as depends: [{readable(strange[0])}]"
    ]
