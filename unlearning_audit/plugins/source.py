"""Compute a digest of a file's code and of the modules that it imports, without comments and docstrings."""

import ast
import functools
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

import unlearning_audit
from unlearning_audit.plugins import declarations, imports
from unlearning_audit.store import folders

#: The folder that holds the package, and the folder of the scripts.
LIBRARY = Path(__file__).resolve().parents[2]
SCRIPTS = unlearning_audit.ROOT / "scripts"
LIBRARY_NAME = "unlearning_audit"

#: An import statement, and a docstring, which follows a head or begins a file.
IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|.*)|import[ \t]+(.*))", re.MULTILINE)
DOCSTRING = re.compile(r'(\A|:[ \t]*(?:#.*)?\n)\s*[rR]?"""[\s\S]*?"""')

#: Parts of a program that may begin with a docstring.
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

#: A declaration in a formatted file: it ends before the next line without indentation.
DECLARATION = r"^{}\b.*\n(?:[ \t)\]}}].*\n|\n)*"


@functools.cache
def _read(path: Path, stamp: tuple[int, int]) -> tuple[str, tuple[str, ...]]:
    """Return the digest of a file's code and the names of the modules that it imports.

    Constants that only planning and display read do not count (`_without_declarations`), and neither do comments and
    docstrings. A name of a relative import begins with a point for each level above. ``stamp``, the file's size and
    time, makes an edited file a new entry of the cache.
    """
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    text = _without_declarations(text, declarations.DECLARATIONS if _ours(path) else ("PROTOCOL", "QUANTITIES"))
    names: list[str] = []
    for module, after_from, after_import in IMPORT.findall(text):  # "from module import …", or else "import …"
        listed = re.sub(r"#.*|[()]", "", after_from or after_import).split(",")
        imported = [name.split()[0] for name in listed if name.strip()]  # without "as …"
        dot = "" if module.endswith(".") else "."
        # In "from a import b", b may be a name in the module a, or the module a.b.
        names += [module, *(f"{module}{dot}{name}" for name in imported)] if module else imported
    code = _lines(text) if _ours(path) else _statements(text)
    return hashlib.sha256(code.encode(errors="surrogateescape")).hexdigest(), tuple(dict.fromkeys(names))


def _without_declarations(text: str, names: Iterable[str]) -> str:
    """Return the code without the constants ``names`` (such as QUANTITIES), which only planning and display
    read, and without the import of their types. A constant that the rest of the code uses stays."""
    for name in filter(text.__contains__, names):
        rest = re.sub(DECLARATION.format(name), "", text, flags=re.MULTILINE)
        text = text if re.search(rf"\b{name}\b", rest) else rest
    return re.sub(rf"^from {re.escape(declarations.__name__)} import .*\n", "", text, flags=re.MULTILINE)


def _lines(text: str) -> str:
    """Return the library's own code without blank lines, comments and docstrings. This needs formatted code and is
    quicker than `_statements`."""
    lines = re.sub(r" {2}#.*", "", DOCSTRING.sub(r"\1", text)).splitlines()
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))


def _statements(text: str) -> str:
    """Return a user's code without comments and docstrings, in one form; the text itself if it is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return text
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            node.body.pop(0)
    return ast.unparse(tree)


@functools.cache
def _ours(path: Path) -> bool:
    """Return whether a file belongs to the library or its scripts."""
    return path.is_relative_to(LIBRARY / LIBRARY_NAME) or path.is_relative_to(SCRIPTS)


@functools.cache
def _files(path: Path, names: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the files that Python runs for the file at ``path``, each once: the files of the packages around it, then,
    of the modules ``names`` that it imports, the files of modules that belong to the library or its scripts.

    Looking for these files takes longer than anything else in planning, so they are cached.
    """
    files = [around / "__init__.py" for around in imports.packages_around(path)[:-1]]  # the last is no package
    for name in names:
        if not name.startswith("."):  # relative imports are those of a user's file (`_beside`)
            parts = name.split(".")
            files += imports.modules_in(LIBRARY if parts[0] == LIBRARY_NAME else SCRIPTS, parts)
    return tuple(dict.fromkeys(files))


def modules(*files: Path) -> dict[Path, str]:
    """Return path → digest of code for ``files`` and for every module of the library that they import, directly or not.

    For a user's file, modules beside it, relative to it or beside the packages around it are included. Raises OSError
    for a file that cannot be read.
    """
    digests: dict[Path, str] = {}
    todo = [(path, imports.import_root(path)) for path in (file.resolve() for file in files)]
    while todo:
        path, folder = todo.pop()
        if path in digests:
            continue
        status = path.stat()
        digests[path], names = _read(path, (status.st_mtime_ns, status.st_size))
        todo += [(source, folder) for source in _files(path, names) if source not in digests]
        if not _ours(path):
            todo += [(source.resolve(), folder) for name in names for source in _beside(name, path, folder)]
    return digests


def _beside(name: str, path: Path, folder: Path) -> list[Path]:
    """Return the files that Python runs when the user's file at ``path`` imports the module ``name`` from its own
    program; [] for a module of the library.

    A name with leading points is searched from ``path``, any other in ``folder``.
    """
    without_points = name.lstrip(".")
    parts = without_points.split(".") if without_points else []
    # One point is the folder of ``path``, its first parent; each further point is one folder above.
    above = path.parents[len(name) - len(without_points) - 1] if name.startswith(".") else folder
    return [] if parts[:1] == [LIBRARY_NAME] else imports.modules_in(above, parts)


def digest(*files: Path) -> str:
    """Return the SHA-256 digest over the `modules` of ``files``.

    Paths do not count, so that a study and a user's file may be moved. A module that a user's file imports counts with
    its name below that file's folder, because it may not be moved.
    """
    root_of = {path: imports.import_root(path) for path in (file.resolve() for file in files) if not _ours(path)}
    digests = [
        code if path in root_of or _ours(path) else f"{_name_below(path, [*root_of.values()])}\0{code}"
        for path, code in modules(*files).items()
    ]
    return hashlib.sha256("\0".join(sorted(digests)).encode()).hexdigest()


def _name_below(path: Path, folders: list[Path]) -> str:
    """Return a file's path below the first of the ``folders`` that holds it, or else below its own import root."""
    folder = next((folder for folder in folders if path.is_relative_to(folder)), imports.import_root(path))
    return path.relative_to(folder).as_posix()


def contents(file: Path | None, depends: Iterable[str | Path]) -> dict[str, str]:
    """Return path → digest of the present content, by which `folders.refuse_changes` finds files that were edited
    during a run.

    The paths are a user's ``file`` (None: no file), the modules outside the library that it imports, and the files and
    folders in ``depends``.
    """
    code = [] if file is None else [path for path in modules(file) if not _ours(path)]
    return {str(path): folders.content_digest(Path(path)) for path in (*code, *depends)}


def fingerprint(path: Path) -> str:
    """Return the SHA-256 digest of a user's data: a file's content, or the names and contents of all files in a folder.

    Raises ValueError with one sentence if there is nothing at ``path``.
    """
    if path.exists():
        return folders.content_digest(path)
    raise ValueError(f"path {str(path)!r} does not exist; give a file or folder relative to the working directory")
