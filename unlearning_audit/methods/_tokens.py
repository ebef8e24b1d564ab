"""Losses over every token of a passage, and over the one label of anything else, in the same words.

A language model is asked for the logits of its whole vocabulary at every token; a classifier of anything else for its
logits, which are then those of the only "token" there is.
"""

from collections.abc import Callable

from unlearning_audit.training.lazy import Bank, Tensor
from unlearning_audit.training.losses import cross_entropy, distillation
from unlearning_audit.training.optim import Optimiser
from unlearning_audit.training.streams import Batch, Rows, Stream, fit_labels


def reading(bank: Bank) -> str | None:
    """What to ask the models for, as a Stream's ``reading``."""
    return "tokens" if "tokens" in bank.readings else None


def labels(batch: Batch) -> Tensor:
    """What should have been said: int64 [n, b, tokens], or [n, b] where there are no tokens."""
    return batch.labels if batch.reading is None else batch.x[..., 1:].clamp(min=0).long()


def averaged(values: Tensor, batch: Batch) -> Tensor:
    """The mean over the scored tokens of a sample: [n, b, tokens] → [n, b]."""
    if batch.reading is None:
        return values
    mask = (batch.x[..., 1:] >= 0).to(values.dtype)
    return (values * mask).sum(-1) / mask.sum(-1)


def count(bank: Bank, batch: Batch) -> Tensor | int:
    """How many tokens of a sample are scored, [n, b]; 1 where the models read no tokens one by one."""
    return (batch.x[..., 1:] >= 0).sum(-1) if reading(bank) else 1


def nll(batch: Batch) -> Tensor:
    """−log p of each token, [n, b, tokens]; of the label, [n, b], where there are none."""
    return cross_entropy(batch.logits, labels(batch))


def hold(bank: Bank, retain: Rows, loss: str, weight: float) -> Stream:
    """A stream that keeps what is kept: ``nll`` of the observed tokens or labels, or ``kl``, the divergence
    KL(original ‖ model) of the predictions, mean over tokens."""
    if loss == "nll":
        return Stream(retain, loss=fit_labels, weight=weight)
    original: Callable[[Batch], Tensor] = bank.frozen()

    def divergence(batch: Batch) -> Tensor:
        return averaged(distillation(batch.logits, original(batch)), batch)

    return Stream(retain, loss=divergence, weight=weight, reading=reading(bank))


def refine(bank: Bank, retain: Rows, optimiser: Optimiser, epochs: int) -> None:
    """So many epochs of ordinary training on what is kept, after unlearning, from a fresh ``optimiser``."""
    if epochs:
        bank.fit(Stream(retain), optimiser=optimiser, epochs=epochs, purpose="unlearn/refine")
