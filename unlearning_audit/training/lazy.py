"""torch for files that planning reads, too: it is imported when it is first used, because importing it takes seconds.

Names of types stand for `Any` until a type checker reads them.
"""

import importlib
from typing import TYPE_CHECKING, Any


class _Lazy:
    """A stand-in for the module ``name``, which is imported when one of its attributes is first read."""

    def __init__(self, name: str) -> None:
        """Keep the ``name`` of the module; import nothing."""
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        """Return an ``attribute`` of the module, which is imported if it was not before."""
        return getattr(importlib.import_module(self._name), attribute)


if TYPE_CHECKING:
    import torch
    from torch import Tensor, dtype, nn
    from torch.nn import Module

    from unlearning_audit.training.engine import State
    from unlearning_audit.training.stack import ModelStack
else:
    torch, nn = _Lazy("torch"), _Lazy("torch.nn")
    ModelStack = Module = State = Tensor = dtype = Any

__all__ = ["ModelStack", "Module", "State", "Tensor", "dtype", "nn", "torch"]
