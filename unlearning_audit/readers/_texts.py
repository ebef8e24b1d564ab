"""Samples by what they say, so that equal samples of different files are known to be equal; JSON of result files."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

#: How much of a file is read to tell its format.
HEAD = 65_536


def identities(part: str, texts: Iterable[str]) -> tuple[str, ...]:
    """A short name for each text of a part of the data; equal texts are numbered in their order, so that names are
    different."""
    counts: Counter[str] = Counter()
    names = []
    for text in texts:
        digest = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:12]
        counts[digest] += 1
        names.append(f"{part}:{digest}.{counts[digest]}" if counts[digest] > 1 else f"{part}:{digest}")
    return tuple(names)


def read_json(path: Path) -> object:
    """The content of a JSON file. Raises ValueError that names it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path}: line {error.lineno} is not valid JSON ({error.msg}); is the file complete?"
        ) from None
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: this file cannot be read ({type(error).__name__})") from None


def number(value: object) -> object:
    """A text that is a number as this number; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return value


def below(place: Path, *suffixes: str) -> list[Path]:
    """Files at or below a path with one of the suffixes, sorted; hidden folders are left out."""
    if place.is_file():
        return [place] if place.suffix in suffixes else []
    paths = (path for suffix in suffixes for path in place.rglob(f"*{suffix}"))
    return sorted(path for path in paths if path.is_file() and not _hidden(path.relative_to(place)))


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def head(path: Path) -> str:
    """The beginning of a file as text."""
    try:
        with path.open("rb") as file:
            return file.read(HEAD).decode("utf-8", "replace")
    except OSError:
        return ""
