"""Gradients of one model in evaluation mode, with their squares and norms.

In chains of linear layers, squared per-sample gradients need no per-sample tensor. With layer inputs a and output
gradients g, Σ_n (g_n a_nᵀ)² = (g∘g)ᵀ(a∘a) and ‖g_n a_nᵀ‖² = ‖g_n‖²‖a_n‖². For other networks the weights are expanded
per sample. torch.func.grad is not used: it imports torch's compiler, which takes seconds, and it would repeat the
forward pass for every label.
"""

from collections.abc import Callable, Iterator
from functools import reduce

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.nn import functional

from unlearning_audit.training.chunks import chunks
from unlearning_audit.training.engine import State, forward_one, linear_layers

#: Rows per chunk: for chains of linear layers, for gradients of batch means, and for other networks.
CHAIN, MEAN, GENERAL = 1024, 256, 16

#: Limits of a chunk of other networks on a card, where few large chunks are faster: rows, and bytes of gradients.
ROWS_ON_CARD, BYTES_ON_CARD = 512, 1 << 30


def mean_gradient(model: nn.Module, parameters: State, buffers: State, x: Tensor, y: Tensor) -> State:
    """Return the gradient of one model's mean cross-entropy over ``x`` [rows, …] with labels ``y`` int64 [rows]: name →
    tensor."""
    leaves = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    total = {name: torch.zeros_like(value) for name, value in parameters.items()}

    def of(part: slice) -> State:
        logits = forward_one(model, leaves, buffers, x[part])
        return _gradients(functional.cross_entropy(logits, y[part], reduction="sum") / len(x), leaves)

    for gradients in chunks(len(x), MEAN, of):
        for name, g in gradients.items():
            total[name] += g
    return total


def squares(labels: str = "observed", per_sample: bool = True, batch_size: int = 64) -> Callable[..., State]:
    """Return a function that computes mean squared gradients of one model: (model, parameters, buffers, x, y) → name →
    tensor.

    ``labels`` observed: the mean of (∂ CE(x, y)/∂θ)²; ``model``: the mean of Σ_y p(y|x)(∂ CE(x, y)/∂θ)². With
    ``per_sample`` False, the gradients of means over batches of ``batch_size`` are squared instead.
    """

    def compute(model: nn.Module, parameters: State, buffers: State, x: Tensor, y: Tensor) -> State:
        """Return the mean squared gradients of one model over the samples ``x`` [rows, …] with labels ``y`` int64
        [rows], by name.

        Raises ValueError for batch means with other than observed labels.
        """
        if not per_sample:
            if labels != "observed":
                raise ValueError("squared gradients of batch means are defined for observed labels only")
            return _batch_squares(model, parameters, buffers, x, y, batch_size)
        total = {name: torch.zeros_like(value) for name, value in parameters.items()}
        if linear_layers(model) is not None:
            _add_chain_squares(total, _chain(model, parameters, x, y), labels)
        else:
            _add_sample_squares(total, _per_sample(model, parameters, buffers, x, y), labels)
        return {name: value / len(x) for name, value in total.items()}

    return compute


def squared_norms(model: nn.Module, parameters: State, buffers: State, x: Tensor, y: Tensor) -> Tensor:
    """Return ‖∂ log p(y|x)/∂θ‖² of one model for every sample of ``x`` [rows, …] with labels ``y`` int64 [rows]:
    [rows]."""
    norms = []
    if linear_layers(model) is not None:
        for inputs, outputs, logits, label in _chain(model, parameters, x, y):
            gradients = _gradients(functional.cross_entropy(logits, label, reduction="sum"), outputs)
            norms.append(reduce(torch.add, (
                (g * g).sum(1) * ((inputs[n] ** 2).sum(1) + (f"{n}.bias" in parameters)) for n, g in gradients.items()
            )))  # fmt: skip
    else:
        for weights, logits, label in _per_sample(model, parameters, buffers, x, y):
            gradients = _gradients(functional.cross_entropy(logits, label, reduction="sum"), weights)
            norms.append(reduce(torch.add, (g.flatten(1).square().sum(1) for g in gradients.values())))
    return torch.cat(norms)


def rows_at_once(gradient: float, device: str) -> int:
    """Return the number of samples in a chunk of a network that is not a chain. ``gradient``: bytes of one sample's
    gradient."""
    if torch.device(device).type != "cuda":
        return GENERAL
    return max(GENERAL, min(ROWS_ON_CARD, int(BYTES_ON_CARD / gradient)))


