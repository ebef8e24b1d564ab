"""Find the modules that a user's file imports from its own folder."""

import functools
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@functools.cache
def packages_around(path: Path) -> list[Path]:
    """Return the folders of the packages around a file, innermost first, and last the folder that holds the outermost
    package; an empty list for a file outside packages."""
    folders = []
    while (path.parent / "__init__.py").is_file():
        folders.append(path.parent)
        path = path.parent
    return [*folders, path.parent] if folders else []


def import_root(path: Path) -> Path:
    """Return the folder from which Python imports a file: its own folder, or the one that holds the packages around
    it."""
    folders = packages_around(path)  # the last one holds the outermost package
    return folders[-1] if folders else path.parent


def modules_in(folder: Path, parts: list[str]) -> list[Path]:
    """Return the files that importing a dotted name runs, below a folder: those of its packages and of the module.
    ``parts``: the parts of the name; [] for the package that is the ``folder`` itself."""
    stems = [folder.joinpath(*parts[: i + 1]) for i in range(len(parts))]  # for a.b: folder/a, folder/a/b
    paths = [stem / "__init__.py" for stem in (stems or [folder])]
    if stems:
        paths.append(stems[-1].with_suffix(".py"))
    if len(stems) > 1:
        paths.append(stems[-2].with_suffix(".py"))  # the last part is a name in a module
    return [path for path in paths if path.is_file()]


@contextmanager
def neighbours(file: Path) -> Iterator[str]:
    """Within the context, let Python find ``file`` and the modules beside it before all others. Afterwards ``sys.path``
    is as before, and so are the modules of these names. A module with the name of this library's package never replaces
    the package.

    Yields the name under which the file can be imported, a dotted name if it lies in packages.
    """
    folder = import_root(file)
    dotted = ".".join(file.relative_to(folder).with_suffix("").parts)
    # Names of top-level modules and packages beside the file, without the library's own package.
    beside = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    beside = {*beside, dotted.partition(".")[0]} - {__name__.partition(".")[0]}
    hidden = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in beside}
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
        for name in [name for name in sys.modules if name.partition(".")[0] in beside]:
            del sys.modules[name]
        sys.modules.update(hidden)
