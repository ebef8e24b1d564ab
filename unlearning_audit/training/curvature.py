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
from unlearning_audit.training.engine import State, chain_layers, forward_one

#: What gradients of a chunk of samples are computed from: inputs of layers by name (empty if the network is not a chain
#: of layers), the tensors in which gradients are taken by name, logits [rows, classes] and labels [rows].
Chunk = tuple[State, State, Tensor, Tensor]

#: Rows per chunk: for squares in chains of layers, for gradients of means, and for squares in other networks.
CHAIN_ROWS, MEAN_ROWS, OTHER_ROWS = 1024, 256, 16

#: Limits of a chunk of other networks on a card, where few large chunks are faster: rows, and bytes of gradients.
ROWS_ON_CARD, BYTES_ON_CARD = 512, 1 << 30


def mean_gradient(model: nn.Module, parameters: State, buffers: State, x: Tensor, y: Tensor) -> State:
    """Return the gradient of one model's mean cross-entropy over samples: name → tensor.

    Parameters
    ----------
    parameters, buffers
        Name → tensor: the parameters and the buffers of the model.
    x
        [rows, …]: the samples.
    y
        int64 [rows]: their labels.
    """
    leaves = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    total = {name: torch.zeros_like(value) for name, value in parameters.items()}

    def gradient_on(part: slice) -> State:
        """Return what the samples in ``part`` of the rows contribute to the gradient of the mean over all rows. The
        samples, their labels and the weights (``leaves``) are those of the function around this one."""
        logits = forward_one(model, leaves, buffers, x[part])
        return _gradients(functional.cross_entropy(logits, y[part], reduction="sum") / len(x), leaves)

    for gradients in chunks(len(x), MEAN_ROWS, gradient_on):
        for name, gradient in gradients.items():
            total[name] += gradient
    return total


def mean_squares(
    model: nn.Module,
    parameters: State,
    buffers: State,
    x: Tensor,
    y: Tensor,
    *,
    labels: str = "observed",
    per_sample: bool = True,
    batch_size: int = 64,
) -> State:
    """Return the mean of the squared gradients of one model's cross-entropy over samples: name → tensor.

    Parameters
    ----------
    parameters, buffers
        Name → tensor: the parameters and the buffers of the model.
    x
        [rows, …]: the samples.
    y
        int64 [rows]: their observed labels.
    labels
        "observed": the gradient for the observed label is squared. "model": the gradient for each possible label is
        squared, and counts with the label's probability by the model.
    per_sample
        If False, the gradients of means over batches with observed labels are squared instead, and the mean is over
        batches.
    batch_size
        The size of these batches. The last may be smaller, and counts as much in the mean.
    """
    total = {name: torch.zeros_like(value) for name, value in parameters.items()}
    if not per_sample:
        batches = list(zip(x.split(batch_size), y.split(batch_size), strict=True))
        for x_of_batch, y_of_batch in batches:
            for name, gradient in mean_gradient(model, parameters, buffers, x_of_batch, y_of_batch).items():
                total[name] += gradient * gradient
        return {name: value / len(batches) for name, value in total.items()}
    for inputs, values, logits, observed in _forward_chunks(model, parameters, buffers, x, y):
        for weight, label in _weighted_labels(logits, observed, labels):
            gradients = _gradients(functional.cross_entropy(logits, label, reduction="sum"), values)
            for name, g in gradients.items():
                if not inputs:  # no chain of layers: ``name`` is a parameter, and g holds the gradient of each sample
                    total[name] += torch.einsum("n,n...->...", weight, g * g)
                    continue
                # ``name`` is a layer, and g the gradient at its output. A sample's gradient of the weight is g times
                # the layer's input a, so that squares are summed over samples by one product: (g∘g)ᵀ(a∘a).
                square = weight[:, None] * g * g
                total[f"{name}.weight"] += square.T @ (inputs[name] ** 2)
                if f"{name}.bias" in total:
                    total[f"{name}.bias"] += square.sum(0)
    return {name: value / len(x) for name, value in total.items()}


