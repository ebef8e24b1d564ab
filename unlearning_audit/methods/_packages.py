"""Stand-ins for packages that published code imports but that unlearning does not need."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType


class Nothing(ModuleType):
    """A stand-in for a package that published code imports and that unlearning does not need.

    Its attributes are stand-ins too. So are the results of calling, entering or subclassing it. As a decorator it
    returns the function unchanged. Arithmetic with it raises TypeError.
    """

    def __init__(self, name: str, *more: object) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> "Nothing":
        """Return a stand-in for the attribute ``name``. Raises AttributeError for special names such as ``__len__``."""
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing(f"{self.__name__}.{name}")

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Return a function that is the only argument, as a decorator does, and else this stand-in."""
        alone = len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], Nothing)
        return args[0] if alone else self

    def __enter__(self) -> "Nothing":
        return self

    def __exit__(self, *error: object) -> None:
        return None


class _Finder:
    """An import finder that gives a stand-in (`Nothing`) for each of the packages ``names`` and for their
    submodules."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the specification by which Python imports a stand-in; None for a module that is not covered."""
        return ModuleSpec(name, self, is_package=True) if self.covers(name) else None  # type: ignore[arg-type]

    def covers(self, name: str) -> bool:
        """Return whether the module ``name`` is one of the packages or lies in one."""
        return any(name == package or name.startswith(f"{package}.") for package in self.names)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the stand-in."""
        return Nothing(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: a stand-in has no code to run."""


@contextmanager
def absent(names: Sequence[str]) -> Iterator[None]:
    """Within the context, replace the packages ``names`` by stand-ins (`Nothing`), whether they are installed or not.

    With "tensorboard", torch.utils.tensorboard is replaced too, because it cannot be imported without it.
    """
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
