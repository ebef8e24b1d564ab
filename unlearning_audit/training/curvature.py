"""Gradients of one model in evaluation mode, with their squares and norms.

In chains of linear layers, squared per-sample gradients need no per-sample tensor. With layer inputs a and output
gradients g, Σ_n (g_n a_nᵀ)² = (g∘g)ᵀ(a∘a) and ‖g_n a_nᵀ‖² = ‖g_n‖²‖a_n‖². For other networks the weights are expanded
per sample. torch.func.grad is not used: it imports torch's compiler, which takes seconds, and it would repeat the
forward pass for every label.
"""

from collections.abc import Iterator
from functools import reduce

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.nn import functional

from unlearning_audit.training.chunks import chunks
from unlearning_audit.training.engine import State, forward_one, linear_layers

#: For a chunk of samples: inputs of layers by name (none if the network is not a chain of layers), the values in which
#: gradients are taken by name, logits [rows, classes] and labels [rows].
Graph = tuple[State, State, Tensor, Tensor]

#: Rows per chunk: for chains of linear layers, for gradients of batch means, and for other networks.
CHAIN, MEAN, GENERAL = 1024, 256, 16

#: Limits of a chunk of other networks on a card, where few large chunks are faster: rows, and bytes of gradients.
ROWS_ON_CARD, BYTES_ON_CARD = 512, 1 << 30


def mean_gradient(model: nn.Module, parameters: State, buffers: State, x: Tensor, y: Tensor) -> State:
    """Return the gradient of one model's mean cross-entropy over ``x`` [rows, …] with labels ``y`` int64 [rows]: name →
    tensor. ``parameters`` and ``buffers``: those of the model, name → tensor."""
    leaves = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    total = {name: torch.zeros_like(value) for name, value in parameters.items()}

    def gradient_on(part: slice) -> State:
        """Return what the rows of ``part`` contribute to the gradient of the mean over all rows."""
        logits = forward_one(model, leaves, buffers, x[part])
        return _gradients(functional.cross_entropy(logits, y[part], reduction="sum") / len(x), leaves)

    for gradients in chunks(len(x), MEAN, gradient_on):
        for name, g in gradients.items():
            total[name] += g
    return total


def squares(
    model: nn.Module, parameters: State, buffers: State, x: Tensor, y: Tensor, *, labels: str = "observed",
    per_sample: bool = True, batch_size: int = 64,
) -> State:  # fmt: skip
    """Return the mean squared gradients of one model over the samples ``x`` [rows, …] with labels ``y`` int64 [rows],
    name → tensor.

    ``parameters`` and ``buffers``: those of the model, name → tensor. ``labels`` observed: the mean of (∂ CE(x,
    y)/∂θ)²; ``model``: the mean of Σ_y p(y|x)(∂ CE(x, y)/∂θ)². With ``per_sample`` False, the gradients of means over
    batches of ``batch_size`` with the observed labels are squared instead, and the mean is over batches. In a chain of
    layers, the gradient g at a linear layer's output and its input a give the squared gradients of all samples at once:
    (g∘g)ᵀ(a∘a).
    """
    total = {name: torch.zeros_like(value) for name, value in parameters.items()}
    if not per_sample:
        batches = list(zip(x.split(batch_size), y.split(batch_size), strict=True))
        for part, label in batches:
            for name, g in mean_gradient(model, parameters, buffers, part, label).items():
                total[name] += g * g
        return {name: value / len(batches) for name, value in total.items()}
    for inputs, values, logits, observed in _graphs(model, parameters, buffers, x, y):
        for weight, label in _weighted_labels(logits, observed, labels):
            gradients = _gradients(functional.cross_entropy(logits, label, reduction="sum"), values)
            for name, g in gradients.items():
                if not inputs:  # no chain of layers: g holds the gradient of each sample
                    total[name] += torch.einsum("n,n...->...", weight, g * g)
                    continue
                square = weight[:, None] * g * g
                total[f"{name}.weight"] += square.T @ (inputs[name] ** 2)
                if f"{name}.bias" in total:
                    total[f"{name}.bias"] += square.sum(0)
    return {name: value / len(x) for name, value in total.items()}


