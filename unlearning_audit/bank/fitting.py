"""The training loop of a bank: epochs of passes over streams of batches."""

from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from torch import Tensor

from unlearning_audit.bank.engine import Serial, State
from unlearning_audit.bank.models import Models
from unlearning_audit.bank.optim import Optimiser
from unlearning_audit.bank.recording import Inputs, Recorder
from unlearning_audit.bank.streams import Order, Stream, fit_labels

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
        """Train group by group; return the recorded updates, if any were asked for.

        On a GPU steps are recorded and replayed, unless a loss of the user's is among them: Python that it runs in
        every step would run once.
        """
        bank = self.bank
        if self.record is not None:
            self.recorded = {k: torch.zeros_like(v) for k, v in bank.parameters.items()}
        on_gpu = torch.device(bank.device).type == "cuda"
        for group in bank.engine.groups(len(bank)):
            leaves, buffers = self.copy_state(group)
            recorder = Recorder() if on_gpu and self.recordable() else None
            on_cpu = not on_gpu and isinstance(bank.engine, Serial)
            with bank.engine.lasting(leaves, buffers) if on_cpu else recorder.queued() if recorder else nullcontext():
                self._train(group, leaves, buffers, recorder)
            self.write_back(group, leaves, buffers)
        return self.recorded

    def recordable(self) -> bool:
        """Whether all losses and the penalty are the library's, which compute the same from step to step of a pass."""
        losses = [stream.loss for streams in self.passes for stream in streams]
        modules = (getattr(loss, "__module__", "") or "" for loss in (*losses, self.penalty) if loss is not None)
        return all(module.startswith("unlearning_audit.") for module in modules)

    def lasting(self) -> bool:
        """Whether a step is the same in every epoch: losses and penalties may depend on its number."""
        return self.penalty is None and all(
            stream.loss in (None, fit_labels) for streams in self.passes for stream in streams
        )

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

    def _train(self, group: list[int], leaves: State, buffers: State, recorder: Recorder | None = None) -> None:
        """All epochs of the models of one group; ``leaves`` and ``buffers`` change in place."""
        moving = [v for v in leaves.values() if v.requires_grad]
        device = self.bank.device

        def build(settings: Optimiser):
            return settings.build(moving, settings.recorded_rate(device) if recorder is not None else None)

        if isinstance(self.optimiser, tuple):
            optimisers, steppers = self.optimiser, [build(settings) for settings in self.optimiser]
        else:
            passes = len(self.passes)
            optimisers, steppers = (self.optimiser,) * passes, [build(self.optimiser)] * passes
        state = GroupState(self, group, leaves, buffers)
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
        count = 0
        for epoch in range(self.epochs):
            if recorder is not None and not self.lasting():
                recorder.forget()
            for p, streams in enumerate(self.passes):
                if streams[0].epochs is not None and epoch >= streams[0].epochs:
                    continue
                steps = orders[p][0].steps
                for step in range(steps):
                    if count == self.steps:
                        state.write_record()
                        return
                    steppers[p].set_rate(optimisers[p].rate(epoch, self.epochs, step, steps))
                    inputs = [next(reader) for reader in readers[p]]
                    update = partial(self._step, state, streams, steppers[p], epoch)
                    if recorder is None:
                        update(inputs)
                    else:
                        recorder.run(p, update, inputs)
                    count += 1
        state.write_record()

    def _step(self, state: "GroupState", streams, stepper, epoch: int, inputs: Inputs) -> None:
        """One batch of each stream, one update of the weights."""
        group, leaves, buffers = state.group, state.leaves, state.buffers
        total, first, touched = None, None, None
        for stream, (rows, jitter) in zip(streams, inputs, strict=True):
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
                read = state.marks.gather(1, batch.rows).any(1)
                touched = read if touched is None else touched | read
            first = first or batch
        if self.penalty is not None:
            penalty = self.penalty(leaves, epoch)
            total = penalty if total is None else total + penalty
        stepper.zero_grad()
        # With a gradient given in place of a sum, torch imports its compiler's symbols: three seconds a process.
        (total if total.numel() == 1 else total.sum()).backward()
        if isinstance(self.bank.engine, Serial):
            self.bank.engine.hand_on()
        if self.record is not None:
            moving = {k: v for k, v in leaves.items() if v.requires_grad}
            before = {k: v.detach().clone() for k, v in moving.items()}
        with torch.no_grad():
            for k, factor in state.scale.items():
                leaves[k].grad *= factor
            stepper.step()
            for k, (mask, start) in state.masked.items():
                torch.where(mask, leaves[k], start, out=leaves[k])
            if self.record is not None:
                state.add(moving, before, touched)


class GroupState:
    """What one group of models trains.

    ``leaves`` and ``buffers`` [n, …]; ``masked``, name → which weights move, and all of them as they were at first; the
    group's part of the fit's ``scale``; the recorded samples ``marks`` bool [n, samples] and the ``sums`` of updates
    that touched them.
    """

    def __init__(self, fit: Fit, group: list[int], leaves: State, buffers: State) -> None:
        self.fit, self.group, self.leaves, self.buffers = fit, group, leaves, buffers
        self.masked = {
            k: (fit.mask[k][group], v.detach().clone()) for k, v in leaves.items() if fit.mask and v.requires_grad
        }
        self.scale = {k: v[group] for k, v in (fit.scale or {}).items()}
        self.marks: Tensor | None = None
        self.sums: State = {}
        if fit.record is not None:
            self.marks = torch.from_numpy(fit.record[group]).to(fit.bank.device)
            self.sums = {k: torch.zeros_like(v) for k, v in leaves.items() if v.requires_grad}

    def add(self, after: State, before: State, touched: Tensor) -> None:
        """Add this step's update to the sum of every model in ``touched`` bool [n]."""
        if touched.device.type == "cpu" and not touched.any():  # on a card the question would wait for it
            return
        for k, v in after.items():
            chosen = touched.reshape(-1, *[1] * (v.ndim - 1))
            self.sums[k] += torch.where(chosen, v - before[k], torch.zeros_like(v))

    def write_record(self) -> None:
        """Write the sums to the fit's record."""
        for k, v in self.sums.items():
            self.fit.recorded[k][self.group] = v
