"""Two engines that compute one step of many models: stacked in one set of tensor operations, or one model at a time.

Both take the same arguments and agree up to rounding. Stacking is faster if a step is small (four times for a small MLP
on a CPU); serial computation is faster if one model fills the caches (convolutions on a CPU).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
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


def chain_layers(model: nn.Module) -> list[tuple[str, nn.Module]] | None:
    """Return the layers, with names, of a plain chain: a Sequential of Linear, ReLU and Tanh layers, which may begin
    with a Flatten of each sample.

    Return None for any other network, and if a module has hooks or a ``forward`` of its own. A ReLU or Tanh may occur
    several times, a linear layer or its weight only once.
    """
    if not isinstance(model, nn.Sequential) or type(model).forward is not nn.Sequential.forward:
        return None
    layers = list(model._modules.items())  # named_children would list a layer that occurs twice only once
    _, first_layer = layers[0] if layers else ("", None)
    if isinstance(first_layer, nn.Flatten) and (first_layer.start_dim, first_layer.end_dim) != (1, -1):
        return None
    chain = layers[1:] if type(first_layer) is nn.Flatten else layers
    if any(type(layer) not in (nn.Linear, nn.ReLU, nn.Tanh) for _, layer in chain):
        return None
    for module in model.modules():  # hooks, other than those on the state dict, may change what a module computes
        hooks = [value for name, value in vars(module).items() if name.endswith("_hooks") and "state_dict" not in name]
        if any(hooks) or "forward" in vars(module):
            return None
    weights = sum(len(list(layer.parameters())) for _, layer in layers)
    return layers if weights == len(list(model.parameters())) else None  # the model lists a shared weight only once


def forward_one(model: nn.Module, parameters: State, buffers: State, x: Tensor, reading: str | None = None) -> Tensor:
    """Return the logits [batch, classes] of one model with these ``parameters`` and ``buffers`` (name → tensor) for
    ``x`` [batch, …]. If ``reading`` is given, return the model's output of that name instead. In training mode, batch
    normalisation updates its ``buffers`` in place."""
    with using_weights(places(model), {**parameters, **buffers}):
        return _output(model, x, reading)


def _output(model: nn.Module, x: Tensor, reading: str | None) -> Tensor:
    """Return the logits of ``model`` for ``x``. If ``reading`` is given, return the model's output of that name."""
    output: Tensor = model(x, reading=reading) if reading else model(x)  # a user's model need not know of readings
    return output


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


