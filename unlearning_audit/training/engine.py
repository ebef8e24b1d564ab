"""Two engines that compute one step of many models: stacked in one set of tensor operations, or one model at a time.

Both take the same arguments and agree up to rounding. Stacking is faster if a step is small (four times for a small MLP
on a CPU); serial computation is faster if one model fills the caches (convolutions on a CPU).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import vmap

#: Name → tensor: parameters or buffers of one model or, with a leading dimension, of many.
State = dict[str, Tensor]

#: Alignment in bytes of each model's values, so that matrix kernels give the same bits for every model of a stack.
LINE = 64


def linear_layers(model: nn.Module) -> list[tuple[str, nn.Module]] | None:
    """Return the layers, with names, of a plain chain of Linear and elementwise layers, which may begin with a Flatten.

    Return None for any other network, and if a module has hooks or a ``forward`` of its own. An elementwise layer may
    occur several times, a linear one or its weight only once.
    """
    if not isinstance(model, nn.Sequential) or type(model).forward is not nn.Sequential.forward:
        return None
    layers = list(model._modules.items())  # named_children leaves out what comes again
    first_layer = layers[0][1] if layers else None
    if isinstance(first_layer, nn.Flatten) and (first_layer.start_dim, first_layer.end_dim) != (1, -1):
        return None
    # The slice begins at True, which is 1, after a Flatten, and else at False, which is 0.
    if any(type(layer) not in (nn.Linear, nn.ReLU, nn.Tanh) for _, layer in layers[type(first_layer) is nn.Flatten :]):
        return None
    if any(_changed(module) for module in model.modules()):
        return None
    weights = sum(len(list(layer.parameters())) for _, layer in layers)
    return layers if weights == len(list(model.parameters())) else None  # the model lists a shared weight only once


def _changed(module: nn.Module) -> bool:
    """Return whether a module computes something else than its class does, because of hooks or a ``forward`` of its
    own."""
    hooks = (value for name, value in vars(module).items() if name.endswith("_hooks") and "state_dict" not in name)
    return "forward" in vars(module) or any(hooks)


def forward_one(model: nn.Module, parameters: State, buffers: State, x: Tensor, reading: str | None = None) -> Tensor:
    """Return the logits [batch, classes] of one model with these ``parameters`` and ``buffers`` (name → tensor) for
    ``x`` [batch, …], or its output ``reading``, if that is given. ``buffers`` are updated in place."""
    with placed(places(model), {**parameters, **buffers}):
        return _answer(model, x, reading)


def _answer(model: nn.Module, x: Tensor, reading: str | None) -> Tensor:
    """Return the logits of ``model`` for ``x``, or its output ``reading``, if that is given."""
    answer: Tensor = model(x, **({"reading": reading} if reading else {}))
    return answer


@contextmanager
def repeatable() -> Iterator[None]:
    """Within the context, convolutions on a GPU are deterministic, so that logits can be compared."""
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.deterministic
    cudnn.benchmark, cudnn.deterministic = False, True
    try:
        yield
    finally:
        cudnn.benchmark, cudnn.deterministic = before


def _room(like: Tensor, *shape: int) -> Tensor:
    """Return an uninitialised tensor of this ``shape``, [models, rows, columns], with the dtype and device of ``like``,
    in which each model starts at a multiple of `LINE` bytes."""
    models, rows, columns = shape
    per_line = LINE // like.element_size()
    stride = -(-rows * columns // per_line) * per_line  # the numbers of one model, rounded up to whole lines
    return like.new_empty(models * stride).as_strided(shape, (stride, columns, 1))


def _aligned(x: Tensor) -> Tensor:
    """Return ``x`` [models, rows, columns], or a copy of it, with each model at a multiple of `LINE` bytes.

    The last bits of a matrix product depend on the memory addresses of its factors and result. Without alignment, a
    model's numbers would depend on its position in the stack.
    """
    if x[0].is_contiguous() and x.data_ptr() % LINE == 0 and x.stride(0) * x.element_size() % LINE == 0:
        return x
    return _room(x, *x.shape).copy_(x)


#: Elementwise layers: the function, in place, and its backward: (gradient, output) → gradient at the input.
ELEMENTWISE: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    "relu": (torch.relu_, lambda gradient, out: torch.ops.aten.threshold_backward(gradient, out, 0)),
    "tanh": (torch.tanh_, torch.ops.aten.tanh_backward),
}


def chain_forward(
    x: Tensor, steps: tuple[str, ...], weights: Sequence[Tensor | None]
) -> tuple[list[Tensor], list[Tensor]]:
    """Compute a chain of layers for n models at once; return the values before and after each layer, and the weights of
    the linear layers, aligned in memory (`_aligned`).

    Parameters
    ----------
    x : float [n, b, in]
        The input.
    steps : tuple of str
        The kind of each layer: "linear", "relu" or "tanh".
    weights : sequence of tensors
        For each linear layer, its weight [n, out, in] and its bias [n, out] or None.

    Returns
    -------
    values : list of tensors [n, b, …]
        The input and each layer's output. If an elementwise layer follows a linear one, both entries are one tensor,
        which holds the output of the elementwise layer.
    matrices : list of tensors [n, out, in]
        The weights of the linear layers.
    """
    values, matrices = [_aligned(x)], [_aligned(weight) for weight in weights[::2] if weight is not None]
    linear = zip(matrices, weights[1::2], strict=True)  # weight and bias of each linear layer
    for step, previous_step in zip(steps, (None, *steps), strict=False):  # the last step precedes none
        x = values[-1]
        if step == "linear":
            matrix, bias = next(linear)
            out = _room(x, *x.shape[:2], matrix.shape[1])
            if bias is None:
                torch.bmm(x, matrix.mT, out=out)
            else:
                torch.baddbmm(bias.unsqueeze(1), x, matrix.mT, out=out)
        else:  # in place after a linear layer, whose own output nothing else needs
            out = ELEMENTWISE[step][0](x if previous_step == "linear" else x.clone())
        values.append(out)
    return values, matrices


def chain_backward(
    steps: tuple[str, ...], values: Sequence[Tensor], matrices: Sequence[Tensor], gradient: Tensor, to_x: bool = False
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yield, for each linear layer from the last to the first, its number among linear layers, its input [n, b, in] and
    the gradient at its output [n, b, out].

    With ``to_x``, the last of the yielded triples is −1, the input of the chain and the gradient there. ``steps`` (the
    kinds of the layers), ``values`` (before and after each layer) and ``matrices`` (the weights of linear layers) are
    those of `chain_forward`; ``gradient`` [n, b, …] is at the output of the chain.
    """
    number, first_linear = len(matrices), steps.index("linear")
    for i, step in reversed([*enumerate(steps)]):
        if step != "linear":
            gradient = ELEMENTWISE[step][1](gradient, values[i + 1])  # from the gradient at its output, and its output
            continue
        number, gradient = number - 1, _aligned(gradient)
        yield number, values[i], gradient
        if i > first_linear or to_x:  # something before this layer needs the gradient at its input
            gradient = torch.bmm(gradient, matrices[number], out=_room(gradient, *values[i].shape))
    if to_x:
        yield -1, values[0], gradient


