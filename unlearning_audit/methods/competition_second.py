"""Competition, second place (NeurIPS 2023): reinitialise the weights with the smallest gradients, then finetune.

Described in Triantafillou et al. 2024, "Are we making progress in unlearning?".
"""

from typing import Literal

from pydantic import Field

from unlearning_audit.methods import ModelStack, Momentum, Passes, Rate, Rows, Stream, Tensor, nn, torch

#: What may be tuned, and within which values.
TUNE = {"lr": {"low": 0.0001, "high": 0.1, "log": True}, "epochs": {"low": 1, "high": 10}, "restart": [0.1, 0.3, 0.5]}


class Options(Momentum):
    """``restart``: the share of each convolution's weights that are reinitialised, those with the smallest |gradient|
    of CE(as many retain samples) − CE(forget). ``kept_rate`` scales the gradients of the other weights of these layers.

    In a network without convolutions, all linear layers but the last take their place. The learning rate rises to lr in
    the middle epoch and falls again; in 5 epochs it is 1/3, 2/3, 1, 2/3, 1/3 of lr. Everything is as submitted, except
    that gradients are taken in evaluation mode: lr .001, momentum .9, weight decay 5e-4, 5 epochs, restart .3,
    kept_rate .1.
    """

    lr: Rate = 0.001
    weight_decay: float = Field(5e-4, ge=0)
    schedule: Literal["triangle"] = "triangle"  # type: ignore[assignment]  # none of the others; `rate` is its own
    epochs: Passes = 5
    restart: float = Field(0.3, ge=0, le=1)
    kept_rate: float = Field(0.1, ge=0)

    def rate(self, epoch: int, epochs: int, step: int = 0, steps: int = 1) -> float:
        """Return the learning rate of the 0-based ``epoch`` out of ``epochs``: it rises linearly to lr at the middle
        epoch and then falls (1/3, 2/3, 1, 2/3, 1/3 of lr in 5 epochs). All steps of an epoch have the same rate, so
        that ``step`` and ``steps`` do not matter."""
        top = (epochs + 1) // 2  # the number of epochs that rise
        return self.lr * ((epoch + 1) / top if epoch < top else (epochs - epoch) / (epochs + 1 - top))


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Reinitialise the share ``restart`` of each layer's weights, those with the smallest absolute gradients of
    CE(retain) − CE(forget) (`smallest_gradients`), then finetune on retain. There the gradients of the other weights of
    these layers are multiplied by ``kept_rate``.

    Raises ValueError for a network without weights to choose among.
    """
    chosen = smallest_gradients(stack, forget, retain, options.restart)
    noise = stack.noise("competition_second")

    def restarted(name: str, value: Tensor) -> Tensor:
        """Return the ``value`` [models, …] of the parameter ``name`` in which the ``chosen`` weights are drawn anew
        from ``noise``; both are of the function around this one."""
        if name not in chosen:
            return value
        # He initialisation for ReLU by fan-out: outputs times the kernel's area. Turned weights are [models, in, out].
        fan_out = value.shape[2 if name in stack.turned else 1] * value.shape[3:].numel()
        return torch.where(chosen[name], noise[name] * (2 / fan_out) ** 0.5, value)

    stack.edit(restarted)
    unchanged = torch.ones((), dtype=stack.dtype, device=stack.device)  # the factor of gradients of drawn weights
    scale = {name: torch.where(mask, unchanged, options.kept_rate) for name, mask in chosen.items()}
    stack.fit(Stream(retain), optimiser=options, epochs=options.epochs, purpose="unlearn", scale=scale)


def smallest_gradients(stack: ModelStack, forget: Rows, retain: Rows, share: float) -> dict[str, Tensor]:
    """Return a mask of the ``share`` of each layer's weights with the smallest absolute gradients: name → bool [models,
    …], for the layers that may be reinitialised (`resettable_weights`).

    The gradient is that of CE(retain) − CE(forget), with as many random samples of retain as there are to forget. Of
    equal gradients, the first in the layer counts as the smallest.
    """
    of_retain = stack.gradient(retain.sample(len(forget), stack.seeds, "competition_second"))
    of_forget = stack.gradient(forget)
    masks = {}
    for name in resettable_weights(stack):
        size = (of_retain[name] - of_forget[name]).abs().flatten(1)
        order = size.argsort(dim=1, stable=True)
        mask = torch.zeros_like(size, dtype=torch.bool)
        masks[name] = mask.scatter_(1, order[:, : round(share * size.shape[1])], True).view_as(of_retain[name])
    return masks


def resettable_weights(stack: ModelStack) -> list[str]:
    """Return the names of the weights that may be reinitialised: the weights of convolutions, or, in a network without
    convolutions, the weights of all linear layers but the head.

    Raises ValueError for a network without such weights, for instance one with trained adapters only.
    """
    modules = dict(stack.model.named_modules())
    convolutions = [f"{name}.weight" for name, module in modules.items() if isinstance(module, nn.Conv2d)]
    linear = {f"{name}.weight" for name, module in modules.items() if isinstance(module, nn.Linear)} | stack.turned
    names = convolutions or [name for name in stack.parameters if name in linear - {f"{stack.final_layer}.weight"}]
    if not names:
        raise ValueError(
            "this model has no trained convolution, and no trained linear layer except the last, so no layer can be "
            "reset; leave out competition_second"
        )
    return names