def _empty_aligned(like: Tensor, *shape: int) -> Tensor:
    """Return an uninitialised tensor of this ``shape``, [models, rows, columns], with the dtype and device of ``like``.
    In memory, each model's matrix starts at a multiple of `LINE` bytes."""
    models, rows, columns = shape
    per_line = LINE // like.element_size()  # numbers in a line
    stride = -(-rows * columns // per_line) * per_line  # the numbers of one model, rounded up to whole lines
    return like.new_empty(models * stride).as_strided(shape, (stride, columns, 1))


def _aligned(x: Tensor) -> Tensor:
    """Return ``x`` [models, rows, columns] with each model's matrix at a multiple of `LINE` bytes in memory: ``x``
    itself if that is so, else a copy.

    The last bits of a matrix product depend on the memory addresses of its factors and result. Without alignment, a
    model's numbers would depend on its position in the stack.
    """
    if x[0].is_contiguous() and x.data_ptr() % LINE == 0 and x.stride(0) * x.element_size() % LINE == 0:
        return x
    return _empty_aligned(x, *x.shape).copy_(x)


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
    for number, step in enumerate(steps):
        x = values[-1]
        if step == "linear":
            matrix, bias = next(linear)
            out = _empty_aligned(x, *x.shape[:2], matrix.shape[1])
            if bias is None:
                torch.bmm(x, matrix.mT, out=out)
            else:
                torch.baddbmm(bias.unsqueeze(1), x, matrix.mT, out=out)
        else:
            # [0] is the layer's function, which works in place. It may do so after a linear layer, whose output nothing
            # else needs; any other input is copied.
            out = ELEMENTWISE[step][0](x if number > 0 and steps[number - 1] == "linear" else x.clone())
        values.append(out)
    return values, matrices


def chain_backward(
    steps: tuple[str, ...], values: Sequence[Tensor], matrices: Sequence[Tensor], gradient: Tensor, to_x: bool = False
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yield, for each linear layer from the last to the first, its number among linear layers, its input [n, b, in] and
    the gradient at its output [n, b, out].

    Parameters
    ----------
    steps
        The kind of each layer: "linear", "relu" or "tanh".
    values
        The input of the chain and the output of each layer, [n, b, …] each (from `chain_forward`).
    matrices
        The weights of the linear layers, [n, out, in] each, aligned in memory (from `chain_forward`).
    gradient
        [n, b, …]: the gradient at the output of the chain.
    to_x
        Whether a last triple is yielded: −1, the input of the chain, and the gradient there.
    """
    number, first_linear = len(matrices), steps.index("linear")
    for i, step in reversed([*enumerate(steps)]):
        if step != "linear":
            # [1] is the layer's backward, from the gradient at its output, and its output.
            gradient = ELEMENTWISE[step][1](gradient, values[i + 1])
            continue
        number, gradient = number - 1, _aligned(gradient)
        yield number, values[i], gradient
        if i > first_linear or to_x:  # something before this layer needs the gradient at its input
            gradient = torch.bmm(gradient, matrices[number], out=_empty_aligned(gradient, *values[i].shape))
    if to_x:
        yield -1, values[0], gradient


def weight_gradient(gradient: Tensor, x: Tensor) -> Tensor:
    """Return the gradient [n, out, in] of a linear layer's weight: from its input ``x`` [n, b, in], and the aligned
    ``gradient`` at its output [n, b, out].

    The result is contiguous, as the weight is. Autograd's is transposed, which slows the optimiser by a third.
    """
    return torch.bmm(gradient.mT, x, out=_empty_aligned(x, len(x), gradient.shape[2], x.shape[2])).contiguous()


class StackedChain(torch.autograd.Function):
    """A chain of linear and elementwise layers (`chain_forward`) as one node of autograd, with the same bits for a
    model at every position in the stack.

    With a node for each layer, autograd would take as long as the products of a small network.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, steps: tuple[str, ...], *weights: Tensor | None) -> Tensor:
        """Return the output [n, b, out] of the chain for ``x`` [n, b, in], and keep in ``ctx`` what `backward` needs.

        Parameters
        ----------
        steps
            The kinds of the layers.
        weights
            Weight and bias of each linear layer in turn (`chain_forward`).
        """
        values, matrices = chain_forward(x, steps, weights)
        ctx.steps = steps
        ctx.save_for_backward(*values, *matrices)
        return values[-1]

    @staticmethod
    def backward(ctx: Any, at_output: Tensor) -> tuple[Tensor | None, ...]:
        """Return a gradient for each argument of `forward`: for ``x`` [n, b, in], for ``steps`` (None), and for each
        weight and bias. A gradient is None where autograd does not ask for it.

        ``at_output`` [n, b, out] is the gradient at the output of the chain.
        """
        values, matrices = ctx.saved_tensors[: len(ctx.steps) + 1], ctx.saved_tensors[len(ctx.steps) + 1 :]
        to_x, _, *asked = ctx.needs_input_grad  # ``asked``: of the weight and the bias of each linear layer in turn
        gradients: list[Tensor | None] = [None] * len(asked)
        # Layers come from the last to the first; the number −1 stands for the input of the chain.
        for layer, x, gradient in chain_backward(ctx.steps, values, matrices, at_output, to_x):
            if layer >= 0 and asked[2 * layer]:
                gradients[2 * layer] = weight_gradient(gradient, x)
            if layer >= 0 and asked[2 * layer + 1]:
                gradients[2 * layer + 1] = gradient.sum(1)
            if not to_x and not any(asked[: 2 * layer]):
                break  # nothing before this layer needs a gradient
        return gradient if to_x else None, None, *gradients


class Stacked:
    """An engine that computes all models of a group in one batched operation per layer. Groups have 2 to ``width``
    models.

    Parameters
    ----------
    model
        A module that gives the architecture.
    layers
        The layers of ``model`` with names if it is a plain chain (`chain_layers`), which is then computed by
        `StackedChain`, else None.
    """

    def __init__(self, model: nn.Module, width: int = 16) -> None:
        """Keep the ``model``, the largest number of models in a group (``width``), and the model's layers with their
        names if it is a plain chain, else None."""
        self.model, self.width, self.layers = model, width, chain_layers(model)

    def for_model(self, model: nn.Module) -> "Stacked":
        """Return an engine of this kind for another ``model``."""
        return Stacked(model, self.width)

    def groups(self, models: int) -> list[list[int]]:
        """Return the numbers of the models that are trained together, one list of at most ``width`` per group.

        A group of a single model names it twice, and computes a copy of it too, because a stack of one model uses
        other kernels, whose last bits differ.
        """
        groups = [list(range(i, min(i + self.width, models))) for i in range(0, models, self.width)]
        return [group if len(group) > 1 else [*group, *group] for group in groups]

    def forward(self, parameters: State, buffers: State, x: Tensor, reading: str | None = None) -> Tensor:
        """Map ``x`` [models, batch, …] to logits [models, batch, classes].

        A plain chain of layers is computed by `StackedChain`; it has no buffers and no other outputs. Any other network
        is computed by torch's vmap.

        Parameters
        ----------
        parameters, buffers
            Name → [models, …].
        x
            [models, batch, …]: the samples.
        reading
            If given, the models' output of that name is returned instead of logits.
        """
        output: Tensor
        if self.layers is None:
            output = vmap(partial(forward_one, self.model, reading=reading))(parameters, buffers, x)
        else:
            names, steps = self.chain()
            output = StackedChain.apply(x.flatten(2), steps, *(parameters.get(name) for name in names))
        return output

    def chain(self) -> tuple[list[str], tuple[str, ...]]:
        """Return, for a plain chain, the names of each linear layer's weight and bias in turn, and the kinds of all
        layers ("linear", "relu", "tanh"). A Flatten is left out, and a bias is named even if the layer has none."""
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
        """Start without views and without a compiled pass."""
        self.model, self.places = model, places(model)
        # Within `persistent_views`: the parameters; views of all tensors without the leading dimension of one; and
        # pairs of a trained parameter and its view.
        self._viewed_parameters: State | None = None
        self._views: State = {}
        self._trained_views: list[tuple[Tensor, Tensor]] = []
        self.fusion: tuple[int, Callable[..., Tensor]] | None = None

    def for_model(self, model: nn.Module) -> "Serial":
        """Return an engine of this kind for another ``model``."""
        return Serial(model)

    def groups(self, models: int) -> list[list[int]]:
        """Return one group for each model."""
        return [[i] for i in range(models)]

    @contextmanager
    def persistent_views(self, parameters: State, buffers: State) -> Iterator[None]:
        """Within the context, the module computes with views of ``parameters`` and ``buffers`` (name → [1, …]) without
        the leading dimension. `forward` recognises these ``parameters``, and makes no views of its own.

        To make views in every step would take as long as the layers of a small network. Gradients arrive at the views,
        so `add_view_gradients` must be called after each backward pass.
        """
        self._viewed_parameters = parameters
        self._views = {name: value.detach().squeeze(0) for name, value in (*parameters.items(), *buffers.items())}
        for name, value in parameters.items():
            self._views[name].requires_grad_(value.requires_grad)
        self._trained_views = [(value, self._views[name]) for name, value in parameters.items() if value.requires_grad]
        try:
            with using_weights(self.places, self._views):
                yield
        finally:
            self._viewed_parameters, self._views, self._trained_views = None, {}, []

    def add_view_gradients(self) -> None:
        """Add the gradients of the views of `persistent_views` to the gradients of the parameters, and clear the
        gradients of the views.

        A view is of a single model; a parameter has an axis of models, of length 1.
        """
        for value, view in self._trained_views:
            gradient = view.grad
            if gradient is not None:
                view.grad, gradient = None, gradient.unsqueeze(0)
                value.grad = gradient if value.grad is None else value.grad + gradient

    def forward(self, parameters: State, buffers: State, x: Tensor, reading: str | None = None) -> Tensor:
        """Map ``x`` [1, batch, …] to logits [1, batch, classes].

        Full batches in training go through the compiled pass, if there is one (``fusion``).

        Parameters
        ----------
        parameters, buffers
            Name → [1, …].
        x
            [1, batch, …]: the samples.
        reading
            If given, the model's output of that name is returned instead of logits.
        """
        if parameters is self._viewed_parameters:  # within `persistent_views`, the module already has these weights
            return _output(self.model, images_last(x[0]), reading).unsqueeze(0)
        # Views: running statistics are updated in place, and gradients reach the stack without a copy.
        weights = {name: value.squeeze(0) for name, value in (*parameters.items(), *buffers.items())}
        batch_size, fused = self.fusion or (0, None)
        if fused is not None and len(x[0]) == batch_size and self.model.training and not reading:
            return fused(weights, (images_last(x[0]),)).unsqueeze(0)
        with using_weights(self.places, weights):
            return _output(self.model, images_last(x[0]), reading).unsqueeze(0)


def places(model: nn.Module) -> dict[str, list[tuple[dict[str, Any], str]]]:
    """Return where the modules of a ``model`` store each parameter and buffer: its name → pairs of a module's
    dictionary and the key in it.

    A tied weight is stored in several places: it has several pairs, under the name that the model lists first.
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
    """Return the further names of tied weights: further name → first name. A state dict lists a tied weight under all
    of its names, and the model's parameters list it under the first."""
    first_names = {id(value): name for name, value in model.named_parameters()}
    # Buffers have no first name here, and stand for themselves.
    pairs = ((name, first_names.get(id(value), name)) for name, value in model.state_dict(keep_vars=True).items())
    return {name: first for name, first in pairs if first != name}


def unwrapped(state: Mapping[Any, Tensor], model: nn.Module) -> State:
    """Return the tensors of a state dict without the words "module." and "_orig_mod.", which DataParallel and
    torch.compile put before all names, in any order.

    Parameters
    ----------
    state
        Name → tensor.
    model
        The model without wrappers, whose own names are kept as they are.
    """
    names, tensors = model.state_dict().keys(), {}
    for wrapped, tensor in state.items():
        name = str(wrapped)
        while name not in names and name.startswith(("module.", "_orig_mod.")):
            name = name.partition(".")[2]
        tensors[name] = tensor
    return tensors


@contextmanager
def using_weights(places: dict[str, list[tuple[dict[str, Any], str]]], weights: State) -> Iterator[None]:
    """Within the context, a module computes with ``weights``; after it, the module has its own weights again.

    Torch's ``functional_call`` does the same, but does not restore a layer that occurs twice in the module.

    Parameters
    ----------
    places
        Where the module keeps each tensor, as the function `places` returns it.
    weights
        Name → tensor.
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


def choose_engine(model: nn.Module, backend: str = "auto", device: str = "cpu") -> Stacked | Serial:
    """Return the engine for ``model``: the one that ``backend`` names ("stacked" or "serial"), or for "auto" the one
    that is faster on the ``device``. That is stacked for plain chains of layers (`chain_layers`), on a CPU only for
    those with fewer than 200,000 weights. A stacked engine has groups of up to 128 models on a GPU, and of up to 16 on
    a CPU.

    Measured on CPUs (tests/benchmarks/loops.py): stacking two to eight models makes a chain of 9,000 weights 1.4 to 3.4
    times as fast, and one of 180,000 weights 10 to 25 % faster; above 300,000 it gains almost nothing. Convolutions
    become slower. On a GPU, kernel launches limit chains of any size, so all models of a job are stacked.
    """
    on_gpu = torch.device(device).type == "cuda"
    if backend == "auto":
        small = on_gpu or sum(p.numel() for p in model.parameters()) < 2e5
        backend = "stacked" if chain_layers(model) is not None and small else "serial"
    return Stacked(model, 128 if on_gpu else 16) if backend == "stacked" else Serial(model)
