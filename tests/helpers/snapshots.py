"""Texts that a test compares with a file: UPDATE=1 writes them anew, and the change is read in the diff."""

import os
from pathlib import Path


def matches(path: Path, text: str) -> None:
    """Assert that a file holds ``text``."""
    if os.environ.get("UPDATE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
