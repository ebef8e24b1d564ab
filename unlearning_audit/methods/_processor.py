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
        """Call the function ``func`` of torch with ``args`` and ``kwargs``, in which the card is replaced by the
        processor. ``types``, which torch gives too, are not needed."""
        kwargs = kwargs or {}
        if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        if func is torch.Tensor.to:
            args = tuple("cpu" if _is_card(value) else value for value in args)
        if _is_card(kwargs.get("device")):
            kwargs = {**kwargs, "device": "cpu"}
        return func(*args, **kwargs)


def _is_card(value: object) -> bool:
    """Return whether ``value`` names a graphics card: a device "cuda" or the number of a card."""
    if isinstance(value, int):
        return not isinstance(value, bool)
    return str(value).startswith("cuda") if isinstance(value, (str, torch.device)) else False


#: Functions of torch.cuda that fail without a card → what they return instead.
INSTEAD = {"synchronize": None, "set_device": None, "reset_peak_memory_stats": None, "current_device": 0}


@contextmanager
def at_home(device: str) -> Iterator[None]:
    """Within the context, if ``device`` is the processor, calls that ask for a graphics card leave tensors on the
    processor."""
    with ExitStack() as stack:
        if torch.device(device).type == "cpu":
            stack.enter_context(OnProcessor())
            for name, value in INSTEAD.items():
                stack.enter_context(mock.patch.object(torch.cuda, name, return_value=value))
        yield
