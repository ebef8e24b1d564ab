"""Names for annotations, without an import of torch. It takes seconds, so files that planning reads import it only to
compute."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, dtype
    from torch.nn import Module

    from unlearning_audit.training.engine import State
    from unlearning_audit.training.stack import ModelStack
else:
    ModelStack = Module = State = Tensor = dtype = Any

__all__ = ["ModelStack", "Module", "State", "Tensor", "dtype"]
