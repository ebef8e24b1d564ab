"""Boundary shrink: train forget samples with the class across their nearest boundary as label (Chen et al. 2023)."""

import numpy as np
from pydantic import Field

from unlearning_audit.methods import Batch, ModelStack, Momentum, Passes, Rate, Rows, Stream, Tensor, _inputs, torch
from unlearning_audit.training.losses import cross_entropy

#: What may be tuned, and within which values.
TUNE = {
    "lr": {"low": 1e-05, "high": 0.1, "log": True},
    "epochs": {"low": 1, "high": 15},
    "bound": [0.01, 0.03, 0.1, 0.3],
}


class Options(Momentum):
    """Each forget sample x moves to x + ``bound``·sign(∂CE/∂x); images stay within [0, 1]. The most probable class of
    the original model there, except the true one, is the sample's label in training. Retain is not read.

    Chen et al.: bound .1, SGD 1e-5, momentum .9, 10 epochs, batches of 64, to forget a class of images. Small networks
    need larger rates.
    """

    lr: Rate = 1e-5
    epochs: Passes = 10
    bound: float = Field(0.1, ge=0)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Train the forget samples towards the class across their nearest decision boundary: the most probable other class
    after a step of ``bound`` that raises the loss. Raises ValueError for samples that are tokens."""
    _inputs.refuse_tokens(stack, "boundary_shrink")
    # The class across the nearest boundary of each sample to forget, [models, samples].
    nearest = torch.zeros(len(stack), len(stack.x), dtype=torch.int64, device=stack.device)
    for model, index in enumerate(forget.index):
        nearest[model, torch.from_numpy(index).to(stack.device)] = nearest_class(stack, model, index, options.bound)

    def across(batch: Batch) -> Tensor:
        """Return each sample's cross-entropy with the class across its boundary, by ``nearest`` of the function around
        this one, as the label: [n, b]."""
        return cross_entropy(batch.logits, nearest[batch.at, batch.rows])

    stack.fit(Stream(forget, loss=across), optimiser=options, epochs=options.epochs, purpose="unlearn")


def nearest_class(stack: ModelStack, model: int, index: np.ndarray, bound: float) -> Tensor:
    """Return, for each sample of ``index`` int64 [rows], the class across the nearest decision boundary of one model:
    int64 [rows].

    It is found by a step of size ``bound`` along the sign of the loss's gradient in the sample: the most probable class
    there, except the true one. Images stay within [0, 1].
    """
    from unlearning_audit.training.engine import forward_one

    samples = torch.from_numpy(index).to(stack.device)
    weights, x, labels = stack.state(model), stack.scaled(stack.x[samples]), stack.labels_of(model, samples)
    moved = x + bound * _inputs.gradient(stack, weights, x, labels).sign()
    if x.ndim == 4:  # images
        moved = moved.clamp(0, 1)
    with torch.no_grad():
        logits = forward_one(stack.model, *weights, moved)
    return logits.scatter(1, labels[:, None], -torch.inf).argmax(1)  # −∞, so that the true class is never the largest
