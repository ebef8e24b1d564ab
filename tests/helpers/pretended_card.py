"""A pretended CUDA card on the processor: plain tensors whose storages are tagged as lying on the card.

Numbers are real. Three things are checked that only a card would show: operands in two places, waits for the card
(synchronisations), and what CUDA forbids while a stream is captured. A captured graph is the list of operations with
the tensors they ran on; a replay runs these again, so that what Python does between them is not repeated, as on a card.
What a capture leaves in fresh memory is NaN until the first replay.

Not pretended: which kernels libraries choose, races between streams, memory of the card, autocast's own lists for CUDA.
"""

import collections
import contextlib
import functools
import sys
from collections.abc import Iterator
from unittest import mock

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

CUDA = torch.device("cuda", 0)
LIBRARY = "/unlearning_audit/"

#: Operations that wait for the card because their result, or its shape, is needed in main memory.
WAITING = {
    "aten::_local_scalar_dense", "aten::nonzero", "aten::equal", "aten::masked_select", "aten::is_nonzero",
    "aten::unique_dim", "aten::_unique2", "aten::repeat_interleave.Tensor", "aten::bincount", "aten::allclose",
}  # fmt: skip

#: Operations that a card cannot repeat bit for bit and refuses in deterministic mode, from torch's list
#: (`torch.use_deterministic_algorithms`). Of NLLLoss these are, by torch's source, those of images and not of rows.
UNREPEATABLE = {
    *(f"aten::{name}_backward" for name in (
        "avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "fractional_max_pool2d",
        "fractional_max_pool3d", "upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d", "grid_sampler_2d",
        "upsample_trilinear3d", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "_ctc_loss",
        "_embedding_bag", "grid_sampler_3d",
    )),
    "aten::max_unpool2d", "aten::max_unpool3d", "aten::nll_loss2d_forward", "aten::put_", "aten::histc",
    "aten::bincount", "aten::median", "aten::nanmedian", "aten::scatter_reduce",
}  # fmt: skip

_device_of = torch.Tensor.device
_tags: dict[int, StorageWeakRef] = {}


def tensors(values: object) -> list[torch.Tensor]:
    """All tensors in the arguments or results of an operation, nested in sequences and mappings (torch's own function,
    which knows other containers, takes longer than most operations)."""
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, dict):
        values = values.values()
    elif not isinstance(values, (tuple, list)):
        return []
    return [tensor for value in values for tensor in tensors(value)]


class CaptureError(RuntimeError):
    """An operation that is not permitted while a stream is being captured."""


class PlaceError(RuntimeError):
    """An operation on tensors of the card and of main memory."""


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor below torch.func's wrappers."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def on_card(tensor: torch.Tensor) -> bool:
    """Whether the pretended card holds the tensor."""
    try:
        reference = _tags.get(_storage(_plain(tensor)))
    except (RuntimeError, NotImplementedError):  # no storage, such as a sparse tensor
        return False
    return reference is not None and not reference.expired()


def to_card(tensor: torch.Tensor) -> torch.Tensor:
    """Tag the tensor's storage as lying on the card."""
    storage = _plain(tensor).untyped_storage()
    _tags[storage._cdata] = StorageWeakRef(storage)
    return tensor


def take(tensor: torch.Tensor) -> torch.Tensor:
    """Remove the tag."""
    _tags.pop(_storage(_plain(tensor)), None)
    return tensor


def line() -> str:
    """The line of the library that is running."""
    frame = sys._getframe()
    while frame is not None:
        if LIBRARY in frame.f_code.co_filename:
            return f"{frame.f_code.co_filename.rpartition(LIBRARY)[2]}:{frame.f_lineno}"
        frame = frame.f_back
    return "elsewhere"


