"""Compute sums of per-sample gradients, each clipped to a norm, from one backward pass (book-keeping, Bu et al. 2023).

A layer's inputs and the gradient at its output give the norm of each sample's weight gradient, and then the sum over
samples of the scaled gradients. For linear layers and convolutions, per-sample gradients are not stored if their norms
are cheaper without them (mixed ghost clipping, Bu et al. 2022). For other layers, Opacus computes per-sample gradients.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from opacus.grad_sample import GradSampleModule
from opacus.grad_sample.functorch import ft_compute_per_sample_gradient
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge

from unlearning_audit.training.engine import Stacked, State, chain_backward, chain_forward, weight_gradient

#: The label of a row without a sample, which torch's cross-entropy ignores.
IGNORED = -100

#: What one layer contributes: the squared norms [b] of the samples' gradients of its parameters, and a function that
#: maps factors [b] of the samples to the sums of their gradients times these factors, parameter's name → tensor.
Part = tuple[Tensor, Callable[[Tensor], State]]


def clipping_factors(squared_norms: Tensor, limit: float) -> Tensor:
    """Return the factors [b] that clip gradients with these ``squared_norms`` [b] to norms of at most ``limit``:
    limit/norm, or 1 for smaller gradients. The constant 1e-6, which Opacus uses too, avoids a division by 0."""
    return (limit / (squared_norms.sqrt() + 1e-6)).clamp(max=1.0)


def _squared(rows: Tensor) -> Tensor:
    """Return the squared norm of each of the ``rows``, over the last dimension: [..., d] → [...]."""
    norms: Tensor = torch.linalg.vector_norm(rows, dim=-1)
    return norms.square()


def sums_of_chain(engine: Stacked, parameters: State, x: Tensor, labels: Tensor, limit: float) -> State:
    """Return the sums over samples of the clipped gradients of the cross-entropy of n stacked chains of layers,
    parameter's name → [n, …].

    A layer with input x and gradient g at its output has the weight gradient g·xᵀ, whose squared norm is ‖g‖²‖x‖²; its
    bias has the gradient g. So no gradient of a single sample is stored.

    Parameters
    ----------
    engine
        The engine of the models.
    parameters
        Name → [n, …].
    x
        [n, b, …]: the samples.
    labels
        int64 [n, b]: their labels; `IGNORED` for a row without a sample, which adds nothing.
    limit
        The norm to which each sample's gradient is clipped.
    """
    # The names of weight and bias of each linear layer in turn, and the kinds of all layers.
    names, steps = engine.chain()
    weights = [parameters[name].detach() if name in parameters else None for name in names]  # None: no such bias
    values, matrices = chain_forward(x.flatten(2), steps, weights)
    with torch.enable_grad():
        logits = values[-1].detach().requires_grad_()
        (gradient,) = torch.autograd.grad(_summed_loss(logits.flatten(0, 1), labels.flatten()), logits)
    layers = [*chain_backward(steps, values, matrices, gradient)]  # number, input and gradient at the output of each
    # ‖g‖²‖x‖² of the weight and, where there is a bias, ‖g‖² of the bias.
    squares = [_squared(g) * (_squared(x) + (0 if weights[2 * layer + 1] is None else 1)) for layer, x, g in layers]
    scale, sums = clipping_factors(torch.stack(squares).sum(0), limit).unsqueeze(-1), {}
    for layer, x, gradient in layers:
        scaled = gradient.mul_(scale)
        sums[names[2 * layer]] = weight_gradient(scaled, x)
        if weights[2 * layer + 1] is not None:
            sums[names[2 * layer + 1]] = scaled.sum(1)
    return sums


def sums_of_model(model: nn.Module, x: Tensor, labels: Tensor, limit: float) -> tuple[State, Tensor]:
    """Return the sums over samples of the clipped gradients of the cross-entropy of one ``model``, parameter's name →
    tensor, and the squared norms [b] of the samples' gradients over all parameters, before clipping.

    A hook notes the inputs of each layer with weights, and where its output is in autograd's graph (an edge). One
    backward pass then gives the gradients at all of these edges. Layers that the loss does not depend on have none, and
    are left out.

    Parameters
    ----------
    model
        A network that `private.check_gradient_norms` accepts; for any other, such as one whose layers share weights,
        norms may be wrong without an error. All of its parameters require gradients; torch raises RuntimeError if the
        output of a layer requires none.
    x
        [b, …]: the samples.
    labels
        int64 [b]: their labels; `IGNORED` for a row without a sample, which adds nothing and has the norm 0.
    limit
        The norm to which each sample's gradient is clipped.
    """
    calls: dict[tuple[str, nn.Module], list[Any]] = {}  # (name, layer) → (inputs, edge) of each call of the layer

    def noting(name: str, layer: nn.Module) -> Callable[..., Any]:
        """Return a hook that adds every call of the ``layer`` with the dotted ``name`` to ``calls``, which the function
        around this one reads after the forward pass."""
        return lambda _, inputs, output: calls.setdefault((name, layer), []).append((inputs, get_gradient_edge(output)))

    hooks = [layer.register_forward_hook(noting(name, layer)) for name, layer in layers_with_weights(model)]
    try:
        with torch.enable_grad():
            loss = _summed_loss(model(x), labels)
    finally:
        for hook in hooks:
            hook.remove()
    edges = [edge for calls_of_layer in calls.values() for _, edge in calls_of_layer]
    gradients = iter(torch.autograd.grad(loss, edges, allow_unused=True))  # in the order of ``edges``
    parts = []  # of each layer: squared norms [b], and a function from factors [b] to sums of scaled gradients by name
    with torch.no_grad():
        for (name, layer), calls_of_layer in calls.items():
            pairs = [(inputs, next(gradients)) for inputs, _ in calls_of_layer]
            used = [(inputs, gradient) for inputs, gradient in pairs if gradient is not None]
            if used:
                parts.append(_part_of_layer(f"{name}." if name else "", layer, used))
        squares = torch.stack([squared for squared, _ in parts]).sum(0)
        scale, sums = clipping_factors(squares, limit), {}
        for _, scaled_sum in parts:
            sums.update(scaled_sum(scale))
    return sums, squares


def layers_with_weights(model: nn.Module, name: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Yield (name, layer) for each module in ``model``, itself included, that holds parameters directly.

    If Opacus has no rule for such a layer, layers inside it are not yielded: autograd then computes the gradients of
    the whole layer.

    Parameters
    ----------
    name
        The dotted name of ``model``.
    """
    has_weights = any(True for _ in model.parameters(recurse=False))
    if has_weights:
        yield name, model
    if not has_weights or type(model) in GradSampleModule.GRAD_SAMPLERS:
        for child, module in model.named_children():
            yield from layers_with_weights(module, f"{name}.{child}".lstrip("."))


