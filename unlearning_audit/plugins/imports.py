"""Where Python finds what a user's file imports from beside it."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