class Card(TorchDispatchMode):
    """``waits``: synchronisations by what waited and where; ``uploads``: copies from main memory, likewise.

    ``graph``: the one that is being captured, or None. ``goal``: where the tensors that are made now belong, as Python
    asked for it (True = on the card), or None where the operands decide. ``replays`` of recorded graphs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waits: collections.Counter = collections.Counter()
        self.uploads: collections.Counter = collections.Counter()
        self.graph: Graph | None = None
        self.goal: bool | None = None
        self.previous = False
        self.replays = 0

    def wait(self, reason: str) -> None:
        """Note a synchronisation. Raises CaptureError during a capture."""
        self.waits[f"{reason} at {line()}"] += 1
        self._refuse(reason)

    def upload(self, reason: str = "a copy from main memory") -> None:
        """Note a copy to the card. Raises CaptureError during a capture."""
        self.uploads[f"{reason} at {line()}"] += 1
        self._refuse(reason)

    def _refuse(self, reason: str) -> None:
        if self.graph is not None:
            raise CaptureError(f"operation not permitted when stream is capturing: {reason} at {line()}")

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        keywords, name = dict(keywords or {}), operation._schema.name
        operands = tensors((arguments, keywords))
        places = [on_card(tensor) for tensor in operands]
        any_on_card = any(places)
        goal = self._goal(name, operands, places, keywords)
        if any_on_card:
            self._check(name, arguments, keywords, operands, places)
        recording = self.graph if any_on_card or goal else None
        if recording is not None:
            # The attention of networks without dropout carries the tag and draws nothing.
            if torch.Tag.nondeterministic_seeded in operation.tags and "scaled_dot_product" not in name:
                self._refuse(f"{name} draws random numbers")
            recording.before(operation, arguments, keywords)
        result = operation(*arguments, **keywords)
        self.previous = any_on_card or goal
        if goal:
            for tensor in tensors(result):
                to_card(tensor)
        if recording is not None:
            recording.after(operation, arguments, keywords, result)
        return result

    def _goal(self, name: str, operands: list, places: list[bool], keywords: dict) -> bool:
        """Whether the result belongs on the card."""
        any_on_card, device = any(places), keywords.get("device")
        if name in ("aten::_to_copy", "aten::to"):
            keywords.pop("device", None)  # `Route` has moved it already
            return places[0]
        if name == "aten::copy_":
            if places[0] != places[1] and operands[1].numel():
                self.wait("a copy to main memory") if places[1] else self.upload()
            return places[0]
        if self.goal is not None and not any_on_card:
            if operands and self.goal:
                self.upload()
            return self.goal
        if device is not None and self.goal is None:
            return any_on_card if operands else self.previous  # made within an operation, where its operands are
        if device is not None:
            goal = torch.device(device).type == "cuda"
            keywords["device"] = torch.device("cpu") if goal else device
            return goal
        return any_on_card

    def _check(self, name: str, arguments: tuple, keywords: dict, operands: list, places: list[bool]) -> None:
        """What only a card would refuse or wait for."""
        indexed = "index" in name and len(arguments) > 1 and isinstance(arguments[1], (list, tuple))
        if name in WAITING:
            self.wait(name)
        elif indexed and any(t.dtype in (torch.bool, torch.uint8) for t in tensors(arguments[1])):
            self.wait("a boolean index")
        if all(places) or name in ("aten::copy_", "aten::_to_copy", "aten::to"):
            return
        if indexed:
            if not on_card(arguments[0]):
                raise PlaceError(f"{name}: main memory is indexed by the card at {line()}")
            if any(tensor.ndim and not on_card(tensor) for tensor in tensors((arguments[2:], keywords))):
                raise PlaceError(f"{name}: operands in two places at {line()}")
            for tensor in tensors(arguments[1]):
                if not on_card(tensor):
                    self.upload("an index from main memory")
        elif any(tensor.ndim and not place for tensor, place in zip(operands, places, strict=True)):
            raise PlaceError(f"{name}: operands in two places at {line()}")


#: What puts a tensor elsewhere.
MOVES = frozenset((torch.Tensor.to, torch.Tensor.cpu, torch.Tensor.cuda))


class Route(TorchFunctionMode):
    """Answers Python's requests for the device cuda from main memory, and tags what they make."""

    def __init__(self, card: Card) -> None:
        super().__init__()
        self.card = card

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        keywords = dict(keywords or {})
        if function in MOVES:
            return self._moved(function, arguments, keywords)
        if function is torch.Tensor.backward and len(arguments) == 1 and not keywords.get("create_graph"):
            with self:  # torch's own asks for the device of a stream
                loss = arguments[0]
                torch.autograd.Variable._execution_engine.run_backward(
                    (loss,), (torch.ones_like(loss),), bool(keywords.get("retain_graph")), False, (),
                    allow_unreachable=True, accumulate_grad=True,
                )  # fmt: skip
            return None
        device = keywords.get("device")
        if device is None:
            inner = (
                (arguments and isinstance(arguments[0], torch.Tensor))  # as nearly always, such as to read an attribute
                or tensors((arguments, keywords))
                or getattr(function, "__name__", "") in ("run_backward", "grad")
            )
            return function(*arguments, **keywords) if inner else self._create(False, function, arguments, keywords)
        goal = torch.device(device).type == "cuda"
        if function is torch.as_tensor and isinstance(arguments[0], torch.Tensor) and on_card(arguments[0]) == goal:
            keywords.pop("device")
            return function(*arguments, **keywords)
        result = self._create(goal, function, arguments, {**keywords, "device": "cpu"})
        if goal and not on_card(result):
            self.card.upload(f"a copy from main memory ({getattr(function, '__name__', function)})")
            result = to_card(result.clone())
        return result

    def _create(self, goal: bool, function, arguments: tuple, keywords: dict):
        before, self.card.goal = self.card.goal, goal
        try:
            return function(*arguments, **keywords)
        finally:
            self.card.goal = before

    def _moved(self, function, arguments: tuple, keywords: dict) -> torch.Tensor:
        """``tensor.to(…)`` and its relatives."""
        tensor, *rest = arguments
        place, changes = on_card(tensor), {}
        if function is not torch.Tensor.to:
            goal = function is torch.Tensor.cuda
        elif rest and isinstance(rest[0], torch.Tensor):
            goal, changes = on_card(rest[0]), {"dtype": rest[0].dtype}
        else:
            options = {name: value for name, value in keywords.items() if name != "copy"}
            device, dtype, _, layout = torch._C._nn._parse_to(*rest, **options)
            goal = place if device is None else device.type == "cuda"
            changes = {"dtype": dtype, "memory_format": layout}
        if place and not goal:
            self.card.wait(f"a copy to main memory {tuple(tensor.shape)}")
        changes = {name: value for name, value in changes.items() if value is not None}
        if changes:
            tensor = torch.Tensor.to(tensor, **changes) if function is torch.Tensor.to else tensor
        if place == goal:
            return tensor
        if goal:
            self.card.upload()
            return to_card(tensor.clone())
        return take(tensor.clone())