def squared_norms(model: nn.Module, parameters: State, buffers: State, x: Tensor, y: Tensor) -> Tensor:
    """Return the squared norm of the gradient of log p(y|x) in all parameters of one model, for every sample: [rows].

    In a chain of layers, a linear layer with input a and gradient g at its output contributes ‖g‖²(‖a‖² + 1), or
    ‖g‖²‖a‖² without a bias. In other networks the gradients of every sample are squared and added up.

    Parameters
    ----------
    parameters, buffers
        Name → tensor: the parameters and the buffers of the model.
    x
        [rows, …]: the samples.
    y
        int64 [rows]: their labels.
    """
    norms = []
    for inputs, values, logits, label in _forward_chunks(model, parameters, buffers, x, y):
        gradients = _gradients(functional.cross_entropy(logits, label, reduction="sum"), values)
        squares = {name: g.flatten(1).square().sum(1) for name, g in gradients.items()}
        for name in inputs:  # only in a chain of layers, where ``squares`` are ‖g‖² at the outputs of layers
            squares[name] *= (inputs[name] ** 2).sum(1) + (1 if f"{name}.bias" in parameters else 0)
        norms.append(reduce(torch.add, squares.values()))
    return torch.cat(norms)


def rows_at_once(gradient: float, device: str) -> int:
    """Return how many samples of a network that is not a chain of layers are processed at once on ``device``:
    `OTHER_ROWS` on a processor, and on a card more if their gradients fit. ``gradient``: bytes of the gradient of one
    sample."""
    if torch.device(device).type != "cuda":
        return OTHER_ROWS
    return max(OTHER_ROWS, min(ROWS_ON_CARD, int(BYTES_ON_CARD / gradient)))


def _gradients(loss: Tensor, values: State) -> State:
    """Return the gradient of ``loss`` in each of the ``values``, by name; 0 where the loss does not depend on it.
    Autograd's graph is kept, so that the gradient for another label can follow."""
    tensors = list(values.values())
    gradients = torch.autograd.grad(loss, tensors, retain_graph=True, allow_unused=True, materialize_grads=True)
    return dict(zip(values, gradients, strict=True))


def _weighted_labels(logits: Tensor, y: Tensor, which: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the pairs of weights [rows] and labels [rows] for which squared gradients are computed and added up.

    Parameters
    ----------
    logits
        [rows, classes]: the logits of the model.
    y
        int64 [rows]: the observed labels.
    which
        "observed": one pair, weights of 1 and the observed labels. "model": a pair for each class, the probabilities of
        the class and the class as the label of all rows.
    """
    if which == "observed":
        yield torch.ones_like(logits[:, 0]).detach(), y
        return
    probabilities = logits.detach().softmax(-1)
    for number in range(probabilities.shape[1]):
        yield probabilities[:, number], torch.full_like(y, number)


def _forward_chunks(model: nn.Module, parameters: State, buffers: State, x: Tensor, y: Tensor) -> Iterator[Chunk]:
    """Compute the logits of the samples ``x`` with labels ``y``, chunk by chunk, by a model with these ``parameters``
    and ``buffers``. Yield, for each chunk, what the gradients of its samples are computed from (`Chunk`).

    In a chain of layers, these are the inputs of linear layers, and their outputs [rows, out], in which gradients are
    taken. In other networks there are no inputs, and gradients are taken in copies of the weights, one for each sample:
    name → [rows, …].
    """
    layers = chain_layers(model)
    if layers is not None:
        for samples, label in zip(x.split(CHAIN_ROWS), y.split(CHAIN_ROWS), strict=True):
            inputs, outputs, value = {}, {}, samples
            for name, layer in layers:
                if isinstance(layer, nn.Linear):
                    inputs[name] = value.detach()
                    bias = parameters.get(f"{name}.bias")
                    value = functional.linear(value, parameters[f"{name}.weight"], bias).requires_grad_()
                    outputs[name] = value
                else:
                    value = layer(value.clone())  # a layer may work in place
            yield inputs, outputs, value, label
        return
    run = vmap(lambda weights, sample: forward_one(model, weights, buffers, sample.unsqueeze(0)).squeeze(0))
    rows = rows_at_once(sum(value.nbytes for value in parameters.values()), str(x.device))
    for samples, label in zip(x.split(rows), y.split(rows), strict=True):
        copies = {name: v.detach().expand(len(samples), *v.shape).requires_grad_() for name, v in parameters.items()}
        yield {}, copies, run(copies, samples), label
