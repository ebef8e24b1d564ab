"""Digest of source code that ignores comments, docstrings and layout."""

import ast
import functools
import hashlib
from pathlib import Path

from unlearning.artifacts.files import sha256
from unlearning.plugins import declarations

SCRIPTS = Path(__file__).resolve().parents[2]


def _bare(body: list[ast.stmt], imported: list[str]) -> list[ast.stmt]:
    """Statements without docstrings; what they import is added to ``imported``. Expressions, most of a file, are left
    alone: they hold no statements."""
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        body = body[1:] or [ast.Pass()]
    for one in body:
        if isinstance(one, ast.Import):
            imported += [alias.name for alias in one.names]
        elif isinstance(one, ast.ImportFrom) and one.module:
            imported += [one.module, *(f"{one.module}.{alias.name}" for alias in one.names)]
        for holder in (one, *getattr(one, "handlers", ()), *getattr(one, "cases", ())):
            for name in ("body", "orelse", "finalbody"):
                if getattr(holder, name, None):
                    setattr(holder, name, _bare(getattr(holder, name), imported))
    return body


def _record(node: ast.stmt) -> bool:
    """Whether a statement defines a record, or imports what records are made of."""
    if isinstance(node, ast.ImportFrom):
        return node.module == declarations.__name__
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id in declarations.RECORDS for target in targets)


@functools.cache
def _parsed(path: Path, stamp: tuple[int, int]) -> tuple[str, tuple[str, ...]]:
    """Normalised text of one file, and the names it imports. ``stamp`` makes an edited file a new entry."""
    tree, imported = ast.parse(path.read_bytes(), filename=str(path)), []
    tree.body = _bare([one for one in tree.body if not _record(one)], imported)
    return ast.unparse(tree), tuple(sorted(set(imported)))


@functools.cache
def _files(name: str) -> tuple[Path, ...]:
    """The file of a module or package of ours; none for a name in a module, and for other people's."""
    stem = SCRIPTS.joinpath(*name.split("."))
    return tuple(path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file())


@functools.cache
def _packages(path: Path) -> tuple[str, ...]:
    """The packages around a file of ours, which Python runs before it."""
    if not path.is_relative_to(SCRIPTS):
        return ()
    parts = path.relative_to(SCRIPTS).parts[:-1]
    return tuple(".".join(parts[: i + 1]) for i in range(len(parts)))


def modules(*files: Path) -> dict[Path, str]:
    """``files`` and every module of the library that they import, directly or not: path → normalised text.

    Raises SyntaxError for a file that is not Python and OSError for one that cannot be read.
    """
    seen: dict[Path, str] = {}
    todo = [path.resolve() for path in files]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        status = path.stat()
        seen[path], imported = _parsed(path, (status.st_mtime_ns, status.st_size))
        todo += [found for name in (*_packages(path), *imported) for found in _files(name)]
    return seen


def digest(*files: Path) -> str:
    """SHA-256 over the `modules` of ``files``. Paths do not count: a study may lie anywhere, and so may a user's
    own file."""
    return hashlib.sha256("\0".join(sorted(modules(*files).values())).encode()).hexdigest()


def fingerprint(path: Path) -> str:
    """SHA-256 of a user's data: a file's content, or the names and sizes of all files in a folder.

    Raises ValueError with one sentence if there is nothing at ``path``.
    """
    if path.is_file():
        return sha256(path)
    if path.is_dir():
        files = sorted(f for f in path.rglob("*") if f.is_file())
        listing = [f"{f.relative_to(path)} {f.stat().st_size}" for f in files]
        return hashlib.sha256("\n".join(listing).encode()).hexdigest()
    raise ValueError(f"path {str(path)!r} does not exist; give a file or folder relative to the working directory")
