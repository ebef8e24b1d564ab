"""Move modules and whole rooms of the library to new names, rename what they hold, and rewrite the texts that name it.

    uv run python tools/rename.py         moves everything in `tools/renames.csv` that is still in its old place
    uv run python tools/rename.py FILE…   writes the new names into files of your own: plug-ins, notebooks, branches

A line of `renames.csv` is a module or a room: old, new. A module without a line of its own moves with its room. A line
of `renamed_names.csv` is a name in the code of Python files that use the library: old, new, and a pattern of the paths
in this repository where it is meant, if it means something else in others.
"""

import csv
import io
import keyword
import re
import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_name("renames.csv")
NAMES = Path(__file__).with_name("renamed_names.csv")
PACKAGE = "unlearning_audit"

#: Files that may name modules, and kept results and texts, which are left unchanged.
TEXTS = (".py", ".md", ".toml", ".jinja", ".smk", ".yaml", ".rst", ".html", ".ipynb", "Snakefile")
KEPT = (
    "tests/golden/expected/",
    "tests/golden/logs/",
    "docs/gallery/",
    "resources/measured/",
    "CHANGELOG.md",
    "tools/",
)


def renames(path: Path = TABLE) -> dict[str, str]:
    """Return old → new name. A module is "room" or "room.module"; modules come before the rooms that hold them."""
    with path.open(newline="", encoding="utf-8") as file:
        table = {row["old"]: row["new"] for row in csv.DictReader(file)}
    return dict(sorted(table.items(), key=lambda item: -item[0].count(".")))


def names_in(path: Path) -> dict[str, str]:
    """Return old → new name in the code of a file: all names, or in this repository those that are meant there."""
    inside = path.resolve().is_relative_to(ROOT) and path.resolve().relative_to(ROOT).as_posix()
    with NAMES.open(newline="", encoding="utf-8") as file:
        return {row["old"]: row["new"] for row in csv.DictReader(file) if not inside or re.match(row["where"], inside)}


def renamed(name: str, table: dict[str, str]) -> str:
    """Return the new name of "room", "room.module" or "room.module.thing"."""
    for old, new in table.items():
        if name == old or name.startswith(f"{old}."):
            return new + name[len(old) :]
    return name


def rewritten(text: str, table: dict[str, str]) -> str:
    """Return a text with the new names, in import statements, in dotted names and in paths."""
    rooms = "|".join({old.partition(".")[0] for old in table})
    statement = rf"^([ \t]*)from {PACKAGE}\.({rooms}) import (\([^)]*\)|[^\n#(]*)([ \t]*#[^\n]*)?"
    text = re.sub(statement, lambda found: _split(found, table), text, flags=re.MULTILINE)
    dotted = rf"\b{PACKAGE}\.((?:{rooms})\b(?:\.\w+)*)"
    text = re.sub(dotted, lambda found: f"{PACKAGE}.{renamed(found[1], table)}", text)
    bare = rf"(?<=`)((?:{rooms})\.\w+)"
    text = re.sub(bare, lambda found: _module(found[1], table), text)
    path = rf"(?<![\w.-])((?:{PACKAGE}/|tests/)?)({rooms})/(\w*)"
    return re.sub(path, lambda found: found[1] + _path(found[2], found[3], table), text)


def _module(name: str, table: dict[str, str]) -> str:
    """Return the new name of a module that is named without the package; a name that is not a module is unchanged."""
    new = renamed(name, table)
    return new if (ROOT / PACKAGE / new.replace(".", "/")).with_suffix(".py").is_file() else name


def _path(room: str, module: str, table: dict[str, str]) -> str:
    """Return the new path of a room, or of a module in it."""
    new = renamed(f"{room}.{module}" if module else room, table).replace(".", "/")
    return new if module else f"{new}/"