def _summed_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the sum of the cross-entropy over the samples, [], from ``logits`` [b, classes] and ``labels`` [b]. Rows
    with the label `IGNORED` do not count."""
    return nn.functional.cross_entropy(logits, labels, reduction="sum", ignore_index=IGNORED)


def _part_of_layer(prefix: str, layer: nn.Module, uses: list[tuple[tuple[Tensor, ...], Tensor]]) -> Part:
    """Return one layer's `Part`: the squared norms of its samples' gradients, and the function for their scaled sum.

    A linear layer, or a convolution with plain padding, that is called once has a faster way. For any other layer, the
    per-sample gradients of all calls are computed by Opacus and added up.

    Parameters
    ----------
    prefix
        The start of the names of the layer's parameters.
    uses
        For each call in the forward pass, the layer's inputs and the gradient at its output, [b, …] each.
    """
    ((x, *_), gradient), once = uses[0], len(uses) == 1  # the first input, and the gradient, of the first call
    # `_part_of_product` takes [b, features, places]; ``mT`` swaps the last two dimensions.
    if once and type(layer) is nn.Linear:
        if gradient.ndim == 2:  # one place for each sample
            return _part_of_product(prefix, layer, x.unsqueeze(-1), gradient.unsqueeze(-1))
        return _part_of_product(prefix, layer, x.flatten(1, -2).mT, gradient.flatten(1, -2).mT)
    if once and type(layer) is nn.Conv2d and layer.padding_mode == "zeros" and not isinstance(layer.padding, str):
        return _part_of_convolution(prefix, layer, layer.padding, x, gradient)
    per_sample = GradSampleModule.GRAD_SAMPLERS.get(type(layer), ft_compute_per_sample_gradient)
    names = {id(value): f"{prefix}{name}" for name, value in layer.named_parameters()}
    singles: State = {}
    for inputs, gradient in uses:
        for parameter, value in per_sample(layer, list(inputs), gradient).items():
            name = names[id(parameter)]
            singles[name] = singles[name] + value if name in singles else value
    return _part_of_gradients(singles)


def _part_of_gradients(singles: State) -> Part:
    """Return a layer's `Part` from the gradients of every single sample, ``singles``: name → [b, …]."""
    squared = torch.stack([value.flatten(1).square().sum(1) for value in singles.values()]).sum(0)
    return squared, lambda scale: {name: _weighted_sum(value, scale) for name, value in singles.items()}