def weight_gradient(gradient: Tensor, x: Tensor) -> Tensor:
    """Return the gradient [n, out, in] of a linear layer's weight from the aligned gradient at its output [n, b, out]
    and its input ``x``.

    It has the weight's memory layout; autograd's is transposed, which slows the optimiser by a third.
    """
    return torch.bmm(gradient.mT, x, out=_room(x, len(x), gradient.shape[2], x.shape[2])).contiguous()


class StackedChain(torch.autograd.Function):
    """A chain of linear and elementwise layers (`chain_forward`) as one node of autograd, with the same bits for a
    model at every position in the stack.

    With a node for each layer, autograd would take as long as the products of a small network.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, steps: tuple[str, ...], *weights: Tensor | None) -> Tensor:
        """Return the output [n, b, out] of the chain for ``x`` [n, b, in], and keep in ``ctx`` what `backward` needs.
        ``steps`` and ``weights`` are those of `chain_forward`."""
        values, matrices = chain_forward(x, steps, weights)
        ctx.steps = steps
        ctx.save_for_backward(*values, *matrices)
        return values[-1]

    @staticmethod
    def backward(ctx: Any, at_output: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the arguments of `forward`, from the gradient ``at_output`` [n, b, out] of the chain:
        of ``x`` [n, b, in], of ``steps`` (None), and of each weight and bias; None where none is asked for."""
        values, matrices = ctx.saved_tensors[: len(ctx.steps) + 1], ctx.saved_tensors[len(ctx.steps) + 1 :]
        to_x, _, *trainable = ctx.needs_input_grad
        gradients: list[Tensor | None] = [None] * len(trainable)
        for layer, x, gradient in chain_backward(ctx.steps, values, matrices, at_output, to_x):
            if layer >= 0 and trainable[2 * layer]:
                gradients[2 * layer] = weight_gradient(gradient, x)
            if layer >= 0 and trainable[2 * layer + 1]:
                gradients[2 * layer + 1] = gradient.sum(1)
            if not to_x and not any(trainable[: 2 * layer]):
                break  # nothing before this layer needs a gradient
        return gradient if to_x else None, None, *gradients