def _split(found: re.Match[str], table: dict[str, str]) -> str:
    """Return the import statements that replace one that imports modules of a room; its modules may now be in several
    rooms."""
    margin, room, comment = found[1], found[2], f"  {found[4].strip()}" if found[4] else ""
    names = re.sub(r"#.*", "", found[3]).strip("()")
    by_room: dict[str, list[str]] = {}
    for part in filter(None, (part.strip() for part in names.split(","))):
        module, _, alias = part.partition(" as ")
        at, _, name = renamed(f"{room}.{module}", table).rpartition(".")
        as_name = alias or module
        by_room.setdefault(at, []).append(name if as_name == name else f"{name} as {as_name}")
    lines = (f"{margin}from {PACKAGE}.{at} import {', '.join(parts)}" for at, parts in by_room.items())
    return "\n".join(line + comment for line in lines)


def reworded(text: str, names: dict[str, str]) -> str:
    """Return the text of a Python file with new ``names`` in code and between backticks. Other texts and comments stay,
    and so does what stands between backticks if it is a string in the same file: it is a value there."""
    marked = {old: new for old, new in names.items() if f'"{old}"' not in text}
    text = re.sub(r"`[^`\n]*`", lambda found: _replaced(found[0], marked), text)
    lines = text.splitlines(keepends=True)
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(text).readline))):
        if token.type == tokenize.NAME and not (keyword.issoftkeyword(token.string) and _opens_block(token)):
            new = names.get(token.string, token.string)
        elif token.type == tokenize.STRING and re.match(r"[rR]?[fF]", token.string) and token.start[0] == token.end[0]:
            new = re.sub(r"\{[^{}]*\}", lambda found: _replaced(found[0], names), token.string)
        else:
            continue
        line, (start, end) = token.start[0] - 1, (token.start[1], token.end[1])
        lines[line] = lines[line][:start] + new + lines[line][end:]
    return "".join(lines)


def _opens_block(token: tokenize.TokenInfo) -> bool:
    """Return whether a token is the first of a line that ends with a colon, as `match` and `case` are."""
    return not token.line[: token.start[1]].strip() and token.line.rstrip().endswith(":")


def _replaced(text: str, names: dict[str, str]) -> str:
    """Return a text in which whole words are replaced."""
    return re.sub(r"\b\w+\b", lambda found: names.get(found[0], found[0]), text)


def move(table: dict[str, str]) -> None:
    """Move the files of the library and the folders of tests, and rewrite every text that git tracks."""
    for old, new in table.items():
        for top in (f"{PACKAGE}/", "tests/"):
            source, target = ROOT / top / old.replace(".", "/"), ROOT / top / new.replace(".", "/")
            for path, to in ((source.with_suffix(".py"), target.with_suffix(".py")), (source, target)):
                if path.is_file() or (path.is_dir() and any(path.glob("*.py"))):
                    _move(path, to)
    for name in _git("ls-files").splitlines():
        path = ROOT / name
        if name.endswith(TEXTS) and not name.startswith(KEPT) and path.is_file():
            write(path, table)


def _move(path: Path, to: Path) -> None:
    """Move a file or folder with git. If the target folder exists, move what is inside, without a second
    __init__.py."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() or not to.is_dir():
        _git("mv", str(path), str(to))
        return
    for inside in sorted(path.iterdir()):
        if inside.name == "__init__.py" and (to / inside.name).exists():
            _git("rm", "-q", str(inside))
        elif inside.name != "__pycache__":
            _git("mv", str(inside), str(to / inside.name))


def write(path: Path, table: dict[str, str]) -> None:
    """Rewrite a file if it has an old name."""
    text = path.read_text(encoding="utf-8")
    new = rewritten(text, table)
    if path.suffix == ".py" and PACKAGE in text:
        new = reworded(new, names_in(path))
    if new != text:
        path.write_text(new, encoding="utf-8")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    if sys.argv[1:]:
        for file in sys.argv[1:]:
            write(Path(file), renames())
    else:
        move(renames())