def _weighted_sum(singles: Tensor, scale: Tensor) -> Tensor:
    """Return the sum over samples of ``singles`` [b, …], each sample's values times its ``scale`` [b]."""
    return torch.mv(singles.flatten(1).T, scale).view(singles.shape[1:])


def _places_are_cheaper(places: int, inputs: int, outputs: int) -> bool:
    """Return whether the norm of a sample's gradient takes less work from products between ``places`` than from the
    gradient itself (`_part_of_product`).

    Parameters
    ----------
    places
        How often the layer multiplies its weight for one sample, such as once for each pixel of a convolution.
    inputs, outputs
        The sizes of the weight.
    """
    return places * (inputs + outputs) < inputs * outputs


def _part_of_convolution(prefix: str, layer: nn.Conv2d, padding: tuple[int, ...], x: Tensor, gradient: Tensor) -> Part:
    """Return the `Part` of a convolution: the squared norms of its samples' gradients, and the function for their
    scaled sum.

    With one group of channels, it is treated as a linear layer on patches of the image if the input is on a GPU, or if
    that makes norms cheaper. Otherwise the gradients of every single sample are computed.

    Parameters
    ----------
    prefix
        The start of the names of the layer's parameters.
    padding
        Zeros at each edge, for height and width.
    x
        [b, in, h, w]: the input.
    gradient
        [b, out, h', w']: the gradient at the output.
    """
    outputs, *kernel = layer.weight.shape
    if layer.groups == 1 and (x.is_cuda or _places_are_cheaper(gradient[0, 0].numel(), math.prod(kernel), outputs)):
        patches = nn.functional.unfold(x, layer.kernel_size, layer.dilation, padding, layer.stride)
        return _part_of_product(prefix, layer, patches, gradient.flatten(2))
    # The samples are packed into one image, as groups of channels, so that one call gives the gradients of all of them.
    # On a processor this is faster than to copy all patches.
    packed, all_weights = x.reshape(1, len(x) * x.shape[1], *x.shape[2:]), x.new_empty(len(x) * outputs, *kernel)
    _, weights, _ = torch.ops.aten.convolution_backward(
        gradient.reshape(1, -1, *gradient.shape[2:]), packed, all_weights, None, layer.stride, padding, layer.dilation,
        transposed=False, output_padding=[0, 0], groups=len(x) * layer.groups, output_mask=[False, True, False],
    )  # fmt: skip
    bias = {} if layer.bias is None else {f"{prefix}bias": gradient.sum((2, 3))}
    return _part_of_gradients({f"{prefix}weight": weights.view(len(x), outputs, *kernel), **bias})


def _part_of_product(prefix: str, layer: nn.Linear | nn.Conv2d, read: Tensor, gradient: Tensor) -> Part:
    """Return the `Part` of a ``layer`` that multiplies its weight with its input at each of t places of a sample, such
    as the pixels of a convolution: the squared norms of its samples' gradients, and the function for their scaled sum.

    The weight gradient of a sample with input X and output gradient G is G·Xᵀ. If its squared norm takes more work for
    several places than the gradients of every single sample, these are computed. Else it is ‖X‖²‖G‖² for one place, and
    the sum of the elements of (XᵀX)∘(GᵀG) for several.

    Parameters
    ----------
    prefix
        The start of the names of the layer's parameters.
    read
        [b, in, t]: the inputs X.
    gradient
        [b, out, t]: the gradients G at the output.
    """
    (_, inputs, places), outputs = read.shape, gradient.shape[1]
    bias = {} if layer.bias is None else {f"{prefix}bias": gradient.sum(2)}  # of each sample
    if places > 1 and not _places_are_cheaper(places, inputs, outputs):
        weight = (gradient @ read.mT).unflatten(2, layer.weight.shape[1:])  # of each sample
        return _part_of_gradients({f"{prefix}weight": weight, **bias})
    if places == 1:
        squared = read.square().sum((1, 2)) * gradient.square().sum((1, 2))
    else:
        squared = ((read.mT @ read) * (gradient.mT @ gradient)).sum((1, 2))
    for value in bias.values():
        squared = squared + value.square().sum(1)

    def total(scale: Tensor) -> State:
        """Return the sums over samples of their gradients times their ``scale`` [b], by parameter: from the inputs, the
        gradients at the output and the gradients of the bias that the function around this one has."""
        weight = torch.einsum("bot,bit->oi", gradient * scale[:, None, None], read).view(layer.weight.shape)
        return {f"{prefix}weight": weight, **{name: _weighted_sum(value, scale) for name, value in bias.items()}}

    return squared, total
