"""Count the lines of code of each part of the repository: uv run python tools/sizes.py prints them beside the limits.

Blank lines, comments and docstrings do not count. `tools/sizes.csv` lists the folders and the limit of each part.
"""

import ast
import csv
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_name("sizes.csv")

#: Tokens that do not make a line count as code.
IDLE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def lines(text: str) -> int:
    """Return the number of lines of code in the text of a Python file."""
    numbers: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in IDLE:
            numbers |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            numbers -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(numbers)


def counted(path: Path) -> int:
    """Return the lines of code of a file. In a rule file, these are all but blank lines, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return lines(text)
    rest = re.sub(r'"""[\s\S]*?"""', "", text).splitlines()
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in rest)


def files(places: str) -> Iterator[Path]:
    """Yield the code files in some files and folders, whose paths are separated by spaces."""
    for place in places.split():
        path = ROOT / place
        yield from [path] if path.is_file() else [p for p in sorted(path.rglob("*")) if p.suffix in (".py", ".smk")]


def parts() -> Iterator[tuple[str, int, int]]:
    """Yield each part, its lines of code and its limit."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield row["part"], sum(map(counted, files(row["places"]))), int(row["most"])


if __name__ == "__main__":
    for part, count, most in parts():
        print(f"{part:<10}{count:>8,} of {most:,}")