def squared_norms(model: nn.Module, parameters: State, buffers: State, x: Tensor, y: Tensor) -> Tensor:
    """Return ‖∂ log p(y|x)/∂θ‖² of one model, with these ``parameters`` and ``buffers`` (name → tensor), for every
    sample of ``x`` [rows, …] with labels ``y`` int64 [rows]: [rows].

    In a chain of layers, a linear layer with input a and gradient g at its output contributes ‖g‖²(‖a‖² + 1), where 1
    stands for the bias. In other networks the gradients of every sample are squared and added up.
    """
    norms = []
    for inputs, values, logits, label in _graphs(model, parameters, buffers, x, y):
        gradients = _gradients(functional.cross_entropy(logits, label, reduction="sum"), values)
        squares = {name: g.flatten(1).square().sum(1) for name, g in gradients.items()}
        for name in inputs:  # of a chain: there, ``squares`` are ‖g‖² at the outputs of layers
            squares[name] *= (inputs[name] ** 2).sum(1) + (f"{name}.bias" in parameters)
        norms.append(reduce(torch.add, squares.values()))
    return torch.cat(norms)


def rows_at_once(gradient: float, device: str) -> int:
    """Return how many samples of a network that is not a chain of layers are processed at once on ``device``.
    ``gradient``: bytes of one sample's gradient."""
    if torch.device(device).type != "cuda":
        return GENERAL
    return max(GENERAL, min(ROWS_ON_CARD, int(BYTES_ON_CARD / gradient)))


def _gradients(loss: Tensor, values: State) -> State:
    """Return ∂ loss/∂ value for each of the ``values``, by name, 0 where the loss does not depend on it. The graph is
    kept for the next label."""
    gradients = torch.autograd.grad(
        loss, list(values.values()), retain_graph=True, allow_unused=True, materialize_grads=True
    )
    return dict(zip(values, gradients, strict=True))


def _weighted_labels(logits: Tensor, y: Tensor, labels: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield pairs (weight [rows], label [rows]) whose weighted squared gradients sum to the Fisher information: weight
    1 and the observed labels ``y``, or for ``labels`` "model" each class with its probability by the ``logits``."""
    if labels == "observed":
        yield torch.ones_like(logits[:, 0]).detach(), y
        return
    p = logits.detach().softmax(-1)
    for c in range(p.shape[1]):
        yield p[:, c], torch.full_like(y, c)


def _graphs(model: nn.Module, parameters: State, buffers: State, x: Tensor, y: Tensor) -> Iterator[Graph]:
    """Yield, for each chunk of the samples ``x`` with labels ``y``, what squared per-sample gradients of a model with
    these ``parameters`` and ``buffers`` are computed from (`Graph`).

    In a chain of layers, these are the inputs of every linear layer, and its outputs, in which gradients are taken. In
    other networks there are no inputs, and gradients are taken in the weights, of which every sample has a copy of its
    own: name → [rows, …].
    """
    layers = linear_layers(model)
    if layers is not None:
        for part, label in zip(x.split(CHAIN), y.split(CHAIN), strict=True):
            inputs, outputs, out = {}, {}, part
            for name, layer in layers:
                if isinstance(layer, nn.Linear):
                    inputs[name] = out.detach()
                    bias = parameters.get(f"{name}.bias")
                    out = outputs[name] = functional.linear(out, parameters[f"{name}.weight"], bias).requires_grad_()
                else:
                    out = layer(out.clone())  # a layer may work in place
            yield inputs, outputs, out, label
        return
    run = vmap(lambda weights, sample: forward_one(model, weights, buffers, sample.unsqueeze(0)).squeeze(0))
    rows = rows_at_once(sum(value.nbytes for value in parameters.values()), str(x.device))
    for part, label in zip(x.split(rows), y.split(rows), strict=True):
        leaves = {k: v.detach().expand(len(part), *v.shape).requires_grad_() for k, v in parameters.items()}
        yield {}, leaves, run(leaves, part), label