@functools.cache
def written(operation) -> dict[int, str]:
    """The arguments that an operation writes: place → name."""
    # Batch normalisation writes its running statistics, which its schema keeps to itself.
    return {
        place: argument.name for place, argument in enumerate(operation._schema.arguments)
        if (argument.alias_info is not None and argument.alias_info.is_write)
        or ("batch_norm" in operation._schema.name and argument.name in ("running_mean", "running_var"))
    }  # fmt: skip


@functools.cache
def is_view(operation) -> bool:
    """Whether an operation writes nothing and may give a view of an argument."""
    aliases = [returned.alias_info for returned in operation._schema.returns if returned.alias_info is not None]
    return not written(operation) and any(not alias.is_write for alias in aliases)


class Graph:
    """A captured graph: ``operations`` with their arguments and results; ``fresh``: storages that the capture made;
    ``saved``: storages that it writes, with what they held before, since a capture runs nothing."""

    def __init__(self, card: Card) -> None:
        self.card = card
        self.operations: list[tuple] = []
        self.fresh: set[int] = set()
        self.saved: dict[int, tuple] = {}

    def before(self, operation, arguments: tuple, keywords: dict) -> None:
        for place, name in written(operation).items():
            for tensor in tensors(arguments[place] if place < len(arguments) else keywords.get(name)):
                storage = tensor.untyped_storage()
                if storage._cdata not in self.fresh and storage._cdata not in self.saved:
                    self.saved[storage._cdata] = storage, storage.clone()

    def after(self, operation, arguments: tuple, keywords: dict, result) -> None:
        results, sources = tensors(result), {_storage(tensor) for tensor in tensors((arguments, keywords))}
        self.fresh |= {_storage(tensor) for tensor in results} - sources
        self.operations.append((operation, arguments, keywords, results, sources))

    def end(self) -> None:
        """What a capture leaves behind: nothing was run, and fresh memory holds anything."""
        for storage, before in self.saved.values():
            storage.copy_(before)
        for *_, results, _ in self.operations:
            for tensor in results:
                if _storage(tensor) in self.fresh and tensor.is_floating_point():
                    tensor.detach().fill_(float("nan"))

    @torch.no_grad()
    def replay(self) -> None:
        self.card.replays += 1
        with torch._C._DisableTorchDispatch():
            for operation, arguments, keywords, results, sources in self.operations:
                if is_view(operation) and results and _storage(results[0]) in sources:
                    continue
                again = tensors(operation(*arguments, **keywords))
                for result, value in zip(results, again, strict=False):
                    if _storage(result) not in sources:
                        result.detach().copy_(value)


