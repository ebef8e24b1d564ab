"""The training loop of a bank: epochs of passes over streams of batches."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from unlearning_audit.bank.engine import State
from unlearning_audit.bank.models import Models
from unlearning_audit.bank.optim import Optimiser
from unlearning_audit.bank.streams import Batch, Order, Stream

#: (parameters, epoch) → one value per model, added to the loss.
Penalty = Callable[[State, int], Tensor]


@dataclass
class Fit:
    """One call of `Bank.fit`; the fields are its arguments, with every pass as a tuple of streams."""

    bank: Models
    passes: tuple[tuple[Stream, ...], ...]
    optimiser: Optimiser | tuple[Optimiser, ...]
    epochs: int
    purpose: str
    only: Collection[str] | None
    mask: State | None
    scale: State | None
    penalty: Penalty | None
    augment: bool
    record: np.ndarray | None
    steps: int | None = None
    recorded: State | None = field(default=None, init=False)

    def run(self) -> State | None:
        """Train group by group; return the recorded updates, if any were asked for."""
        bank = self.bank
        if self.record is not None:
            self.recorded = {k: torch.zeros_like(v) for k, v in bank.parameters.items()}
        for group in bank.engine.groups(len(bank)):
            leaves, buffers = self.copy_state(group)
            self._train(group, leaves, buffers)
            self.write_back(group, leaves, buffers)
        return self.recorded

    def copy_state(self, group: list[int]) -> tuple[State, State]:
        """Copies of the group's parameters, with gradients for those that are trained, and of its buffers."""
        moving = set(self.bank.parameters if self.only is None else self.only)
        leaves = {k: v[group].clone().requires_grad_(k in moving) for k, v in self.bank.parameters.items()}
        return leaves, {k: v[group].clone() for k, v in self.bank.buffers.items()}

    def write_back(self, group: list[int], leaves: State, buffers: State) -> None:
        """Write the group's parameters and buffers back to the bank."""
        for state, trained in ((self.bank.parameters, leaves), (self.bank.buffers, buffers)):
            for k, v in trained.items():
                state[k][group] = v.detach()

    def _train(self, group: list[int], leaves: State, buffers: State) -> None:
        """All epochs of the models of one group; ``leaves`` and ``buffers`` change in place."""
        moving = [v for v in leaves.values() if v.requires_grad]
        if isinstance(self.optimiser, tuple):
            optimisers, steppers = self.optimiser, [settings.build(moving) for settings in self.optimiser]
        else:
            passes = len(self.passes)
            optimisers, steppers = (self.optimiser,) * passes, [self.optimiser.build(moving)] * passes
        seeds = [self.bank.seeds[model] for model in group]
        orders = [
            [
                Order(
                    stream.rows[group], seeds, f"{self.purpose}/{p}.{s}",
                    stream.batch_size or optimiser.batch_size, jitter=self.augment, device=self.bank.device,
                )
                for s, stream in enumerate(streams)
            ]
            for p, (streams, optimiser) in enumerate(zip(self.passes, optimisers, strict=True))
        ]  # fmt: skip
        readers = [[iter(order) for order in row] for row in orders]
        masked = {
            k: (self.mask[k][group], v.detach().clone()) for k, v in leaves.items() if self.mask and v.requires_grad
        }
        count = 0
        for epoch in range(self.epochs):
            for p, streams in enumerate(self.passes):
                if streams[0].epochs is not None and epoch >= streams[0].epochs:
                    continue
                steps = orders[p][0].steps
                for step in range(steps):
                    if count == self.steps:
                        return
                    steppers[p].param_groups[0]["lr"] = optimisers[p].rate(epoch, self.epochs, step, steps)
                    self._step(group, leaves, buffers, streams, readers[p], steppers[p], epoch, masked)
                    count += 1

    def _step(self, group, leaves, buffers, streams, readers, stepper, epoch, masked) -> None:
        """One batch of each stream, one update of the weights, but for what ``masked`` holds (name → which move, and
        all of them as they were at first)."""
        total, first, touched = None, None, False
        for stream, reader in zip(streams, readers, strict=True):
            rows, jitter = next(reader)
            if stream.follows is not None:
                rows = stream.follows[first.rows]
            batch = self.bank.read(group, rows, jitter)
            batch.epoch, batch.first, batch.reading = epoch, first, stream.reading
            batch.logits = self.bank.forward(leaves, buffers, batch.x, stream.reading)
            if stream.loss is not None:
                loss = stream.loss(batch).mean(-1)
                loss = loss if stream.weight == 1 else stream.weight * loss
                total = loss if total is None else total + loss
            if self.record is not None:
                touched = touched | self._recorded_rows(batch)
            first = first or batch
        if self.penalty is not None:
            penalty = self.penalty(leaves, epoch)
            total = penalty if total is None else total + penalty
        stepper.zero_grad()
        total.sum().backward()  # with a gradient given, torch imports its compiler's symbols: three seconds a process
        moving = {k: v for k, v in leaves.items() if v.requires_grad}
        before = {k: v.detach().clone() for k, v in moving.items()} if self.record is not None else {}
        with torch.no_grad():
            for k, factor in (self.scale or {}).items():
                leaves[k].grad *= factor[group]
            stepper.step()
            for k, (mask, start) in masked.items():
                torch.where(mask, leaves[k], start, out=leaves[k])
            if self.record is not None:
                self._add(group, moving, before, touched)

    def _recorded_rows(self, batch: Batch) -> np.ndarray:
        """Which models of the group read a recorded sample in this batch: bool [n]."""
        return np.take_along_axis(self.record[batch.models], batch.rows.cpu().numpy(), 1).any(1)

    def _add(self, group: list[int], after: State, before: State, touched: np.ndarray) -> None:
        """Add this step's update to the record of every model in ``touched`` (a ghost counts once)."""
        for model, slot in {model: slot for slot, model in enumerate(group)}.items():
            if touched[slot]:
                for k, v in after.items():
                    self.recorded[k][model] += v[slot] - before[k][slot]
