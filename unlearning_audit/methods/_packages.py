"""Packages that published code imports and that are not installed: all of them by name, and a stand-in for those that
unlearning does without."""

import ast
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType


class Nothing(ModuleType):
    """Whatever is taken from it, called, entered or derived from it is nothing again; a function that it decorates
    stays as it is. It is no number: computing with it raises TypeError."""

    def __init__(self, name: str, *more: object) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> "Nothing":
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing(f"{self.__name__}.{name}")

    def __call__(self, *args: object, **kwargs: object) -> object:
        alone = len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], Nothing)
        return args[0] if alone else self

    def __enter__(self) -> "Nothing":
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def _computed(self, *operands: object) -> object:
        package = self.__name__.partition(".")[0]
        raise TypeError(
            f"{self.__name__} is computed with, so {package} is needed: install it, and leave it out of without"
        )


for _operator in ("add", "sub", "mul", "truediv", "floordiv", "pow", "mod", "matmul"):
    for _side in ("", "r"):
        setattr(Nothing, f"__{_side}{_operator}__", Nothing._computed)
for _operator in ("neg", "float", "int", "len", "iter", "getitem", "lt", "le", "gt", "ge"):
    setattr(Nothing, f"__{_operator}__", Nothing._computed)


class _Finder:
    """Finds `Nothing` for some packages and all that lies in them."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if self.covers(name) else None  # type: ignore[arg-type]

    def covers(self, name: str) -> bool:
        """Whether a module is one of the packages, or lies in one."""
        return any(name == package or name.startswith(f"{package}.") for package in self.names)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Nothing(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


@contextmanager
def absent(names: Sequence[str]) -> Iterator[None]:
    """Meanwhile the packages of these names are `Nothing`, installed or not; torch's own loggers go with tensorboard,
    without which they cannot be imported."""
    finder = _Finder([*names, *(["torch.utils.tensorboard"] if "tensorboard" in names else [])])
    hidden = {name: module for name, module in sys.modules.items() if finder.covers(name)}
    for name in hidden:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if finder.covers(name)]:
            del sys.modules[name]
        sys.modules.update(hidden)


def missing(file: Path, folder: Path, without: Sequence[str] = ()) -> list[str]:
    """Packages that ``file``, and what it imports of ``folder``, import when they are loaded and that are not
    installed; imports that code tries, or makes later, are left out."""
    names: dict[str, None] = {}
    waiting, visited = [file], {file}
    while waiting:
        for name in _imports(waiting.pop(), folder):
            top = name.partition(".")[0]
            beside = [place for place in _places(name, folder) if place.is_file()]
            if beside or (folder / top).is_dir() or (folder / f"{top}.py").is_file():
                waiting += [place for place in beside if place not in visited]
                visited.update(beside)
            elif top not in without and top not in sys.stdlib_module_names and importlib.util.find_spec(top) is None:
                names[top] = None
    return list(names)


def _imports(file: Path, folder: Path) -> list[str]:
    """Names of modules that a file imports when it is loaded; nothing for one that is no Python."""
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return []
    names: list[str] = []
    for statement in body:
        if isinstance(statement, ast.Import):
            names += [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            parents = file.parent.relative_to(folder).parts if statement.level else ()
            stem = [*parents[: len(parents) - statement.level + 1], *filter(None, [statement.module])]
            names += [
                ".".join([*stem, *end]) for end in ([], *([alias.name] for alias in statement.names)) if stem or end
            ]
    return names


def _places(name: str, folder: Path) -> list[Path]:
    """Files that Python runs for a module of a folder: those of the packages around it, and its own."""
    parts = name.split(".")
    stems = [folder.joinpath(*parts[: i + 1]) for i in range(len(parts))]
    return [place for stem in stems for place in (stem / "__init__.py", stem.with_suffix(".py"))]