class Stacked:
    """An engine that computes all models of a group in one batched operation per layer. Groups have 2 to ``width``
    models.

    ``model`` gives the architecture; ``layers``: its layers with names if it is a plain chain (`linear_layers`), which
    is then computed by `StackedChain`, else None.
    """

    def __init__(self, model: nn.Module, width: int = 16) -> None:
        self.model, self.width, self.layers = model, width, linear_layers(model)

    def for_model(self, model: nn.Module) -> "Stacked":
        """Return an engine of this kind for another ``model``."""
        return Stacked(model, self.width)

    def groups(self, models: int) -> list[list[int]]:
        """Return the numbers of the models that are trained together, one list per group.

        A group of a single model is padded with a copy of it (a ghost), because a width of one uses other kernels,
        whose last bits differ.
        """
        groups = [list(range(i, min(i + self.width, models))) for i in range(0, models, self.width)]
        return [group if len(group) > 1 else group * 2 for group in groups]

    def forward(self, parameters: State, buffers: State, x: Tensor, reading: str | None = None) -> Tensor:
        """Map ``x`` [models, batch, …] to logits [models, batch, classes], or to the models' output ``reading``, if
        that is given. ``parameters`` and ``buffers``: name → [models, …]."""
        logits: Tensor
        if self.layers is None:
            logits = vmap(partial(forward_one, self.model, reading=reading))(parameters, buffers, x)
        else:
            names, steps = self.chain()
            logits = StackedChain.apply(x.flatten(2), steps, *(parameters.get(name) for name in names))
        return logits

    def chain(self) -> tuple[list[str], tuple[str, ...]]:
        """Return, for a plain chain, the names of each linear layer's weight and bias, in turn, and the kinds of all
        layers ("linear", "relu", "tanh"). A Flatten is left out."""
        layers = [(name, layer) for name, layer in self.layers or () if not isinstance(layer, nn.Flatten)]
        linear = [name for name, layer in layers if isinstance(layer, nn.Linear)]
        names = [f"{name}.{part}" for name in linear for part in ("weight", "bias")]
        return names, tuple(type(layer).__name__.lower() for _, layer in layers)


