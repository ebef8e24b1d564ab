"""Settings of optimisers that recipes and methods share, and their learning-rate schedules."""

import math
from typing import Any, Literal

from pydantic import Field, model_validator

from unlearning_audit.plugins.settings import Rate, Settings
from unlearning_audit.training.lazy import torch

Kind = Literal["sgd", "adam", "adamw", "rmsprop"]
Schedule = Literal["constant", "cosine", "multistep", "one_cycle"]


class Optimiser(Settings):
    """Optimiser, learning rate, and how batches are read.

    ``schedule`` multiplies ``lr``: cosine falls to 0 over all epochs; multistep multiplies by ``lr_decay`` at each of
    the ``milestones`` (0-based epochs); one_cycle rises linearly from 0 to 1 during the first quarter of all steps and
    falls linearly to 0 during the rest (Smith & Topin 2017). ``augment`` crop_flip shifts images by up to 4 pixels and
    mirrors half of them, drawn anew for every pass, in all batches of a step.
    """

    optimiser: Kind = "sgd"
    lr: Rate = 0.1
    momentum: float = Field(0.0, ge=0, lt=1)
    weight_decay: float = Field(0.0, ge=0)
    batch_size: int = Field(64, ge=1)
    schedule: Schedule = "constant"
    milestones: tuple[int, ...] = ()
    lr_decay: float = Field(0.1, gt=0)
    augment: Literal["none", "crop_flip"] = "none"

    @model_validator(mode="after")
    def _milestones_are_of_a_schedule(self) -> "Optimiser":
        """Return the options. Raise ValueError if milestones are set without the schedule multistep, or the schedule
        without milestones, or if milestones are not epochs in rising order from 1 on."""
        milestones = self.milestones
        if (self.schedule == "multistep") != bool(milestones):
            raise ValueError("milestones and the schedule multistep belong together; set both or none of the two")
        # Each milestone is compared with the one before it, and the first with 0.
        if any(later <= earlier for earlier, later in zip((0, *milestones), milestones, strict=False)):
            raise ValueError(f"milestones must be epochs in rising order, from 1 on, found {list(milestones)}")
        return self

    def rate(self, epoch: int, epochs: int, step: int = 0, steps: int = 1) -> float:
        """Return the learning rate of the 0-based ``step`` of the 0-based ``epoch``, out of ``steps`` in an epoch and
        ``epochs`` in all, by the ``schedule``. Only one_cycle changes the rate within an epoch."""
        if self.schedule == "one_cycle":  # up to the rate ``lr`` in the first quarter, and down to 0 in the rest
            progress = (epoch + (step + 0.5) / steps) / epochs
            return self.lr * min(progress / 0.25, (1 - progress) / 0.75)
        if self.schedule == "cosine":
            return self.lr * (1 + math.cos(math.pi * epoch / epochs)) / 2
        if self.schedule == "multistep":
            return self.lr * self.lr_decay ** sum(epoch >= milestone for milestone in self.milestones)
        return self.lr

    def build(self, parameters: list[Any], replayed_on: str = "") -> Any:
        """Return the optimiser object, with these settings, of stacked ``parameters``.

        Every update is elementwise, so that models do not interact.

        Parameters
        ----------
        replayed_on
            The device of steps that are replayed from CUDA graphs, which read the learning rate from a tensor; "" for
            other steps.
        """
        from unlearning_audit.training import updates

        rate = None
        if replayed_on:  # float64, but float32 for SGD on a GPU, whose kernel takes nothing else
            single = torch.device(replayed_on).type == "cuda" and self.optimiser == "sgd"
            rate = torch.zeros((), device=replayed_on, dtype=torch.float32 if single else torch.float64)

        kinds = {"sgd": updates.SGD, "adam": updates.Adam, "adamw": updates.AdamW, "rmsprop": updates.RMSprop}
        return kinds[self.optimiser](
            parameters, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay, rate=rate
        )