def _gradients(loss: Tensor, of: State) -> State:
    """Return ∂ loss/∂ value for each value of ``of``, by name. The graph is kept for the next label."""
    gradients = torch.autograd.grad(
        loss, list(of.values()), retain_graph=True, allow_unused=True, materialize_grads=True
    )
    return dict(zip(of, gradients, strict=True))


def _weighted_labels(logits: Tensor, y: Tensor, labels: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield pairs (weight [rows], label [rows]) whose weighted squared gradients sum to the Fisher information."""
    if labels == "observed":
        yield torch.ones_like(logits[:, 0]).detach(), y
        return
    p = logits.detach().softmax(-1)
    for c in range(p.shape[1]):
        yield p[:, c], torch.full_like(y, c)


def _chain(model: nn.Module, parameters: State, x: Tensor, y: Tensor) -> Iterator[tuple[State, State, Tensor, Tensor]]:
    """Yield, for each chunk of samples of a chain of layers: the inputs and the outputs of every linear layer by name,
    the logits and the labels.

    Gradients are to be taken at the outputs.
    """
    for part, label in zip(x.split(CHAIN), y.split(CHAIN), strict=True):
        inputs, outputs, out = {}, {}, part
        for name, layer in linear_layers(model) or ():
            if isinstance(layer, nn.Linear):
                inputs[name] = out.detach()
                bias = parameters.get(f"{name}.bias")
                out = outputs[name] = functional.linear(out, parameters[f"{name}.weight"], bias).requires_grad_()
            else:
                out = layer(out.clone())  # a layer may work in place
        yield inputs, outputs, out, label


def _per_sample(
    model: nn.Module, parameters: State, buffers: State, x: Tensor, y: Tensor
) -> Iterator[tuple[State, Tensor, Tensor]]:
    """Yield, for each chunk of samples: the weights expanded per sample, name → [rows, …], at which gradients are to be
    taken; the logits and the labels."""
    run = vmap(lambda p, v: forward_one(model, p, buffers, v.unsqueeze(0)).squeeze(0))
    rows = rows_at_once(sum(value.nbytes for value in parameters.values()), str(x.device))
    for part, label in zip(x.split(rows), y.split(rows), strict=True):
        leaves = {k: v.detach().expand(len(part), *v.shape).requires_grad_() for k, v in parameters.items()}
        yield leaves, run(leaves, part), label


def _add_chain_squares(total: State, chunks: Iterator[tuple[State, State, Tensor, Tensor]], labels: str) -> None:
    """Add the sums over samples of squared gradients of a chain to ``total``, by name; ``chunks`` are what `_chain`
    yields."""
    for inputs, outputs, logits, observed in chunks:
        for weight, label in _weighted_labels(logits, observed, labels):
            gradients = _gradients(functional.cross_entropy(logits, label, reduction="sum"), outputs)
            for name, g in gradients.items():
                square = weight[:, None] * g * g
                total[f"{name}.weight"] += square.T @ (inputs[name] ** 2)
                if f"{name}.bias" in total:
                    total[f"{name}.bias"] += square.sum(0)


def _add_sample_squares(total: State, chunks: Iterator[tuple[State, Tensor, Tensor]], labels: str) -> None:
    """Add the sums over samples of squared gradients to ``total``, by name; ``chunks`` are what `_per_sample`
    yields."""
    for weights, logits, observed in chunks:
        for weight, label in _weighted_labels(logits, observed, labels):
            gradients = _gradients(functional.cross_entropy(logits, label, reduction="sum"), weights)
            for name, g in gradients.items():
                total[name] += torch.einsum("n,n...->...", weight, g * g)


def _batch_squares(model: nn.Module, parameters: State, buffers: State, x: Tensor, y: Tensor, batch_size: int) -> State:
    """Return the mean over batches of the squared gradient of each batch's mean loss, by name."""
    parts = list(zip(x.split(batch_size), y.split(batch_size), strict=True))
    total = {name: torch.zeros_like(value) for name, value in parameters.items()}
    for part, label in parts:
        for name, g in mean_gradient(model, parameters, buffers, part, label).items():
            total[name] += g * g
    return {name: value / len(parts) for name, value in total.items()}
