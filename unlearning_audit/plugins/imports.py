"""Which packages and files a user's file imports, and what of that is missing or comes from somewhere else."""

import functools
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unlearning_audit.plugins import syntax


def missing(path: Path) -> list[str]:
    """The packages that a user's file, or a file beside it that it imports, needs at its top level and that are not
    installed; an import inside of try is no need. Raises ValueError for what is not Python."""
    path = path.resolve()
    folder = [path.parent, *packages_around(path)][-1]
    todo, visited, absent = [path], set(), []
    while todo:
        file = todo.pop(0)
        if file in visited:
            continue
        visited.add(file)
        for module, level in syntax.imports(file):
            base, top = file.parents[level - 1] if level else folder, module.partition(".")[0]
            if local := modules_in(base, module.split(".")) if module else []:
                todo += [candidate.resolve() for candidate in local]
            elif not level and not (folder / top).is_dir() and not _installed(top) and top not in absent:
                absent.append(top)
    return absent


def packages_around(path: Path) -> list[Path]:
    """Folders of the packages around a file, and last the folder that holds the outermost; none outside of packages."""
    folders = []
    while (path.parent / "__init__.py").is_file():
        folders.append(path.parent)
        path = path.parent
    return [*folders, path.parent] if folders else []


def import_root(path: Path) -> Path:
    """The folder from which Python finds a file: its own, or that which holds the packages around it."""
    return [path.parent, *packages_around(path)][-1]


def modules_in(folder: Path, parts: list[str]) -> list[Path]:
    """The files of packages and of the module that a dotted name, in ``parts``, names below a folder."""
    stems = [folder.joinpath(*parts[: i + 1]) for i in range(len(parts))]
    paths = [stem / "__init__.py" for stem in (stems or [folder])]
    if stems:
        paths.append(stems[-1].with_suffix(".py"))
    if len(stems) > 1:
        paths.append(stems[-2].with_suffix(".py"))  # the last part is a name in a module
    return [path for path in paths if path.is_file()]


@contextmanager
def neighbours(file: Path) -> Iterator[str]:
    """Lets Python find ``file`` and what lies beside it before all else; all is as it was afterwards.

    Gives the name by which to import the file, which has points where it lies in packages.
    """
    folder = import_root(file)
    dotted = ".".join(file.relative_to(folder).with_suffix("").parts)
    tops = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    tops = {*tops, dotted.partition(".")[0]} - {__name__.partition(".")[0]}
    hidden = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in tops}
    path, bytecode = list(sys.path), sys.dont_write_bytecode
    for name in hidden:  # ours of the same name, such as train or metrics, would come first
        del sys.modules[name]
    try:
        sys.path.insert(0, str(folder))
        sys.dont_write_bytecode = True
        importlib.invalidate_caches()
        yield dotted
    finally:
        sys.path[:], sys.dont_write_bytecode = path, bytecode
        for name in [name for name in sys.modules if name.partition(".")[0] in tops]:
            del sys.modules[name]
        sys.modules.update(hidden)


@functools.cache
def _installed(package: str) -> bool:
    try:
        return package in sys.modules or importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False
