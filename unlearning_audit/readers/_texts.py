"""Names of samples from their texts, so that equal samples in different files are recognised; JSON of result files."""

import codecs
import gzip
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, cast

#: The number of bytes that are read to recognise a format.
HEAD = 65_536


def identities(part: str, texts: Iterable[str]) -> tuple[str, ...]:
    """Return a short name for each text, such as "forget:0f3a…": the ``part`` of the data, and a hash of the text.
    Texts that differ only in white space have one hash. Repetitions of a text get a running number, so that all names
    differ."""
    counts: Counter[str] = Counter()
    names = []
    for text in texts:
        digest = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:12]
        counts[digest] += 1
        names.append(f"{part}:{digest}.{counts[digest]}" if counts[digest] > 1 else f"{part}:{digest}")
    return tuple(names)


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, which may be compressed by gzip. Raises ValueError that names the file."""
    try:
        with opened(path) as file:
            return json.loads(file.read())
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno} is not valid JSON ({error.msg}); is the file complete?"
        raise ValueError(f"{path}: {problem}") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: this file cannot be read ({type(error).__name__})") from None


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressing it if its suffix is .gz."""
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def kind(path: Path) -> str:
    """Return the suffix that tells a file's format, such as ".csv" for losses.csv.gz."""
    return _unzipped(path).suffix.lower()


def bare(path: Path) -> Path:
    """Return the path without the suffix that tells its format, and without .gz."""
    return _unzipped(path).with_suffix("")


def _unzipped(path: Path) -> Path:
    """Return the path without .gz."""
    return path.with_suffix("") if path.suffix == ".gz" else path


def below(path: Path, *suffixes: str) -> list[Path]:
    """Return the files at or below ``path``, sorted, whose names end in one of ``suffixes``, or in one and ``.gz``.

    Hidden files, and all files in hidden folders below ``path``, are skipped.
    """
    if path.is_file():
        return [path] if kind(path) in suffixes else []
    files = (file for file in path.rglob("*.*") if kind(file) in suffixes and file.is_file())
    return sorted(file for file in files if not any(name.startswith(".") for name in file.relative_to(path).parts))


def head(path: Path) -> str:
    """Return the beginning of a file as text, at most `HEAD` bytes of it; "" if it cannot be read."""
    return _start(path, HEAD).decode(encoding(path), "replace")


def encoding(path: Path) -> str:
    """Return the encoding of a file: UTF-8, or UTF-16, in which Excel saves "Unicode text"."""
    return "utf-16" if _start(path, size=2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8"


def _start(path: Path, size: int) -> bytes:
    """Return the first ``size`` bytes of a file, decompressed; b"" if it cannot be read."""
    try:
        with opened(path) as file:
            return file.read(size)
    except (OSError, EOFError, zlib.error):
        return b""
