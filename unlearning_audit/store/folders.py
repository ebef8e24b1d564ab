"""Digests of folders with many files by their content, each file of which is read once as long as it stays as it is."""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from unlearning_audit.store.files import ArtifactError, sha256, write_text

#: Where it is kept which file held what, in the folder of results.
CONTENTS = Path("results", ".contents.json")

#: What a job's place says of the job itself, beside where data lie: on which terms plug-ins run, what files held when
#: the job was planned, and what it reads that other jobs made beside their own files.
OF_JOB = ("terms", "contents", "inputs")


def digest(folder: Path) -> str:
    """SHA-256 over the names and contents of all files below a folder, hexadecimal.

    A file whose size, times and place on the disk are those of the last time is not read again. Exchanging two files
    changes the latter two even where sizes and dates are equal.
    """
    cache = _cached()
    before = cache.get(key := str(folder.resolve()), {})
    now = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, status = str(path.relative_to(folder)), path.stat()
        stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        last = before.get(name)
        now[name] = [*stamp, last[-1] if last and last[:-1] == stamp else sha256(path)]
    if now != before and CONTENTS.parent.is_dir():
        with suppress(ArtifactError, OSError):
            present = {path: files for path, files in cache.items() if os.path.isdir(path)}
            write_text(CONTENTS, json.dumps({**present, key: now}))
    listing = "\n".join(f"{name}\0{entry[-1]}" for name, entry in now.items())
    return hashlib.sha256(listing.encode(errors="surrogateescape")).hexdigest()


def content(path: Path) -> str:
    """SHA-256 of a file's content, or `digest` of a folder."""
    return digest(path) if path.is_dir() else sha256(path)


def unchanged(contents: dict[str, str]) -> None:
    """Raise ValueError if a file or folder no longer has its `content`: what is made of it would be filed under the
    key of the old one. Paths at which there is nothing are left to who reads them."""
    for path, expected in contents.items():
        if Path(path).exists() and content(Path(path)) != expected:
            raise ValueError(f"{path}: this file has changed since the run began; start the run again")


def _cached() -> dict[str, dict[str, list[Any]]]:
    """Folder → file → size, times, number and digest; an entry of any other form is ignored."""
    try:
        if os.stat(CONTENTS).st_uid != os.getuid():
            return {}
        cache: dict[str, dict[str, list[Any]]] = json.loads(CONTENTS.read_text())
        assert all(isinstance(entry, list) and len(entry) == 5 for files in cache.values() for entry in files.values())
    except (OSError, ValueError, AttributeError, AssertionError):
        return {}
    return cache
