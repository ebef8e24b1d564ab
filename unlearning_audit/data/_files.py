"""Read text files of the user's own."""

import json
from pathlib import Path
from typing import Any


def text(file: Path) -> str:
    """Return the text of a file. Raises ValueError if it cannot be read or is not UTF-8."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} cannot be read as UTF-8 text ({error})") from error


def json_lines(file: Path) -> dict[int, Any]:
    """Return what each line of a .jsonl file holds, by its number from 1; empty lines are left out. Raises ValueError
    that names the file and the line."""
    records = {}
    for number, line in enumerate(text(file).splitlines(), 1):
        if line.strip():
            try:
                records[number] = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{file}: line {number} is not JSON ({error})") from None
    return records