class Serial:
    """An engine that computes one model at a time; a group is a single model with a leading dimension of one.

    ``fusion``: the size of the batches that the model's compiled forward pass takes in training, and that pass, which
    maps weights and (images,) to logits; or None.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model, self.places = model, places(model)
        # Within `lasting`: the parameters; views of all tensors without the leading dimension of one; and pairs of a
        # trained parameter and its view.
        self._stacked: State | None = None
        self._views: State = {}
        self._pairs: list[tuple[Tensor, Tensor]] = []
        self.fusion: tuple[int, Callable[..., Tensor]] | None = None

    def for_model(self, model: nn.Module) -> "Serial":
        """Return an engine of this kind for another ``model``."""
        return Serial(model)

    def groups(self, models: int) -> list[list[int]]:
        """Return one group for each model."""
        return [[i] for i in range(models)]

    @contextmanager
    def lasting(self, parameters: State, buffers: State) -> Iterator[None]:
        """Within the context, `forward` reads ``parameters`` and ``buffers`` through views that are made once.

        Views made in every step would take as long as the layers of a small network. `hand_on` must be called after
        each backward pass.
        """
        self._stacked = parameters
        self._views = {name: value.detach().squeeze(0) for name, value in (*parameters.items(), *buffers.items())}
        for name, value in parameters.items():
            self._views[name].requires_grad_(value.requires_grad)
        self._pairs = [(value, self._views[name]) for name, value in parameters.items() if value.requires_grad]
        try:
            with placed(self.places, self._views):
                yield
        finally:
            self._stacked, self._views, self._pairs = None, {}, []

    def hand_on(self) -> None:
        """Add the gradients of the views made by `lasting` to those of the parameters, and clear those of the views."""
        for value, view in self._pairs:
            gradient = view.grad
            if gradient is not None:
                view.grad, gradient = None, gradient.unsqueeze(0)
                value.grad = gradient if value.grad is None else value.grad + gradient

    def forward(self, parameters: State, buffers: State, x: Tensor, reading: str | None = None) -> Tensor:
        """Map ``x`` [1, batch, …] to logits [1, batch, classes]. ``parameters`` and ``buffers``: name → [1, …];
        ``reading``: the name of another output of the model, which replaces the logits."""
        if parameters is self._stacked:  # within `lasting`, the module already has these weights
            return _answer(self.model, images_last(x[0]), reading).unsqueeze(0)
        # Views: running statistics are updated in place, and gradients reach the stack without a copy.
        weights = {name: v.squeeze(0) for name, v in (*parameters.items(), *buffers.items())}
        # Full batches in training go through the compiled pass, if there is one.
        if self.fusion and len(x[0]) == self.fusion[0] and self.model.training and not reading:
            return self.fusion[1](weights, (images_last(x[0]),)).unsqueeze(0)
        with placed(self.places, weights):
            return _answer(self.model, images_last(x[0]), reading).unsqueeze(0)


def places(model: nn.Module) -> dict[str, list[tuple[dict[str, Any], str]]]:
    """Return where modules store each parameter and buffer: its listed name → pairs of a module's dictionary and the
    key in it.

    Tied weights have several pairs, under the name that is listed first.
    """
    names: dict[int, str] = {}  # identity of a tensor → the name under which it is listed first
    by_name: dict[str, list[tuple[dict[str, Any], str]]] = {}
    for prefix, module in model.named_modules():
        for tensors in (module._parameters, module._buffers):
            for key, value in tensors.items():
                if value is not None:
                    name = names.setdefault(id(value), f"{prefix}.{key}".lstrip("."))
                    by_name.setdefault(name, []).append((tensors, key))
    return by_name


def aliases(model: nn.Module) -> dict[str, str]:
    """Return the further names of parameters that a state dict lists several times, such as tied weights: further name
    → first name."""
    first_names = {id(value): name for name, value in model.named_parameters()}
    listed = model.state_dict(keep_vars=True).items()
    return {name: first_names[id(value)] for name, value in listed if first_names.get(id(value), name) != name}


@contextmanager
def placed(places: dict[str, list[tuple[dict[str, Any], str]]], weights: State) -> Iterator[None]:
    """Within the context, a module computes with ``weights``; after it, the module has its own weights again.

    ``places``: where the module keeps each tensor, as `places` returns it. ``weights``: name → tensor. Torch's
    ``functional_call`` does the same, but does not restore a layer that occurs twice in the module.
    """
    before = [(tensors, key, tensors[key]) for name in weights for tensors, key in places[name]]
    try:
        for name, value in weights.items():
            for tensors, key in places[name]:
                tensors[key] = value
        yield
    finally:
        for tensors, key, value in before:
            tensors[key] = value


def images_last(x: Tensor) -> Tensor:
    """Return images [b, c, h, w] in the memory order in which convolutions are fastest, and any other ``x``
    unchanged."""
    return x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x


def choose(model: nn.Module, backend: str = "auto", device: str = "cpu") -> Stacked | Serial:
    """Return the engine for ``model``: the one that ``backend`` names ("stacked" or "serial"), or for "auto" the one
    that is faster on the ``device``.

    Measured on CPUs (tests/benchmarks/loops.py): stacking two to eight models makes a chain of 9,000 weights 1.4 to 3.4
    times as fast, and one of 180,000 weights 10 to 25 % faster; above 300,000 it gains almost nothing. Convolutions
    become slower. On a GPU, kernel launches limit chains of any size, so all models of a job are stacked.
    """
    on_gpu = torch.device(device).type == "cuda"
    if backend == "auto":
        small = on_gpu or sum(p.numel() for p in model.parameters()) < 2e5
        backend = "stacked" if linear_layers(model) is not None and small else "serial"
    return Stacked(model, 128 if on_gpu else 16) if backend == "stacked" else Serial(model)
