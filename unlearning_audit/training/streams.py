"""The rows of each training step: each model's own samples, in an order keyed by its seed and the purpose."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unlearning_audit.randomness.keyed import generator
from unlearning_audit.training.lazy import Tensor, torch
from unlearning_audit.training.losses import cross_entropy


@dataclass(frozen=True)
class Rows:
    """The samples that each model reads, by their numbers. All models have equally many.

    Parameters
    ----------
    index
        int64 [models, rows of a model]: the numbers of the samples.
    fixed
        Whether every pass reads them in this order instead of shuffling them.
    """

    index: np.ndarray
    fixed: bool = False

    @classmethod
    def where(cls, mask: np.ndarray) -> "Rows":
        """Return the rows of each model: the numbers of the samples for which ``mask`` bool [models, samples] is true
        in its line.

        Raises ValueError if models have different numbers of samples. Models that are trained together need equally
        many: to fill up the smaller ones, batches would need extra samples, which batch normalisation would count.
        """
        counts = mask.sum(1)
        if counts.min() != counts.max():
            raise ValueError(
                f"models of one batch must have equally many samples, found {counts.min()} to {counts.max()}; "
                "draw the memberships in balanced blocks"
            )
        # [1], the second result of `nonzero`: the samples of the first model, then those of the second, and so on.
        return cls(np.nonzero(mask)[1].reshape(len(mask), int(counts[0])))

    def __len__(self) -> int:
        """Return the number of rows of one model."""
        return int(self.index.shape[1])

    def __getitem__(self, models: list[int]) -> "Rows":
        """Return the rows of these ``models``, numbers of lines of ``index``, in this order."""
        return Rows(self.index[models], self.fixed)

    def __add__(self, rows: "Rows") -> "Rows":
        """Return each model's rows followed by its rows of ``rows``. Their order is not fixed."""
        return Rows(np.concatenate([self.index, rows.index], axis=1))

    def ranked(self, score: np.ndarray) -> "Rows":
        """Return each model's rows sorted by falling ``score`` float [samples]; every pass reads them in this order."""
        order = np.argsort(-score[self.index], axis=1, kind="stable")  # of each model's own rows
        return Rows(np.take_along_axis(self.index, order, axis=1), fixed=True)

    def sample(self, count: int, seeds: list[int], purpose: str) -> "Rows":
        """Return ``count`` of each model's rows, drawn at random without replacement. If a model has at most ``count``
        rows, return all of them in random order.

        A model's draw depends on its seed, one of ``seeds``, and on ``purpose``.
        """
        draws = [generator(seed, purpose).permutation(len(self))[:count] for seed in seeds]
        return Rows(np.take_along_axis(self.index, np.stack(draws), axis=1))


@dataclass
class Batch:
    """The input of a loss at one step. The leading dimension n runs over the models of the group.

    Parameters
    ----------
    x
        [n, b, …]: the samples.
    labels
        int64 [n, b]: the labels.
    rows
        int64 [n, b]: the numbers of the samples.
    models
        The numbers of the models in the stack.
    logits
        [n, b, classes]: the logits of the samples, or the output that ``reading`` names.
    at
        int64 [n, 1]: ``models`` on the device.
    epoch
        Counted from 0 (a tensor [] in a step that is recorded once for all epochs).
    first
        The batch of the step's first stream (None in that stream itself).
    reading
        Which output of the models ``logits`` holds, if not logits.
    loss_state
        What losses keep for these models until their training ends.
    """

    x: Tensor
    labels: Tensor
    rows: Tensor
    models: list[int]
    logits: Tensor = None  # type: ignore[assignment]  # set before a loss reads the batch
    at: Tensor = None  # type: ignore[assignment]  # as logits
    epoch: int | Tensor = 0
    first: "Batch | None" = None
    reading: str | None = None
    loss_state: dict[Any, Any] = field(default_factory=dict)


def fit_labels(batch: Batch) -> Tensor:
    """Return the cross-entropy of each sample of a batch with its observed label, [n, b]: the loss of ordinary
    training."""
    return cross_entropy(batch.logits, batch.labels)


def class_weighted_loss(labels: Tensor, rows: Rows) -> Callable[[Batch], Tensor]:
    """Return a loss in which rare classes count more: each sample's cross-entropy times its weight, divided by the mean
    weight of the batch. The weight of a sample is 1/(number of samples of its class among the model's ``rows``).

    The mean of this loss over a batch equals torch's cross_entropy with these weights of classes.

    Parameters
    ----------
    labels
        int64 [samples], or [models, samples] if models have labels of their own.
    rows
        The samples of each model.
    """
    index = torch.from_numpy(rows.index).to(labels.device)
    # The class of each row of each model, [models, rows], and how many rows of each class a model has.
    classes = labels.expand(len(index), -1).gather(1, index) if labels.ndim == 1 else labels.gather(1, index)
    counts = torch.zeros(len(index), int(labels.max()) + 1, dtype=torch.float64, device=labels.device)
    counts.scatter_add_(1, classes, torch.ones_like(classes, dtype=torch.float64))

    def loss(batch: Batch) -> Tensor:
        """Return the weighted cross-entropy of each sample of a batch, [n, b]. ``counts``, of the function around this
        one, says how many rows of each class a model has."""
        weight = (1 / counts[batch.at.squeeze(1)]).gather(1, batch.labels).to(batch.logits.dtype)
        return cross_entropy(batch.logits, batch.labels) * weight / weight.mean(-1, keepdim=True)

    loss.whole = True  # type: ignore[attr-defined]  # a batch may not be divided, because its mean weight is needed
    return loss


