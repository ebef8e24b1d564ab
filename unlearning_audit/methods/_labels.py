"""Random labels, for methods that train with them."""

from typing import Any, Literal

import numpy as np

from unlearning_audit.methods import Batch, ModelStack, Tensor, cross_entropy, torch
from unlearning_audit.randomness.keyed import generator


class RandomLabels:
    """A loss: the cross-entropy with random labels, drawn uniformly in every epoch or, without ``redraw``, once. A draw
    is the ``shifts``, the numbers that are added to the true labels.

    ``relabel``: "any" draws from all classes, the true one included; "other" from all but the true one. The draws are
    keyed by the model's seed, the sample and the epoch. They are kept in the ``loss_state`` of a group of models, with
    the number of ``classes``, the present ``epoch``, and the epoch that they were ``drawn_for``.
    """

    def __init__(self, stack: ModelStack, relabel: Literal["any", "other"], redraw: bool = True) -> None:
        """Set ``least``, the smallest number by which a label is shifted; a shift of 0 would give the true label."""
        self.stack, self.least, self.redraw = stack, 1 if relabel == "other" else 0, redraw

    def begin(self, epoch: int, models: list[int], loss_state: dict[Any, Any], device: str) -> None:
        """Draw the labels of an ``epoch`` at its start, if labels are redrawn.

        The new labels replace the last ones in place, because a step that is replayed from a CUDA graph reads that
        memory.

        At the start of the first epoch nothing is drawn, because the number of classes is not known before the first
        step.

        Parameters
        ----------
        models
            The models of the group that begins the epoch.
        loss_state
            What losses keep for these models: here the shifts, the epoch and the number of classes.
        device
            Not used.
        """
        state = loss_state.setdefault(self, {})
        state["epoch"] = epoch if self.redraw else 0
        if "shifts" in state and state["drawn_for"] != state["epoch"]:
            state["shifts"].copy_(self._draw_shifts(models, state["epoch"], state["classes"]))
            state["drawn_for"] = state["epoch"]

    def __call__(self, batch: Batch) -> Tensor:
        """Return the cross-entropy of each sample of a batch with its random label, [n, b]. The labels of the epoch are
        drawn here if `begin` has not drawn them."""
        state, classes = batch.loss_state.setdefault(self, {}), batch.logits.shape[-1]
        # `begin` has set the epoch, if the loss is that of a stream and not a part of another loss.
        epoch = state.get("epoch", batch.epoch if self.redraw else 0)
        if state.get("drawn_for") != epoch:
            state["shifts"] = self._draw_shifts(batch.models, epoch, classes).to(batch.rows.device)
            state["drawn_for"], state["classes"] = epoch, classes
        # The true label shifted by a uniform number is uniform over all classes, or over the others if 0 is excluded.
        wrong = (batch.labels + state["shifts"].gather(1, batch.rows)) % classes
        return cross_entropy(batch.logits, wrong)

    def _draw_shifts(self, models: list[int], epoch: int, classes: int) -> Tensor:
        """Return the random number by which the label of each sample is shifted in this ``epoch``, for each of the n
        ``models``: int64 [n, samples], from ``least`` to ``classes`` − 1."""
        generators = [generator(self.stack.seeds[model], "random labels", epoch) for model in models]
        shifts = [rng.integers(self.least, classes, len(self.stack.x)) for rng in generators]
        return torch.from_numpy(np.stack(shifts))
