"""Import published code without changing its file, and find out which parameters its functions have."""

import importlib
import inspect
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch

from unlearning_audit.methods import _packages
from unlearning_audit.plugins import imports
from unlearning_audit.plugins.guard import PluginError
from unlearning_audit.plugins.syntax import Parameter


@contextmanager
def imported(
    file: str, name: str, argv: Sequence[str] = (), without: Sequence[str] = (), skip: Sequence[str] = ()
) -> Iterator[Callable[..., Any]]:
    """Import the Python ``file`` and yield its function ``name``, or the class for a name "Class.method".

    Within the context, the code can import the files beside it. Raises ValueError if the file or a function does not
    exist, and PluginError that names a package which is not installed.

    Parameters
    ----------
    argv
        The words that the code finds on its command line.
    without
        Packages that are replaced by stand-ins.
    skip
        Functions of the file that are replaced by one that does nothing.
    """
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"{file}: there is no such file; give classic.file relative to the working directory")
    with (
        _packages.replaced(without),
        imports.neighbours(path.resolve()) as module_name,
        mock.patch.object(sys, "argv", [file, *argv]),
    ):
        outer, _, method = name.partition(".")
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            raise not_installed(file, error) from error
        function_or_class = getattr(module, outer, None)
        for skipped in skip:
            if not callable(getattr(module, skipped, None)):
                raise ValueError(f"{file}: there is no function {skipped!r} to skip")
            setattr(module, skipped, lambda *args, **kwargs: None)
        if not callable(function_or_class) or (method and not hasattr(function_or_class, method)):
            raise ValueError(f"{file}: there is no function {name!r}; define it or name yours in classic.function")
        yield function_or_class


def not_installed(file: str, error: ModuleNotFoundError) -> PluginError:
    """Return the error to raise if the published code in ``file`` imports a package that is not installed. ``error``:
    Python's own."""
    package, _, _ = str(error.name).partition(".")  # of "package.module"
    advice = f"install it, or, if unlearning does not use it, set without: [{package}]"
    return PluginError(f"{file}: {package} is not installed; {advice}")


class Args(SimpleNamespace):
    """The namespace ``args`` of published code, read by attribute or by item. A missing name raises AttributeError that
    says how to set it."""

    def __getitem__(self, name: str) -> Any:
        """Return the value of ``name``, for ``args["name"]``."""
        return getattr(self, name)

    def __contains__(self, name: str) -> bool:
        """Return whether ``name`` is set, for ``"name" in args``."""
        return name in vars(self)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of ``name``, or ``default`` if it is not set, as a dict does."""
        return vars(self).get(name, default)

    def __getattr__(self, name: str) -> Any:
        """Raise AttributeError for a ``name`` that is not set. Python calls this only then. For special names, by which
        Python itself looks for what an object can do, there is no advice."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"args.{name} is not set; give options.{name}")


def parameters(callable_: Callable[..., Any], *, bound: bool = False) -> tuple[list[Parameter], bool]:
    """Return the parameters of the function ``callable_`` that can be given by name, each with whether it is required,
    and whether the function accepts further keywords (``**kwargs``).

    Parameters
    ----------
    bound
        The function is a method that will be called on an object; its first parameter is left out.
    """
    signature = list(inspect.signature(callable_).parameters.values())[int(bound) :]  # a method's first is the object
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    more = any(parameter.kind == parameter.VAR_KEYWORD for parameter in signature)
    named = [each for each in signature if each.kind in by_name]
    return [Parameter(each.name, required=each.default is each.empty) for each in named], more


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within the context, the global generators of torch, NumPy and Python are seeded; afterwards their states are
    restored."""
    numpy_state, python_state = np.random.get_state(), random.getstate()
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            np.random.seed(seed % 2**32)
            random.seed(seed)
            yield
    finally:
        np.random.set_state(numpy_state)
        random.setstate(python_state)
