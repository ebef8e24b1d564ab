"""Direct preference optimisation (Rafailov et al. 2023): make another answer more probable than the answer to be
forgotten."""

import dataclasses
from collections.abc import Callable

from unlearning_audit.methods import Batch, ModelStack, Rows, Stream, Tensor, _tokens, cross_entropy, nn

#: A batch and the original's logits for it → the NLL of another label under the batch's logits, [n, b].
Relabelled = Callable[[Batch, Tensor], Tensor]


def views(stack: ModelStack, kind: str, forget: Rows, missing: str) -> Tensor:
    """Return which rows of the data are the views of one ``kind`` of each sample, such as refusals of its answer: int64
    [samples, most views of a sample], −1 where a sample has fewer.

    Raises ValueError with the sentence ``missing`` if the data have no such views, or if a sample to forget has none.
    """
    table = stack.views.get(kind)
    if table is None or (table[forget.index, 0] < 0).any():  # entry 0 is −1 only without any view
        raise ValueError(missing)
    return table


def preferred(difference: Tensor, beta: float) -> Tensor:
    """Return the loss of direct preference optimisation, −(2/β)·log σ(β·difference) with β = ``beta``, elementwise.

    Parameters
    ----------
    difference
        How much more the log p of the preferred answer has risen than that of the sample's own answer.
    """
    return -2 / beta * nn.functional.logsigmoid(beta * difference)


def over_view(stack: ModelStack, forget: Rows, table: Tensor, beta: float) -> tuple[Stream, ...]:
    """Return the streams of a step whose loss prefers each sample's views, which are other answers, to its own answer,
    as a mean over the views.

    The first stream reads the samples to forget and has no loss. Each further stream reads one view of these samples,
    by one column of ``table``.

    Parameters
    ----------
    table
        int64 [samples, views]: the rows of each sample's views; a sample to forget has no −1.
    beta
        β: the difference of the two answers is multiplied by it before log σ.
    """
    original = stack.frozen()

    def gained(batch: Batch) -> Tensor:
        """Return how much log p of each answer, summed over its scored tokens, has risen above that by the original
        models (``original`` of the function around this one): [n, b]."""
        # The cross-entropy of a text is the mean of −log p over its scored tokens.
        rise = cross_entropy(original(batch), batch.labels) - cross_entropy(batch.logits, batch.labels)
        return rise * _tokens.count_scored(stack, batch)

    def loss(batch: Batch) -> Tensor:
        """Return the loss of each sample by the view in ``batch``, −(2/β)·log σ(β·(rise of the view − rise of the own
        answer)), [n, b]. The first batch has the own answers."""
        assert batch.first is not None
        return preferred(gained(batch) - gained(batch.first), beta)

    columns = [column.contiguous() for column in table.T]
    streams_of_views = (Stream(forget, loss=loss, weight=1 / len(columns), follows=column) for column in columns)
    return (Stream(forget, loss=None), *streams_of_views)


def over_label(stack: ModelStack, forget: Rows, other_label: Relabelled, beta: float) -> Stream:
    """Return a stream over forget whose loss prefers another label to each sample's own label.

    Parameters
    ----------
    other_label
        Maps a batch and the original's logits of its samples to the NLL of the other label, [n, b].
    beta
        β: the difference of the two answers is multiplied by it before log σ.
    """
    original = stack.frozen()

    def loss(batch: Batch) -> Tensor:
        """Return the loss of each sample, [n, b]: −(2/β)·log σ(β·difference). The difference is the rise of log p of
        the other label minus the rise of log p of the sample's own label, both since the original models."""
        reference = original(batch)
        # The batch as the originals see it, of which only the logits are read.
        before = dataclasses.replace(batch, logits=reference, first=None, reading=None)
        # By how much log p of either label has risen above the original's.
        rise_of_other = other_label(before, reference) - other_label(batch, reference)
        rise_of_own = cross_entropy(reference, batch.labels) - cross_entropy(batch.logits, batch.labels)
        return preferred(rise_of_other - rise_of_own, beta)

    return Stream(forget, loss=loss)