class Stream:
    """A stream that is always ready."""

    def __init__(self, card: Card) -> None:
        self.card = card

    def wait_stream(self, stream: "Stream") -> None:
        """Streams run one after the other here."""

    def synchronize(self) -> None:
        self.card.wait("Stream.synchronize")


@contextlib.contextmanager
def pretended() -> Iterator[Card]:
    """The pretended card, with those parts of torch.cuda that the engine uses. Memory is never used up."""
    card = Card()
    streams = [Stream(card)]

    @contextlib.contextmanager
    def stream(current: Stream):
        streams.append(current)
        try:
            yield
        finally:
            streams.pop()

    @contextlib.contextmanager
    def capture(graph: Graph, **keywords):
        assert card.graph is None, "a capture within a capture"
        card.graph = graph
        try:
            yield
        finally:
            card.graph = None
        graph.end()

    import torch._dynamo  # names torch.Generator in annotations, so it comes before that is replaced

    class Generator(torch.Generator):
        def __new__(cls, device="cpu"):
            return super().__new__(cls, "cpu")

    to_numpy, autocast = torch.Tensor.numpy, torch.autocast

    def numpy(self, *arguments, **keywords):
        if on_card(self):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        return to_numpy(self, *arguments, **keywords)

    tensors_of = {
        "device": property(lambda self: CUDA if on_card(self) else _device_of.__get__(self)),
        "is_cuda": property(on_card),
        "numpy": numpy,
    }
    tools = {
        "Generator": Generator,
        "autocast": lambda kind, *a, **k: autocast("cpu" if kind == "cuda" else kind, *a, **k),
    }
    cuda = {  # classes stay classes, for libraries name them in annotations
        "_lazy_init": lambda: None,
        "Stream": type("Stream", (Stream,), {"__init__": lambda self, *arguments: Stream.__init__(self, card)}),
        "stream": stream,
        "current_stream": lambda *arguments: streams[-1],
        "CUDAGraph": type("CUDAGraph", (Graph,), {"__init__": lambda self: Graph.__init__(self, card)}),
        "graph": capture,
        "is_current_stream_capturing": lambda: card.graph is not None,
        "synchronize": lambda *arguments: card.wait("torch.cuda.synchronize"),
        "graph_pool_handle": object,
        "empty_cache": lambda: None,
        "mem_get_info": lambda *arguments: (1 << 33, 1 << 33),
    }
    with (
        mock.patch.multiple(torch.Tensor, **tensors_of), mock.patch.multiple(torch, **tools),
        mock.patch.multiple(torch.cuda, **cuda), card, Route(card),
    ):  # fmt: skip
        yield card
