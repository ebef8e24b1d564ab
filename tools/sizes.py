"""Count the lines of code of each part of the house: uv run python tools/sizes.py prints them beside what is allowed.

Blanks, comments and docstrings do not count. `tools/sizes.csv` says which folders are a part, and how large it may be.
"""

import ast
import csv
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_name("sizes.csv")

#: Tokens that make no line one of code.
IDLE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def lines(text: str) -> int:
    """Lines of code of a Python file."""
    numbers: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in IDLE:
            numbers |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            numbers -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(numbers)


def counted(path: Path) -> int:
    """Lines of code of a file; of Snakemake's language those that are neither blank nor a comment."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return lines(text)
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in text.splitlines())


def files(places: str) -> Iterator[Path]:
    """The code in some files and folders, which are separated by blanks."""
    for place in places.split():
        path = ROOT / place
        yield from [path] if path.is_file() else [p for p in sorted(path.rglob("*")) if p.suffix in (".py", ".smk")]


def parts() -> Iterator[tuple[str, int, int]]:
    """Each part, its lines, and how many it may have."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield row["part"], sum(map(counted, files(row["places"]))), int(row["most"])


if __name__ == "__main__":
    for part, count, most in parts():
        print(f"{part:<10}{count:>8,} of {most:,}")
