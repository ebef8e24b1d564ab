"""Losses for methods that unlearn classifiers and language models alike.

A language model is queried for the logits of its vocabulary at every token, and the loss of a sample is the mean over
its scored tokens. Any other model gives the logits of its classes, and its label counts as the only token.
"""

from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from unlearning_audit.methods import Batch, Kind, ModelStack, Optimiser, Passes, Rate, Rows, Stream, Tensor
from unlearning_audit.training.losses import cross_entropy, distillation

#: What may be tuned of a method for language models, and within which values.
TUNE: dict[str, Any] = {"lr": {"low": 1e-06, "high": 0.001, "log": True}, "epochs": {"low": 1, "high": 10}}


class TextOptimiser(Optimiser):
    """The optimiser of methods for language models, with the defaults of OpenUnlearning."""

    optimiser: Kind = "adamw"
    lr: Rate = 1e-5
    weight_decay: float = Field(0.01, ge=0)
    batch_size: int = Field(32, ge=1)


class RetainOptions(TextOptimiser):
    """The options of a method that adds ``alpha`` times a loss on retain to its own loss (`minimise`).

    That loss is ``retain_loss``: the ``nll`` of the observed labels or tokens, or the divergence ``kl`` of the
    predictions from the original's.
    """

    epochs: Passes = 5
    alpha: float = Field(1.0, ge=0)
    retain_loss: Literal["nll", "kl"] = "nll"


def reading(stack: ModelStack) -> str | None:
    """Return the name of the models' output that a Stream must ask for, so that it gets logits of every token: "tokens"
    for a language model. For any other model return None, which stands for the logits of its classes."""
    return "tokens" if "tokens" in stack.readings else None


def labels(batch: Batch) -> Tensor:
    """Return the true labels [n, b] of a batch or, if its logits are those of tokens, the true tokens int64 [n, b,
    tokens]. The first token of a sample is left out, because nothing predicts it; tokens that are not scored are 0."""
    return batch.labels if batch.reading is None else batch.x[..., 1:].clamp(min=0).long()


def mean_over_tokens(values: Tensor, batch: Batch) -> Tensor:
    """Return the mean of ``values`` [n, b, tokens] over the scored tokens of each sample, [n, b], NaN for a sample
    without any. For models without tokens, return ``values`` [n, b] unchanged."""
    if batch.reading is None:
        return values
    mask = (batch.x[..., 1:] >= 0).to(values.dtype)
    return (values * mask).sum(-1) / mask.sum(-1)


def count_scored(stack: ModelStack, batch: Batch) -> Tensor | int:
    """Return the number of scored tokens of each sample of a batch, [n, b]; 1 for models without tokens."""
    return (batch.x[..., 1:] >= 0).sum(-1) if reading(stack) else 1


def nll(batch: Batch) -> Tensor:
    """Return −log p of each token, [n, b, tokens], or of each label, [n, b], where there are no tokens."""
    return cross_entropy(batch.logits, labels(batch))


def retain_stream(stack: ModelStack, retain: Rows, loss: str, weight: float) -> Stream:
    """Return a stream over ``retain`` whose loss preserves the models' predictions, and counts ``weight`` times.

    The original is the stack as it is now.

    Parameters
    ----------
    loss
        "nll", the cross-entropy of the observed tokens or labels; or "kl", the divergence KL(original ‖ model) of the
        predictions, mean over scored tokens.
    """
    if loss == "nll":
        return Stream(retain, weight=weight)
    original: Callable[[Batch], Tensor] = stack.frozen()

    def divergence(batch: Batch) -> Tensor:
        """Return KL(original ‖ model) of each sample, the mean over its scored tokens: [n, b]."""
        return mean_over_tokens(distillation(batch.logits, original(batch)), batch)

    return Stream(retain, loss=divergence, weight=weight, reading=reading(stack))


def minimise(stack: ModelStack, step: tuple[Stream, ...], retain: Rows, options: RetainOptions) -> None:
    """Train the models: minimise the losses of the streams of a ``step``, plus ``options.alpha`` times the loss
    ``options.retain_loss``, nll or kl, on retain (`retain_stream`). If ``options.alpha`` is 0, retain is not read.

    Each step takes one batch of each stream; an epoch is one pass over the first.

    Parameters
    ----------
    options
        The options of the method.
    """
    if options.alpha:
        step += (retain_stream(stack, retain, options.retain_loss, options.alpha),)
    stack.fit(step, optimiser=options, epochs=options.epochs, purpose="unlearn")
