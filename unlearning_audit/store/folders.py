"""Hashes of folders by their content. A file is read again only if it has changed."""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from unlearning_audit.store.files import ArtifactError, sha256, write_text

#: The file of known hashes, in the folder of results.
CONTENTS = Path("results", ".contents.json")

#: Entries of a job's place that do not say where data lie: the limits under which plug-ins run, the hashes of files
#: when the job was planned, and inputs that other jobs made.
OF_JOB = ("terms", "contents", "inputs")


def digest(folder: Path) -> str:
    """Return the SHA-256 over the names and contents of all files below a folder, hexadecimal.

    A file whose size, times and inode are as in the file of known hashes (`CONTENTS`) is not read again; new hashes are
    added to that file. Two files of equal size and date that were exchanged are read again, as their inodes changed.
    """
    cache: dict[str, dict[str, list[Any]]] = {}  # folder → file → size, times, inode and hash
    with suppress(OSError, ValueError):  # there may be no such file yet
        cache |= json.loads(CONTENTS.read_text())
    key = str(folder.resolve())
    before, now = cache.get(key, {}), {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, status = str(path.relative_to(folder)), path.stat()
        stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        *last_stamp, last_hash = before.get(name, [None])
        now[name] = [*stamp, last_hash if last_stamp == stamp else sha256(path)]
    if now != before and CONTENTS.parent.is_dir():
        with suppress(ArtifactError, OSError):  # without that file, hashes are only computed again
            present = {path: files for path, files in cache.items() if os.path.isdir(path)}
            write_text(CONTENTS, json.dumps({**present, key: now}))
    listing = "\n".join(f"{name}\0{entry[-1]}" for name, entry in now.items())  # an entry ends with the file's hash
    return hashlib.sha256(listing.encode(errors="surrogateescape")).hexdigest()


def content_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content, or that over the names and contents of all files below a folder."""
    return digest(path) if path.is_dir() else sha256(path)


def refuse_changes(contents: dict[str, str]) -> None:
    """Raise ValueError if the content of a file or folder has changed: results would be stored under the key of the old
    content. ``contents``: path → its `content_digest` when the run began. Missing paths pass; whoever reads them
    reports them."""
    for path, expected in contents.items():
        if Path(path).exists() and content_digest(Path(path)) != expected:
            raise ValueError(f"{path}: this file has changed since the run began; start the run again")
