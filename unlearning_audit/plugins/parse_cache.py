"""What parsing a file gave, kept beside its bytecode: parsing takes a third of planning a small study."""

import hashlib
import importlib.util
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

SUFFIX = ".parsed.json"


def _place(path: Path) -> Path:
    return Path(importlib.util.cache_from_source(str(path))).with_suffix(SUFFIX)


def read(path: Path, mark: str) -> Any:
    """What was written for a file under the same ``mark``; None if there is nothing whole."""
    try:
        head, body = _place(path).read_bytes().split(b"\n", 1)
    except (OSError, ValueError):
        return None
    return json.loads(body) if head == _head(mark, body) else None


def write(path: Path, mark: str, value: Any) -> None:
    """Keep ``value`` for a file, where Python may keep bytecode; elsewhere nothing happens."""
    if sys.dont_write_bytecode:
        return
    place, body = _place(path), json.dumps(value).encode()
    part = place.with_name(f"{place.name}.{os.getpid()}")
    with suppress(OSError):
        place.parent.mkdir(exist_ok=True)
        try:
            part.write_bytes(_head(mark, body) + b"\n" + body)
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)


def _head(mark: str, body: bytes) -> bytes:
    """A line that holds for this mark and this body alone."""
    return hashlib.sha256(mark.encode() + body).hexdigest().encode()
