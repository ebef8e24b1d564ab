"""One step of many models: stacked in one set of tensor operations, or one model after the other.

Both engines take the same arguments and agree up to floating-point rounding. Stacking is faster where a step is
small (four times for a small MLP on a CPU), serial where one model fills the caches (convolutions on a CPU).
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

State = dict[str, Tensor]


#: Alignment in bytes of each model's numbers, so that matrix kernels give the same bits for all models.
LINE = 64


def linear_layers(model: nn.Module) -> list[tuple[str, nn.Module]] | None:
    """The layers of a plain chain of Flatten, Linear and elementwise layers; None for any other network."""
    kinds = (nn.Flatten, nn.Linear, nn.ReLU, nn.Tanh)
    if not isinstance(model, nn.Sequential) or any(type(m) not in kinds for m in model):
        return None
    if any(isinstance(m, nn.Flatten) and (m.start_dim, m.end_dim) != (1, -1) for m in model):
        return None
    return list(model.named_children())


def forward_one(model: nn.Module, parameters: State, buffers: State, x: Tensor, reading: str | None = None) -> Tensor:
    """Logits [batch, classes] of a single model with the given weights, or another ``reading`` that it offers; updates
    ``buffers`` in place."""
    return functional_call(model, {**parameters, **buffers}, (x,), {"reading": reading} if reading else {})


@contextmanager
def repeatable() -> Iterator[None]:
    """Deterministic convolutions on a GPU, for logits that are compared."""
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.deterministic
    cudnn.benchmark, cudnn.deterministic = False, True
    try:
        yield
    finally:
        cudnn.benchmark, cudnn.deterministic = before


def _room(models: int, rows: int, columns: int, like: Tensor) -> Tensor:
    """Uninitialised [models, rows, columns], each model at a multiple of `LINE` bytes."""
    per_line = LINE // like.element_size()
    stride = -(-rows * columns // per_line) * per_line
    return like.new_empty(models * stride).as_strided((models, rows, columns), (stride, columns, 1))


def _aligned(x: Tensor) -> Tensor:
    """``x`` [models, rows, columns] itself, or a copy of it, with each model at a multiple of `LINE` bytes.

    The last bits of a matrix product depend on where in memory its factors and its result lie: without this,
    a model's numbers would depend on its place in the stack.
    """
    if x[0].is_contiguous() and x.data_ptr() % LINE == 0 and x.stride(0) * x.element_size() % LINE == 0:
        return x
    return _room(*x.shape, like=x).copy_(x)


class StackedLinear(torch.autograd.Function):
    """``x`` [n, b, in] · ``weight`` [n, out, in]ᵀ + ``bias`` [n, out] or None, the same for a model in any slot.

    Gradients come in the weights' own layout (the automatic ones are transposed, which slows the optimiser
    by a third).
    """

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        x, weight = _aligned(x), _aligned(weight)
        ctx.save_for_backward(x, weight)
        out = _room(*x.shape[:2], weight.shape[1], like=x)
        if bias is None:
            return torch.bmm(x, weight.mT, out=out)
        return torch.baddbmm(bias.unsqueeze(1), x, weight.mT, out=out)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needed, gradient = ctx.needs_input_grad, _aligned(gradient)
        to_x = torch.bmm(gradient, weight, out=_room(*x.shape, like=x)) if needed[0] else None
        to_weight = torch.bmm(gradient.mT, x, out=_room(*weight.shape, like=x)).contiguous() if needed[1] else None
        return to_x, to_weight, gradient.sum(1) if needed[2] else None


class Stacked:
    """All models of a group in one batched operation per layer; groups of 2 to ``width`` models."""

    def __init__(self, model: nn.Module, width: int = 16) -> None:
        self.model, self.width, self.layers = model, width, linear_layers(model)

    def groups(self, models: int) -> list[list[int]]:
        """Model numbers that are trained together. A single model is padded with a copy of itself (a ghost), because
        a width of one uses other kernels, whose last bits differ."""
        groups = [list(range(i, min(i + self.width, models))) for i in range(0, models, self.width)]
        return [group if len(group) > 1 else group * 2 for group in groups]

    def forward(self, parameters: State, buffers: State, x: Tensor, reading: str | None = None) -> Tensor:
        """``x`` [models, batch, …] → logits [models, batch, classes], or another ``reading`` of the model."""
        if self.layers is None:
            run = vmap(lambda p, b, v: forward_one(self.model, p, b, v, reading))
            return run(parameters, buffers, x)
        for name, layer in self.layers:
            if isinstance(layer, nn.Flatten):
                x = x.flatten(2)
            elif isinstance(layer, nn.Linear):
                x = StackedLinear.apply(x, parameters[f"{name}.weight"], parameters.get(f"{name}.bias"))
            else:
                x = layer(x)
        return x


class Serial:
    """One model at a time in one process; the group is a single model with a leading dimension of one."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def groups(self, models: int) -> list[list[int]]:
        """Every model is its own group."""
        return [[i] for i in range(models)]

    def forward(self, parameters: State, buffers: State, x: Tensor, reading: str | None = None) -> Tensor:
        """``x`` [1, batch, …] → logits [1, batch, classes], or another ``reading`` of the model."""
        own = {name: value[0] for name, value in parameters.items()}
        # Views, so that running statistics are updated in place.
        statistics = {name: value[0] for name, value in buffers.items()}
        return forward_one(self.model, own, statistics, images_last(x[0]), reading).unsqueeze(0)


def images_last(x: Tensor) -> Tensor:
    """Images [b, c, h, w] in the memory order in which convolutions are fastest; anything else as it is."""
    return x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x


def choose(model: nn.Module, backend: str = "auto", device: str = "cpu") -> Stacked | Serial:
    """The engine for ``model``: ``stacked``, ``serial``, or by cost (``auto``).

    Measured on CPUs: a chain of linear layers below about 100,000 weights gains a factor of four from
    stacking; larger ones exceed the cache, and convolutions gain nothing. On a GPU such a chain is bound by kernel
    launches at any size, so all models of a job are stacked.
    """
    on_gpu = torch.device(device).type == "cuda"
    if backend == "auto":
        small = on_gpu or sum(p.numel() for p in model.parameters()) < 1e5
        backend = "stacked" if linear_layers(model) is not None and small else "serial"
    return Stacked(model, 128 if on_gpu else 16) if backend == "stacked" else Serial(model)
