"""Stand-ins for packages that published code imports but that unlearning does not need."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType


class StandIn(ModuleType):
    """A stand-in for a package that published code imports and that unlearning does not need.

    Its attributes are stand-ins too. So are the results of calling, entering or subclassing it. As a decorator it
    returns the function unchanged. Arithmetic with it raises TypeError.
    """

    def __init__(self, name: str, *bases_and_body: object) -> None:
        """Make the stand-in ``name``. Python passes two more arguments if code defines a subclass of a stand-in; the
        subclass is then a stand-in, too."""
        super().__init__(name)
        self.__path__: list[str] = []  # with a path, a module counts as a package, so that submodules are looked for

    def __getattr__(self, name: str) -> "StandIn":
        """Return a stand-in for the attribute ``name``. Raises AttributeError for special names such as ``__len__``, by
        which Python finds out what an object can do."""
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{self.__name__}.{name}")

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Return a function that is the only argument: then the stand-in is used as a decorator. For any other call,
        return this stand-in."""
        decorates = len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], StandIn)
        return args[0] if decorates else self

    def __enter__(self) -> "StandIn":
        """Return this stand-in, which may be used as a context manager."""
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing: errors inside the context are raised."""


class _Finder:
    """A finder and loader of Python's import system that gives a stand-in (`StandIn`) for each of the packages
    ``names`` and for their submodules. Python calls `find_spec`, `create_module` and `exec_module`, in this order."""

    def __init__(self, names: Iterable[str]) -> None:
        """Keep the ``names`` of the packages."""
        self.names = frozenset(names)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return a specification that says that this object makes the module ``name``; None if the module is to be
        imported as usual (`covers`)."""
        return ModuleSpec(name, self, is_package=True) if self.covers(name) else None  # type: ignore[arg-type]

    def covers(self, name: str) -> bool:
        """Return whether the module ``name`` is one of the packages to be replaced, or lies in one."""
        return any(name == package or name.startswith(f"{package}.") for package in self.names)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a stand-in as the module that Python imports by this ``spec``, in place of the package's own code."""
        return StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing. Here Python would run the code of the imported ``module``, and a stand-in has none."""


@contextmanager
def replaced(names: Sequence[str]) -> Iterator[None]:
    """Within the context, replace the packages ``names`` by stand-ins (`StandIn`), whether they are installed or not.
    Modules of these packages that were imported before are put aside, and come back after the context.

    With "tensorboard", torch.utils.tensorboard is replaced too, because it imports tensorboard.
    """
    further_names = ["torch.utils.tensorboard"] if "tensorboard" in names else []
    finder = _Finder([*names, *further_names])
    imported_before = {name: module for name, module in sys.modules.items() if finder.covers(name)}
    for name in imported_before:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if finder.covers(name)]:
            del sys.modules[name]
        sys.modules.update(imported_before)