@dataclass(frozen=True)
class Stream:
    """Rows that models read in batches, and the loss of a batch.

    Parameters
    ----------
    rows
        The rows that are read.
    loss
        Maps a Batch to one value per sample, [n, b]. Without a loss (None), the batch only provides logits to the later
        streams of the step. If a loss has a method ``begin``(epoch, models, loss_state, device), it is called before
        every epoch of a group, to put random draws for the epoch into ``loss_state``. A loss with an attribute
        ``whole`` needs all samples of the batch at once.
    weight
        A step minimises ``weight`` times the mean of the loss.
    batch_size
        The size of a batch; None: that of the optimiser.
    epochs
        Of the first stream of a pass: after how many epochs the pass is left out; None: never. It is not read of other
        streams.
    reading
        Which output of the models the batch has in place of logits (`Models.readings`).
    follows
        int64 [samples]: if given, the batch is not read from ``rows``. For each row r of the step's first stream, it
        has the row ``follows[r]``.
    """

    rows: Rows
    loss: Callable[[Batch], Tensor] | None = fit_labels
    weight: float = 1.0
    batch_size: int | None = None
    epochs: int | None = None
    reading: str | None = None
    follows: Tensor | None = None


@dataclass
class Order:
    """The endless sequence of batches of one stream for one group of models.

    Parameters
    ----------
    rows
        The samples of each model.
    seeds
        The seed of each model.
    purpose
        What shuffles each pass together with a model's seed, unless the order of ``rows`` is fixed.
    jitter
        Whether shifts of images are drawn too.
    passes
        How many passes have been begun, which is the number of the next one.
    """

    rows: Rows
    seeds: list[int]
    purpose: str
    batch_size: int
    jitter: bool = False
    device: str = "cpu"
    passes: int = 0

    @property
    def steps(self) -> int:
        """The number of batches per pass. The last batch may be smaller."""
        return -(-len(self.rows) // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Yield batches without end: the rows int64 [n, b] of a batch, and the shifts of its images uint8 [n, b, 3], or
        None without ``jitter``. n is the number of models and b the batch size.

        One pass reads all rows once; its last batch may be smaller. The three numbers of an image are a vertical and a
        horizontal shift, 0 to 8 pixels, and 1 if it is mirrored, else 0 (`crop_and_flip` applies them). Raises
        ValueError if there are no rows.
        """
        count = len(self.rows)
        if not count:
            raise ValueError("a stream has no rows to read; give every model at least one such sample")
        while True:
            generators = [generator(seed, self.purpose, self.passes) for seed in self.seeds]  # one for each model
            order = np.stack([np.arange(count) if self.rows.fixed else rng.permutation(count) for rng in generators])
            index = torch.from_numpy(np.take_along_axis(self.rows.index, order, axis=1)).to(self.device)
            shifts = None
            if self.jitter:
                # Limits of the two shifts, from 0 to 8, and of the mirroring, 0 or 1; numbers stay below a limit.
                offsets = np.stack([rng.integers(0, [9, 9, 2], (count, 3), dtype=np.uint8) for rng in generators])
                shifts = torch.from_numpy(offsets).to(self.device)
            self.passes += 1
            for start in range(0, count, self.batch_size):
                batch = slice(start, start + self.batch_size)
                yield index[:, batch], None if shifts is None else shifts[:, batch]


def crop_and_flip(x: Tensor, jitter: Tensor | np.ndarray) -> Tensor:
    """Shift images by up to 4 pixels (zeros outside) and mirror them, as ``jitter`` says: the result has the shape of
    ``x``.

    Images are padded by 4 pixels on each side; the result is the part of the padded image that begins at the shift.

    Parameters
    ----------
    x
        [n, b, c, h, w]: the images.
    jitter
        uint8 [n, b, 3]: vertical and horizontal shift 0–8 (4 is none), flip 0–1.

    Raises
    ------
    ValueError
        For samples that are not images.
    """
    if x.ndim != 5:
        raise ValueError(f"augment: crop_flip is for images, and a sample here is {tuple(x.shape[2:])}; set it to none")
    padded = torch.nn.functional.pad(x.flatten(0, 1), (4, 4, 4, 4))
    shifts = torch.as_tensor(jitter, device=x.device).reshape(-1, 3).long()  # of all images, [n·b, 3]
    height, width = x.shape[-2:]
    # Which row and which column of the padded image each pixel of the result is taken from: [n·b, h] and [n·b, w].
    rows = shifts[:, :1] + torch.arange(height, device=x.device)
    columns = torch.arange(width, device=x.device).expand(len(shifts), width)
    columns = shifts[:, 1:2] + torch.where(shifts[:, 2:] == 1, width - 1 - columns, columns)
    image = torch.arange(len(shifts), device=x.device)[:, None, None]
    # An index on both sides of the slice moves the channels to the end, and `permute` moves them back.
    moved = padded[image, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
    return moved.reshape(x.shape)
