"""Published code, run as it is: how its file is imported, and what it finds where there is no graphics card."""

import importlib
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from unlearning_audit.plugins.arguments import Parameter

#: Never looked for beside a user's file.
LIBRARY = "unlearning_audit"

#: Functions of torch.cuda that fail without a card, though nothing is lost without them.
NEEDLESS = ("synchronize", "set_device", "reset_peak_memory_stats")


@contextmanager
def function(file: str, name: str, argv: list[str]) -> Iterator[Callable]:
    """The function ``name`` of ``file``, or the class of ``Class.method``; meanwhile its neighbours can be imported.

    Code that reads the command line finds ``argv``. Raises ValueError if the function is not there.
    """
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"{file}: there is no such file; give classic.file relative to the working directory")
    with neighbours(path.resolve()) as dotted, mock.patch.object(sys, "argv", [file, *argv]):
        first, _, method = name.partition(".")
        parent = getattr(importlib.import_module(dotted), first, None)
        if not callable(parent) or (method and not hasattr(parent, method)):
            raise ValueError(f"{file}: there is no function {name!r}; define it or name yours in classic.function")
        yield parent


@contextmanager
def neighbours(file: Path) -> Iterator[str]:
    """Lets Python find ``file`` and what lies beside it before all else; all is as it was afterwards.

    Gives the name by which to import the file, which has points where it lies in packages.
    """
    names, folder = [file.stem], file.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    tops = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    tops = {*tops, names[0]} - {LIBRARY}
    hidden = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in tops}
    path, bytecode = list(sys.path), sys.dont_write_bytecode
    for name in hidden:  # ours of the same name, such as train or metrics, would come first
        del sys.modules[name]
    try:
        sys.path.insert(0, str(folder))
        sys.dont_write_bytecode = True
        importlib.invalidate_caches()
        yield ".".join(names)
    finally:
        sys.path[:], sys.dont_write_bytecode = path, bytecode
        for name in [name for name in sys.modules if name.partition(".")[0] in tops]:
            del sys.modules[name]
        sys.modules.update(hidden)


def parameters(callable_: Callable) -> tuple[list[Parameter], bool]:
    """The parameters that can be given by name, and whether any further keyword can."""
    signature = inspect.signature(callable_).parameters.values()
    keywords = [
        parameter
        for parameter in signature
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    more = any(parameter.kind == parameter.VAR_KEYWORD for parameter in signature)
    return [Parameter(parameter.name, parameter.default is parameter.empty) for parameter in keywords], more


class OnProcessor(TorchFunctionMode):
    """Leaves on the processor what code would move to a graphics card: ``.cuda()``, ``.to("cuda")``, ``device=``."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.to:
            args = tuple("cpu" if _is_card(value) else value for value in args)
        if _is_card(kwargs.get("device")):
            kwargs = {**kwargs, "device": "cpu"}
        return func(*args, **kwargs)


def _is_card(value: object) -> bool:
    return str(value).startswith("cuda") if isinstance(value, (str, torch.device)) else False


@contextmanager
def at_home(device: str) -> Iterator[None]:
    """Where models are on the processor, calls for a graphics card do nothing."""
    with ExitStack() as stack:
        if torch.device(device).type == "cpu":
            stack.enter_context(OnProcessor())
            for name in NEEDLESS:
                stack.enter_context(mock.patch.object(torch.cuda, name, return_value=None))
        yield


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
