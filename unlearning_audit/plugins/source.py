"""Digest of source code that ignores comments, docstrings and layout."""

import ast
import functools
import hashlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import unlearning_audit
from unlearning_audit.artifacts import folders
from unlearning_audit.plugins import declarations, imports, parse_cache

#: The folder around the package, and that of the scripts.
LIBRARY = Path(__file__).resolve().parents[2]
SCRIPTS = unlearning_audit.ROOT / "scripts"
LIBRARY_NAME = "unlearning_audit"

#: Folders of what is installed, whose files have versions of their own.
INSTALLED = tuple(
    os.path.join(path, "")
    for path in {
        sys.prefix, sys.base_prefix, *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")),
        *(path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")),
    }
)  # fmt: skip

#: Fields of a tree of code that follow from the others, or that nothing runs by.
UNREAD = ("ctx", "kind", "type_comment")


@dataclass(frozen=True)
class Code:
    """One file: the ``digest`` of what it does, the names that it ``imports`` (with a point for each level above, as in
    relative imports), and, of a user's file, the ``folders`` that it adds to the import path and the ``files`` that it
    runs by name."""

    digest: str
    imports: tuple[str, ...]
    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def _bare(body: list[ast.stmt], imported: list[str]) -> list[ast.stmt]:
    """Statements without docstrings; what they import is added to ``imported``. Expressions, most of a file, are left
    alone: they hold no statements."""
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        body = body[1:] or [ast.Pass()]
    for statement in body:
        if isinstance(statement, ast.Import):
            imported += [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            module = "." * statement.level + (statement.module or "")
            dot = "." if statement.module else ""
            imported += [module, *(f"{module}{dot}{alias.name}" for alias in statement.names)]
        for holder in (statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            for name in ("body", "orelse", "finalbody"):
                if getattr(holder, name, None):
                    setattr(holder, name, _bare(getattr(holder, name), imported))
    return body


def _displayed(tree: ast.Module, records: Iterable[str]) -> list[str]:
    """Those of the ``records`` that planning and display alone read; what the rest of the file reads is code."""
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return [name for name in records if name not in read]


def _record(node: ast.stmt, records: Iterable[str]) -> bool:
    """Whether a statement defines one of the ``records``, or imports what records are made of."""
    if isinstance(node, ast.ImportFrom):
        return node.module == declarations.__name__
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id in records for target in targets)


@functools.cache
def _parsed(path: Path, stamp: tuple[int, int], strict: bool) -> Code:
    """One file, unless it is ``strict`` also if it is not Python. ``stamp`` makes an edited file a new entry."""
    content = path.read_bytes()
    if not _in_library(path):
        return _normalised(path, content, strict)
    mark = hashlib.sha256(_rules() + content).hexdigest()
    if (entry := parse_cache.read(path, mark)) is not None:
        return Code(entry["digest"], tuple(entry["imports"]))
    code = _normalised(path, content, strict)
    parse_cache.write(path, mark, {"digest": code.digest, "imports": code.imports})
    return code


@functools.cache
def _rules() -> bytes:
    """What else the digest of a file depends on: these functions, and Python."""
    return b"\0".join(Path(module).read_bytes() for module in (__file__, declarations.__file__)) + sys.version.encode()


def _normalised(path: Path, content: bytes, strict: bool) -> Code:
    try:
        tree = ast.parse(content, filename=str(path))
    except (SyntaxError, ValueError):
        if strict:
            raise
        return Code(hashlib.sha256(content).hexdigest(), ())
    imported: list[str] = []
    folders, files = ((), ()) if _in_library(path) else _calls(tree, imported)
    strip(tree, path, imported)
    return Code(hashlib.sha256(_plain(tree).encode()).hexdigest(), tuple(sorted(set(imported))), folders, files)


def strip(tree: ast.Module, path: Path, imported: list[str]) -> None:
    """Leave of a file what it does: no docstrings, and no records that planning and display alone read. What it imports
    is added to ``imported``."""
    records = _displayed(tree, declarations.RECORDS if _in_library(path) else ("PROTOCOL", "QUANTITIES"))
    tree.body = _bare([statement for statement in tree.body if not _record(statement, records)], imported)


def _plain(node: object) -> str:
    """A tree of code as text that is the same in every version of Python: `ast.unparse` chooses other quotes in each,
    and `ast.dump` lists other fields, so that whoever updates Python would compute everything anew."""
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if value is not None and value != []]
        return f"{type(node).__name__}({','.join(f'{k}={_plain(v)}' for k, v in fields if k not in UNREAD)})"
    return f"[{','.join(map(_plain, node))}]" if isinstance(node, list) else repr(node)


def _with_library(path: Path, digests: dict[Path, str]) -> None:
    """Add to ``digests`` a file of the library and those that it needs at once, directly or not."""
    todo = [path]
    while todo:
        path = todo.pop()
        if path not in digests:
            status = os.stat(path)
            digests[path], sources = _of_library(path, (status.st_mtime_ns, status.st_size))
            todo += sources


@functools.cache
def _of_library(path: Path, stamp: tuple[int, int]) -> tuple[str, tuple[Path, ...]]:
    """The digest of a file of the library, and the files that it imports, with the packages around both."""
    code = _parsed(path, stamp, True)
    names = (*_packages(path), *code.imports)
    return code.digest, tuple(dict.fromkeys(source for name in names for source in _files(name)))


def _calls(tree: ast.Module, imported: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Texts in calls that change the import path, and in calls that run a file; the names of modules that are imported
    by a call are added to ``imported``."""
    folders, files = [], []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func)
        texts = [
            node.value for node in ast.walk(call) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        if name.startswith(("sys.path.", "site.addsitedir")):
            folders += texts
        elif name.rpartition(".")[2] in ("run_path", "spec_from_file_location", "SourceFileLoader"):
            files += texts
        elif name.rpartition(".")[2] in ("import_module", "__import__", "run_module"):
            imported += texts[:1]
    return tuple(folders), tuple(files)


@functools.cache
def _in_library(path: Path) -> bool:
    """Whether a file belongs to the library or its scripts."""
    return path.is_relative_to(LIBRARY / LIBRARY_NAME) or path.is_relative_to(SCRIPTS)


@functools.cache
def _files(name: str) -> tuple[Path, ...]:
    """The file of a module or package of ours; none for a name in a module, and for other people's."""
    package, *_ = parts = name.split(".")
    stem = (LIBRARY if package == LIBRARY_NAME else SCRIPTS).joinpath(*parts)
    return tuple(path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file())


@functools.cache
def _packages(path: Path) -> tuple[str, ...]:
    """The packages around a file of ours, which Python runs before it."""
    package = LIBRARY / LIBRARY_NAME
    if not path.is_relative_to(package) or path.is_relative_to(SCRIPTS):
        return ()
    parts = path.relative_to(LIBRARY).parts[:-1]
    return tuple(".".join(parts[: i + 1]) for i in range(len(parts)))


def modules(*files: Path) -> dict[Path, str]:
    """``files`` and every module of the library that they import, directly or not: path → digest of what it does.

    Of a user's file also every module outside the library, but not of what is installed with a version of its own:
    relative to the file, beside the first one or beside the packages around it, in the working directory, or in a
    folder that the code adds to the import path by name; these packages; and files that it runs by name.

    Raises SyntaxError for a file that is not Python and OSError for one that cannot be read.
    """
    digests: dict[Path, str] = {}
    first = [path.resolve() for path in files]
    todo = [(path, (path.parent, *imports.packages_around(path)[-1:])) for path in first]
    todo += [(folder / "__init__.py", beside) for path, beside in todo if not _in_library(path)
             for folder in imports.packages_around(path)[:-1]]  # fmt: skip
    while todo:
        path, beside = todo.pop()
        if path in digests:
            continue
        if _in_library(path):
            _with_library(path, digests)
            continue
        status = path.stat()
        code = _parsed(path, (status.st_mtime_ns, status.st_size), path in first)
        digests[path] = code.digest
        todo += [(source, ()) for name in code.imports for source in _files(name)]
        beside = tuple(dict.fromkeys((*beside, *_places(path, code.folders, Path.is_dir))))
        sources = [source for name in code.imports for source in _beside(name, path, beside)]
        sources += _places(path, code.files, Path.is_file)
        todo += [(source.resolve(), beside) for source in sources]
    return digests


def _places(path: Path, texts: tuple[str, ...], kind: Callable[[Path], bool]) -> list[Path]:
    """What ``texts`` of a file name, seen from the working directory and from the file."""
    places = [folder / text for text in texts if "\0" not in text for folder in (Path.cwd(), path.parent)]
    return [place for place in places if _is(kind, place)]


def _is(kind: Callable[[Path], bool], path: Path) -> bool:
    try:
        return kind(path)
    except OSError:  # a name that is too long
        return False


def _beside(name: str, path: Path, folders: tuple[Path, ...]) -> list[Path]:
    """The files of a module outside the library that the user's file at ``path`` imports, packages around it first."""
    if name.startswith("."):
        bare = name.lstrip(".")
        above = [path, *path.parents][len(name) - len(bare)]
        return imports.modules_in(above, bare.split(".") if bare else [])
    parts = name.split(".")
    if parts[0] in (LIBRARY_NAME, *sys.builtin_module_names):
        return []
    for folder in (*folders, Path.cwd()):
        if paths := imports.modules_in(folder, parts):
            return paths
    folder = _elsewhere(parts[0])
    return imports.modules_in(folder, parts) if folder else []


@functools.cache
def _elsewhere(package: str) -> Path | None:
    """The folder that holds a top-level module on the import path, unless it is installed with a version of its own."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError, AttributeError):
        return None
    origin = spec and (spec.origin or next(iter(spec.submodule_search_locations or ()), None))
    if not origin or not os.path.isabs(origin) or origin.startswith(INSTALLED):
        return None
    path = Path(origin)
    return path.parents[1] if path.name == "__init__.py" else path.parent


def digest(*files: Path) -> str:
    """SHA-256 over the `modules` of ``files``. Paths do not count: a study may lie anywhere, and so may a user's
    own file. What such a file imports counts by its name below that file's folder, for it may not change places."""
    users = [path for path in (file.resolve() for file in files) if not _in_library(path)]
    folders = [imports.import_root(path) for path in users]
    digests = [
        code if path in users or _in_library(path) else f"{_name_below(path, folders)}\0{code}"
        for path, code in modules(*files).items()
    ]
    return hashlib.sha256("\0".join(sorted(digests)).encode()).hexdigest()


def _name_below(path: Path, folders: list[Path]) -> str:
    """A file as seen from the first of the ``folders`` that holds it, or from its own top folder."""
    folder = next((folder for folder in folders if path.is_relative_to(folder)), imports.import_root(path))
    return path.relative_to(folder).as_posix()


def contents(file: Path | None, depends: Iterable[str | Path]) -> dict[str, str]:
    """What a user's ``file``, those outside the library that it imports, and what these ``depends`` on hold now:
    path → content, for `folders.unchanged`."""
    code = [] if file is None else [path for path in modules(file) if not _in_library(path)]
    return {str(path): folders.content(Path(path)) for path in (*code, *depends)}


def fingerprints(paths: list[Path]) -> str | list[str]:
    """`fingerprint` of the only path, or of each of several."""
    digests = [fingerprint(path) for path in paths]
    return digests[0] if len(digests) == 1 else digests


def fingerprint(path: Path) -> str:
    """SHA-256 of a user's data: a file's content, or the names and contents of all files in a folder.

    Raises ValueError with one sentence if there is nothing at ``path``, or something that is no file.
    """
    if path.is_file() or path.is_dir():
        return folders.content(path)
    if path.exists():
        raise ValueError(f"path {str(path)!r} is neither a file nor a folder; give one of the two")
    raise ValueError(f"path {str(path)!r} does not exist; give a file or folder relative to the working directory")
