"""RMU: push hidden states of forget in one random direction, and keep those of retain unchanged (Li et al. 2024)."""

from typing import Any

from pydantic import Field

from unlearning_audit.methods import Batch, ModelStack, Passes, Rows, Stream, Tensor, _tokens, torch
from unlearning_audit.randomness.keyed import seed_of

#: What may be tuned, and within which values.
TUNE = _tokens.TUNE | {"steering": [1.0, 2.0, 10.0, 100.0], "alpha": [1.0, 2.0, 5.0]}


class Options(_tokens.TextOptimiser):
    """Loss: ‖h(x_f) − ``steering``·u‖² on forget + ``alpha``·‖h(x_r) − h_original(x_r)‖² on retain, each the mean over
    units and over the scored tokens.

    For a language model, h is the output of block ``layer``, counted from 1 (null: the middle one, rounded up); that of
    the last block is taken after the final norm. Only weights up to this block change. For any other model, h is its
    logits. u is uniform on [0, 1)^d, scaled to length 1, and drawn by each model's seed. Defaults as configured by
    OpenUnlearning: steering 2, α 1, AdamW 1e-5, weight decay .01, 10 epochs, batches of 32. Li et al. train three
    layers' output weights only, with steering 6.5 and α 1200.
    """

    epochs: Passes = 10
    layer: int | None = Field(None, ge=1)
    steering: float = Field(2.0, ge=0)
    alpha: float = Field(1.0, ge=0)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Push the hidden states of forget towards ``steering`` times a random direction u, and keep the hidden states of
    retain as they are, with weight ``alpha``. With ``alpha`` 0, retain is not read. A step takes one batch of each set,
    and an epoch is one pass over forget.

    Raises ValueError for a layer that the model does not have.
    """
    reading = _name_of_states(stack, options.layer)
    original = stack.frozen()
    directions: dict[int, Tensor] = {}

    def direction(model: int, like: Tensor) -> Tensor:
        """Return the direction u of one model, [d], drawn once, with the dtype and device of the states ``like`` [...,
        d]."""
        if model not in directions:
            rng = torch.Generator().manual_seed(seed_of(stack.seeds[model], "rmu"))
            u = torch.rand(like.shape[-1], generator=rng, dtype=like.dtype)
            directions[model] = (u / u.norm()).to(like.device)
        return directions[model]

    def distance(states: Tensor, target: Tensor, batch: Batch) -> Tensor:
        """Return ‖states − target‖² of each sample, the mean over a state's numbers and over scored tokens: [n, b]."""
        return _tokens.mean_over_tokens((states - target).square().mean(-1), batch)

    def away(batch: Batch) -> Tensor:
        """Return ‖h − steering·u‖² of each sample to forget, the mean over the numbers of h and over scored tokens: [n,
        b]. The hidden states h are what the batch has as logits."""
        u = torch.stack([direction(model, batch.logits) for model in batch.models])  # [n, d]
        shape = (len(u), *[1] * (batch.logits.ndim - 2), u.shape[1])  # equal for all samples and tokens of a model
        return distance(batch.logits, options.steering * u.reshape(shape), batch)

    def hold(batch: Batch) -> Tensor:
        """Return ‖h − h_original‖² of each retained sample, the mean over the numbers of h and over scored tokens: [n,
        b]."""
        return distance(batch.logits, original(batch), batch)

    step: tuple[Stream, ...] = (Stream(forget, loss=away, reading=reading),)
    if options.alpha:
        step += (Stream(retain, loss=hold, weight=options.alpha, reading=reading),)
    stack.fit(step, optimiser=options, epochs=options.epochs, purpose="unlearn")


def _name_of_states(stack: ModelStack, layer: int | None) -> str | None:
    """Return the name of the models' output whose values are pushed and kept: "layer k", the hidden states of layer k,
    for language models; None, which means logits, for all other models.

    ``layer``: k, counted from 1; if it is None, the middle layer is taken, rounded up. Raises ValueError if a language
    model does not have the layer.
    """
    if _tokens.reading(stack) is None:
        return None
    layers: Any = stack.model.layers
    if layer is not None and layer > layers:
        raise ValueError(f"layer: the model has {layers} layers, not {layer}")
    return f"layer {layer or -(-layers // 2)}"
