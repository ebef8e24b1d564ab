"""Run published code that asks for a graphics card on the processor, if there is no card."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode


class OnProcessor(TorchFunctionMode):
    """A mode of torch in which ``.cuda()``, ``.to("cuda")`` and ``device="cuda"`` leave tensors on the processor."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call the function ``func`` of torch with ``args`` and ``kwargs``, in which a card is replaced by the
        processor. A function that only moves a tensor to a card returns the tensor. ``types``, which torch gives too,
        are not needed."""
        kwargs = kwargs or {}
        if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        if func is torch.Tensor.to:
            args = tuple("cpu" if _is_card(value) else value for value in args)
        if _is_card(kwargs.get("device")):
            kwargs = {**kwargs, "device": "cpu"}
        return func(*args, **kwargs)


def _is_card(value: object) -> bool:
    """Return whether an argument ``value`` names a graphics card: a device such as "cuda:0", or the number of a card.
    True and False, which Python counts as integers, do not."""
    if isinstance(value, int):
        return not isinstance(value, bool)
    return isinstance(value, (str, torch.device)) and str(value).startswith("cuda")


#: Functions of torch.cuda that fail without a card → what they return instead.
INSTEAD = {"synchronize": None, "set_device": None, "reset_peak_memory_stats": None, "current_device": 0}


@contextmanager
def without_card(device: str) -> Iterator[None]:
    """Within the context, calls of torch that ask for a graphics card leave tensors on the processor, and the functions
    of torch.cuda that `INSTEAD` names do nothing. If ``device`` is a card, nothing changes."""
    with ExitStack() as stack:
        if torch.device(device).type == "cpu":
            stack.enter_context(OnProcessor())
            for name, value in INSTEAD.items():
                stack.enter_context(mock.patch.object(torch.cuda, name, return_value=value))
        yield
