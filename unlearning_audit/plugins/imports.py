"""Which packages and files a user's file imports, and what of that is missing or comes from somewhere else."""

import functools
import importlib.util
import sys
from pathlib import Path

from unlearning_audit.plugins import syntax
from unlearning_audit.plugins.guard import readable


def missing(path: Path) -> list[str]:
    """The packages that a user's file, or a file beside it that it imports, needs at its top level and that are not
    installed; an import inside of try is no need. Raises ValueError for what is not Python, and for a file beside it
    in whose place Python imports another."""
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
            local = modules_in(base, module.split(".")) if module else []
            if local and not level and top != __name__.partition(".")[0]:  # a file in a clone beside the library
                _check_import(file, top, folder)
            if local:
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


def _check_import(path: Path, name: str, folder: Path) -> None:
    """Raise ValueError if Python has a top-level module of this name that does not lie in the ``folder``."""
    loaded = sys.modules.get(name)
    spec = loaded.__spec__ if loaded else importlib.util.find_spec(name)
    origin = spec and (spec.origin or next(iter(spec.submodule_search_locations or ()), None))
    if origin and not Path(origin).resolve().is_relative_to(folder):
        raise ValueError(
            f"{readable(path)}: it imports {name} from beside it, and Python takes that from {readable(origin)}; "
            "give the file beside it another name"
        )


@functools.cache
def _installed(package: str) -> bool:
    try:
        return package in sys.modules or importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False
