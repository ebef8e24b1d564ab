"""What published code finds where there is no graphics card: its calls for one do nothing."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

#: Functions that fail without a card → what they give instead.
INSTEAD = {
    "synchronize": None, "set_device": None, "reset_peak_memory_stats": None, "current_device": 0,
    "get_device_name": "cpu",
}  # fmt: skip
TYPES = ("FloatTensor", "DoubleTensor", "HalfTensor", "LongTensor", "IntTensor", "BoolTensor", "ByteTensor")


class OnProcessor(TorchFunctionMode):
    """Leaves on the processor what code would move to a graphics card: ``.cuda()``, ``.to("cuda")``, ``device=``."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.to:
            args = tuple("cpu" if _is_card(value) else value for value in args)
        if func is torch.Tensor.type:
            args = tuple(_plain(value) for value in args)
        if _is_card(kwargs.get("device")):
            kwargs = {**kwargs, "device": "cpu"}
        return func(*args, **kwargs)


class Event:
    """In place of torch.cuda.Event: nothing is measured."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def record(self, *args: object) -> None:
        """Nothing runs beside the code that is to be waited for."""

    synchronize = wait = record

    def elapsed_time(self, other: "Event") -> float:
        return 0.0


def _is_card(value: object) -> bool:
    """Whether a device is a card; a whole number is the number of one."""
    if isinstance(value, int):
        return not isinstance(value, bool)
    return str(value).startswith("cuda") if isinstance(value, (str, torch.device)) else False


def _plain(value: object) -> object:
    """The name of a type of tensors on a card as that on the processor."""
    return value.replace("torch.cuda.", "torch.") if isinstance(value, str) else value


def _loaded(load: Callable) -> Callable:
    """torch.load, which maps to the processor what code would load onto a card."""

    def loads(file: object, map_location: object = None, **kwargs: object) -> object:
        place = "cpu" if map_location is None or _is_card(map_location) else map_location
        return load(file, map_location=place, **kwargs)

    return loads


@contextmanager
def at_home(device: str) -> Iterator[None]:
    """Where models are on the processor, calls for a graphics card do nothing."""
    with ExitStack() as stack:
        if torch.device(device).type == "cpu":
            stack.enter_context(OnProcessor())
            replaced: dict[str, object] = {name: _giving(value) for name, value in INSTEAD.items()}
            replaced |= {name: getattr(torch, name) for name in TYPES}
            replaced |= {"Event": Event, "device": lambda device: nullcontext()}
            for name, value in replaced.items():
                stack.enter_context(mock.patch.object(torch.cuda, name, value))
            for name in ("set_default_device", "set_default_tensor_type"):
                stack.enter_context(mock.patch.object(torch, name, _giving(None)))
            stack.enter_context(mock.patch.object(torch, "load", _loaded(torch.load)))
        yield


def _giving(value: object) -> Callable:
    return lambda *args, **kwargs: value
