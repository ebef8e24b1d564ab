"""What published code finds where there is no graphics card: its calls for one do nothing."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

TYPES = ("FloatTensor", "DoubleTensor", "HalfTensor", "LongTensor", "IntTensor", "BoolTensor", "ByteTensor")


class OnProcessor(TorchFunctionMode):
    """Leaves on the processor what code would move to a graphics card: ``.cuda()``, ``.to("cuda")``, ``device=``."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        if func is torch.Tensor.to:
            args = tuple("cpu" if _is_card(value) else value for value in args)
        if func is torch.Tensor.type:
            args = tuple(_plain(value) for value in args)
        if _is_card(kwargs.get("device")):
            kwargs = {**kwargs, "device": "cpu"}
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        return func(*args, **kwargs)


class Idle:
    """In place of an event, a stream or the context of a card: nothing is measured, and nothing runs beside the code
    that is to be waited for."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def __enter__(self) -> "Idle":
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def record(self, *args: object) -> None:
        """Nothing to do, as all methods here."""

    synchronize = wait = wait_stream = wait_event = record

    def query(self) -> bool:
        return True

    def record_event(self, event: "Idle | None" = None) -> "Idle":
        return event or Event()

    def elapsed_time(self, end_event: "Idle") -> float:
        return 0.0


class Event(Idle):
    """torch.cuda.Event."""


class Stream(Idle):
    """torch.cuda.Stream."""


class Device(Idle):
    """torch.cuda.device, which selects a card for a while."""


class Selected(Idle):
    """torch.cuda.stream, which selects a stream for a while."""


class _AlsoNative(type(torch._C.Generator)):  # type: ignore[misc]  # the metaclass has no public name
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch._C.Generator)


class Generator(torch._C.Generator, metaclass=_AlsoNative):
    """torch.Generator, on the processor also where a card was asked for."""

    def __new__(cls, device: object = "cpu") -> "Generator":
        return super().__new__(cls, "cpu" if _is_card(device) else device)  # type: ignore[call-arg]  # stubs lack it


def _is_card(value: object) -> bool:
    """Whether a device is a card; a whole number is the number of one."""
    if isinstance(value, int):
        return not isinstance(value, bool)
    return str(value).startswith("cuda") if isinstance(value, (str, torch.device)) else False


def _plain(value: object) -> object:
    """The name of a type of tensors on a card as that on the processor."""
    return value.replace("torch.cuda.", "torch.") if isinstance(value, str) else value


def _loaded(load: Callable[..., object]) -> Callable[..., object]:
    """torch.load, which maps to the processor what code would load onto a card."""

    def loads(file: object, map_location: object = None, **kwargs: object) -> object:
        on_processor = isinstance(map_location, (str, torch.device)) and not _is_card(map_location)
        return load(file, map_location=map_location if on_processor else "cpu", **kwargs)

    return loads


def _giving(value: object) -> Callable[..., object]:
    return lambda *args, **kwargs: value


#: Functions of torch.cuda that fail without a card → what they do instead; torch tells them apart, so each has its own.
INSTEAD: dict[str, Callable[..., object]] = {
    **{name: _giving(None) for name in (
        "synchronize", "set_device", "set_stream", "reset_peak_memory_stats", "reset_max_memory_allocated",
        "reset_max_memory_cached", "init", "ipc_collect", "seed", "seed_all", "set_rng_state_all",
    )},
    **{name: _giving(0) for name in ("current_device", "initial_seed", "memory_usage", "utilization")},
    **{name: lambda *args: Stream() for name in ("current_stream", "default_stream")},
    "is_current_stream_capturing": _giving(False),
    "get_device_name": _giving("cpu"),
    "get_device_capability": _giving((0, 0)),
    "get_device_properties": lambda *args: SimpleNamespace(
        name="cpu", major=0, minor=0, total_memory=0, multi_processor_count=0
    ),
    "mem_get_info": _giving((0, 0)),
    "memory_summary": _giving(""),
    "get_rng_state": lambda *args: torch.get_rng_state(),
    "set_rng_state": lambda state, *args: torch.set_rng_state(state),
    "get_rng_state_all": list,
}  # fmt: skip


@contextmanager
def at_home(device: str) -> Iterator[None]:
    """Where models are on the processor, calls for a graphics card do nothing."""
    with ExitStack() as stack:
        if torch.device(device).type == "cpu":
            stack.enter_context(OnProcessor())
            replaced: dict[str, object] = {name: getattr(torch, name) for name in TYPES}
            replaced |= INSTEAD | {"Event": Event, "Stream": Stream, "device": Device, "stream": Selected}
            for name, value in replaced.items():
                stack.enter_context(mock.patch.object(torch.cuda, name, value))
            for name in ("set_default_device", "set_default_tensor_type"):
                stack.enter_context(mock.patch.object(torch, name, _giving(None)))
            stack.enter_context(mock.patch.object(torch.Tensor, "record_stream", _giving(None)))
            stack.enter_context(mock.patch.object(torch, "load", _loaded(torch.load)))
            stack.enter_context(mock.patch.object(torch, "Generator", Generator))
        yield
