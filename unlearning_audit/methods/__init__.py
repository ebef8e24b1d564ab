"""Unlearning methods: one file each, in the notation of its paper.

A method defines ``class Options(Settings)`` and ``unlearn(stack, forget, retain, options)``, which changes the
models of the stack so that they forget the rows ``forget`` and keep the rows ``retain``. What methods are written
with is imported from here; ``torch`` and ``nn`` (torch.nn) are imported when they are first used, so that options can
be checked without them.

Defaults are for small problems (a few hundred samples, a small network). Where a paper or its code has other
values, the docstring of the options names them, and the study of that paper sets them.
"""

from pydantic import Field

from unlearning_audit.plugins.settings import Passes, Rate, Settings
from unlearning_audit.training.lazy import ModelStack, Module, State, Tensor, dtype, nn, torch
from unlearning_audit.training.losses import cross_entropy, distillation
from unlearning_audit.training.optim import Kind, Optimiser, Schedule
from unlearning_audit.training.streams import Batch, Rows, Stream

__all__ = [
    "Batch", "Kind", "ModelStack", "Module", "Optimiser", "Passes", "Rate", "Rows", "Schedule", "Settings", "State",
    "Stream", "Tensor", "cross_entropy", "distillation", "dtype", "nn", "torch",
]  # fmt: skip


class Momentum(Optimiser):
    """The optimiser of methods that descend with a momentum of .9."""

    momentum: float = Field(0.9, ge=0, lt=1)
