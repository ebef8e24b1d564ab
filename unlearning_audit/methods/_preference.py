"""Direct preference optimisation (Rafailov et al. 2023): prefer another answer to the one that is to be forgotten."""

import dataclasses
from collections.abc import Callable

from unlearning_audit.methods import _tokens
from unlearning_audit.training.lazy import Bank, Tensor
from unlearning_audit.training.losses import cross_entropy
from unlearning_audit.training.streams import Batch, Rows, Stream

#: A batch and the original's logits for it → the NLL of another label under the batch's logits, [n, b].
Relabelled = Callable[[Batch, Tensor], Tensor]


def views(bank: Bank, kind: str, forget: Rows) -> Tensor | None:
    """The views of one kind, int64 [samples, most]; None unless each sample to forget has one."""
    table = bank.views.get(kind)
    return None if table is None or (table[forget.index, 0] < 0).any() else table


def preferred(difference: Tensor, beta: float) -> Tensor:
    """−(2/β)·log σ(β·difference), elementwise."""
    from torch.nn.functional import logsigmoid

    return -2 / beta * logsigmoid(beta * difference)


def over_view(bank: Bank, forget: Rows, table: Tensor, beta: float) -> tuple[Stream, ...]:
    """Streams that prefer to each sample's answer its views ``table`` int64 [samples, views], mean over them."""
    original = bank.frozen()

    def gained(batch: Batch) -> Tensor:
        rise = cross_entropy(original(batch), batch.labels) - cross_entropy(batch.logits, batch.labels)
        return rise * _tokens.count(bank, batch)

    def loss(batch: Batch) -> Tensor:
        assert batch.first is not None
        return preferred(gained(batch) - gained(batch.first), beta)

    columns = [column.contiguous() for column in table.T]
    weight = 1 / len(columns)
    follow = (Stream(forget, loss=loss, weight=weight, follows=column) for column in columns)
    return (Stream(forget, loss=None), *follow)


def over_label(bank: Bank, forget: Rows, other_label: Relabelled, beta: float) -> Stream:
    """A stream that prefers another label to each sample's label."""
    original = bank.frozen()

    def loss(batch: Batch) -> Tensor:
        reference = original(batch)
        before = dataclasses.replace(batch, logits=reference, first=None, reading=None)
        rise = other_label(before, reference) - other_label(batch, reference)
        fall = cross_entropy(reference, batch.labels) - cross_entropy(batch.logits, batch.labels)
        return preferred(rise - fall, beta)

    return Stream(forget, loss=loss)
