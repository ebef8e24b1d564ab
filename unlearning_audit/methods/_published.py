"""Published code, run as it is: how its file is imported, and what its functions take."""

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
def function(
    file: str, name: str, argv: Sequence[str] = (), without: Sequence[str] = (), skip: Sequence[str] = ()
) -> Iterator[Callable[..., Any]]:
    """The function ``name`` of ``file``, or the class of ``Class.method``; meanwhile its neighbours can be imported.

    The code finds ``argv`` on its command line, and nothing in packages that it is to do ``without``; functions of the
    file called as in ``skip`` do nothing. Raises ValueError if a function is not there, and PluginError that names a
    package which is not installed.
    """
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"{file}: there is no such file; give classic.file relative to the working directory")
    with (
        _packages.absent(without),
        imports.neighbours(path.resolve()) as dotted,
        mock.patch.object(sys, "argv", [file, *argv]),
    ):
        first, _, method = name.partition(".")
        try:
            module = importlib.import_module(dotted)
        except ModuleNotFoundError as error:
            raise not_installed(file, error) from error
        parent = getattr(module, first, None)
        for idle in skip:
            if not callable(getattr(module, idle, None)):
                raise ValueError(f"{file}: there is no function {idle!r} to skip")
            setattr(module, idle, lambda *args, **kwargs: None)
        if not callable(parent) or (method and not hasattr(parent, method)):
            raise ValueError(f"{file}: there is no function {name!r}; define it or name yours in classic.function")
        yield parent


def not_installed(file: str, error: ModuleNotFoundError) -> PluginError:
    """What is said of a package that published code imports and that is not there, at the top of the file or later."""
    package = str(error.name).partition(".")[0]
    advice = f"install it, or name what unlearning does not use: without: [{package}]"
    return PluginError(f"{file}: {package} is not installed; {advice}")


class Args(SimpleNamespace):
    """What code finds in its ``args``, as attributes or as items; a sentence says what to do for a missing name."""

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __contains__(self, name: str) -> bool:
        return name in vars(self)

    def get(self, name: str, default: Any = None) -> Any:
        return vars(self).get(name, default)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"args.{name} is not set; give options.{name}")


def parameters(callable_: Callable[..., Any], *, bound: bool = False) -> tuple[list[Parameter], bool]:
    """The parameters that can be given by name, and whether any further keyword can; of a method that will be
    ``bound``, without the object."""
    signature = list(inspect.signature(callable_).parameters.values())[int(bound) :]
    keywords = [
        parameter
        for parameter in signature
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    more = any(parameter.kind == parameter.VAR_KEYWORD for parameter in signature)
    return [Parameter(parameter.name, parameter.default is parameter.empty) for parameter in keywords], more


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global generators for code that uses them, and put their states back afterwards."""
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
