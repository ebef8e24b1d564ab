"""Random labels, for methods that train with them."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from unlearning_audit.bank.bank import Bank
from unlearning_audit.bank.losses import cross_entropy
from unlearning_audit.bank.streams import Batch
from unlearning_audit.randomness.keyed import generator


class RandomLabels:
    """Cross-entropy with labels drawn uniformly at random, anew in every epoch or once.

    ``any``: over all classes, the true one included; ``other``: over the other classes. Draws are keyed by
    (the model's seed, the sample, the epoch).
    """

    def __init__(self, bank: Bank, relabel: Literal["any", "other"], redraw: bool = True) -> None:
        self.bank, self.least, self.redraw = bank, int(relabel == "other"), redraw
        self._labels: tuple[tuple, Tensor] | None = None

    def __call__(self, batch: Batch) -> Tensor:
        """One loss per sample, [n, b]."""
        classes = batch.logits.shape[-1]
        epoch = batch.epoch if self.redraw else 0
        key = (epoch, *batch.models)
        if self._labels is None or self._labels[0] != key:
            draws = [
                generator(self.bank.seeds[model], "random labels", epoch).integers(
                    self.least, classes, len(self.bank.x)
                )
                for model in batch.models
            ]
            self._labels = key, torch.from_numpy(np.stack(draws)).to(batch.rows.device)
        # The true label shifted by a uniform number is uniform over all classes, or over the others if 0 is excluded.
        wrong = (batch.labels + self._labels[1].gather(1, batch.rows)) % classes
        return cross_entropy(batch.logits, wrong)
