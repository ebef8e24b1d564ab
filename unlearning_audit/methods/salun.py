"""SalUn: random labels, updating only the weights with the largest gradients on the forget set (Fan et al. 2024)."""

from typing import Literal

from pydantic import Field

from unlearning_audit.methods import ModelStack, Momentum, Passes, Rate, Rows, Stream, Tensor, torch
from unlearning_audit.methods._labels import RandomLabels

#: What may be tuned, and within which values.
TUNE = {
    "lr": {"low": 0.001, "high": 0.1, "log": True},
    "epochs": {"low": 1, "high": 15},
    "keep": [0.1, 0.3, 0.5, 0.7, 0.9],
}


class Options(Momentum):
    """``keep``: the share of weights that may change. Each epoch is a pass over forget with random labels, then one
    over retain.

    The gradient that selects them is taken in evaluation mode without augmentation. Masked weights are restored after
    every step, so that neither momentum nor weight decay changes them. ``relabel``: draw from ``any`` class, the true
    one included, as in the published code, or from any ``other``. That code uses lr .013, 10 epochs, batches of 256,
    keep .5, and augment crop_flip for images, also for the mask.
    """

    lr: Rate = 0.013
    weight_decay: float = Field(5e-4, ge=0)
    epochs: Passes = 5
    keep: float = Field(0.5, ge=0, le=1)
    relabel: Literal["any", "other"] = "any"


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Train the share ``keep`` of the weights, those with the largest gradients on forget, with random labels on forget
    and observed labels on retain, in alternate passes. The labels are drawn anew in every epoch, from ``any`` class or
    any ``other``, as ``relabel`` says."""
    mask = salient(stack, forget, options.keep)
    wrong = Stream(forget, loss=RandomLabels(stack, options.relabel))
    stack.fit(wrong, Stream(retain), optimiser=options, epochs=options.epochs, purpose="unlearn", mask=mask)


def salient(stack: ModelStack, forget: Rows, keep: float) -> dict[str, Tensor]:
    """Return a mask of the ``keep`` share of each model's weights whose gradient of the cross-entropy on forget has the
    largest absolute value, all layers ranked together: name → bool [models, …]."""
    gradient = stack.gradient(forget)
    flat = torch.cat([value.flatten(1) for value in gradient.values()], dim=1).abs()  # [models, weights]
    # Stable sort: of equal gradients, such as 0 in units that are never active, the first weight ranks first.
    ranked = flat.argsort(dim=1, descending=True, stable=True)
    mask = torch.zeros_like(flat, dtype=torch.bool)
    mask.scatter_(1, ranked[:, : round(keep * flat.shape[1])], True)
    masks = torch.split(mask, [value.shape[1:].numel() for value in gradient.values()], 1)
    return {name: part.view_as(value) for (name, value), part in zip(gradient.items(), masks, strict=True)}
