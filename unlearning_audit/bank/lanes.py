"""Plain training on a GPU: several models in flight, and a step of each is one replay of a recorded CUDA graph.

Launching the kernels of a small network's step takes longer than running them, and a single network leaves gaps
between kernels. So each group of models has a lane: a CUDA stream with its own recorded step; lanes are served in
turn. A model does not depend on the other lanes.
"""

import logging
import os
from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor

from unlearning_audit.bank.fitting import Fit
from unlearning_audit.bank.streams import Order, fit_labels

#: Warm-up steps before a recording, in which libraries choose kernels and allocate workspaces.
WARM_UP = 3


def suits(fit: Fit) -> bool:
    """Whether a fit is training on a GPU and nothing else: one stream, its labels' cross-entropy, one optimiser."""
    if torch.device(fit.bank.device).type != "cuda" or len(fit.passes) != 1 or len(fit.passes[0]) != 1:
        return False
    stream, special = fit.passes[0][0], (fit.mask, fit.scale, fit.penalty, fit.record, fit.steps)
    plain = stream.loss is fit_labels and stream.epochs is None and all(part is None for part in special)
    return plain and not isinstance(fit.optimiser, tuple)


def in_flight() -> int:
    """Groups that train at once; UNLEARNING_IN_FLIGHT overrides."""
    return max(int(os.environ.get("UNLEARNING_IN_FLIGHT", "4")), 1)


def run(fit: Fit) -> None:
    """Train all groups of models, a few at a time, and give the results to the bank."""
    waiting, at_once = fit.bank.engine.groups(len(fit.bank)), in_flight()
    while waiting:
        together = waiting[:at_once]
        try:
            _train(fit, together)
        except torch.OutOfMemoryError:
            if len(together) == 1:
                raise
            # The bank has seen nothing of these lanes, so they start anew, fewer at once.
            at_once = len(together) // 2
            logging.warning("%d groups of models do not fit the card at once; %d now", len(together), at_once)
            torch.cuda.empty_cache()
            continue
        waiting = waiting[len(together) :]


def _train(fit: Fit, groups: list[list[int]]) -> None:
    """All epochs of some groups at once. Raises torch.OutOfMemoryError, and leaves the bank as it was, if the card does
    not hold them."""
    lanes = [Lane(fit, group) for group in groups]
    for epoch in range(fit.epochs):
        for lane in lanes:
            lane.begin()
        steps = lanes[0].order.steps
        for step in range(steps):
            rate = fit.optimiser.rate(epoch, fit.epochs, step, steps)
            for lane in lanes:
                lane.advance(step, rate)
    for lane in lanes:
        lane.finish()


class Lane:
    """One group of models in training. A recorded step reads its batch from ``rows`` int64 [n, b] and ``jitter`` uint8
    [n, b, 3]."""

    def __init__(self, fit: Fit, group: list[int]) -> None:
        self.fit, self.group, self.bank = fit, group, fit.bank
        self.stream, optimiser, device = fit.passes[0][0], fit.optimiser, fit.bank.device
        self.leaves, self.buffers = fit.copy_state(group)
        on_gpu = torch.device(device).type == "cuda"
        self.rate = optimiser.recorded_rate(device)
        self.optimiser = optimiser.build([v for v in self.leaves.values() if v.requires_grad], self.rate)
        self.order = Order(
            self.stream.rows[group], [self.bank.seeds[m] for m in group], f"{fit.purpose}/0.0",
            self.stream.batch_size or optimiser.batch_size, jitter=fit.augment, device=device,
        )  # fmt: skip
        size = self.order.batch_size
        self.rows = torch.zeros((len(group), size), dtype=torch.int64, device=device)
        self.jitter = torch.zeros((len(group), size, 3), dtype=torch.uint8, device=device) if fit.augment else None
        self.replay: Callable[[], None] | None = None
        self.queue = torch.cuda.Stream() if on_gpu else None
        if on_gpu:
            self.queue.wait_stream(torch.cuda.current_stream())

    def begin(self) -> None:
        """Draw the order of the next epoch."""
        with self._queued():
            self.index, self.shifts = self.order.whole()

    def advance(self, step: int, rate: float) -> None:
        """Train on the next batch at the learning rate ``rate``: by the recorded step if the batch is full."""
        size = self.order.batch_size
        part = slice(step * size, (step + 1) * size)
        with self._queued():
            self.rate.fill_(rate)
            rows, jitter = self.index[:, part], None if self.shifts is None else self.shifts[:, part]
            if rows.shape[1] < size:
                self.step(rows, jitter)
                return
            self.rows.copy_(rows)
            if jitter is not None:
                self.jitter.copy_(jitter)
            if self.replay is None:
                self.replay = self._recorded()
            self.replay()

    def step(self, rows: Tensor, jitter: Tensor | None) -> None:
        """One update of the group's weights."""
        batch = self.bank.read(self.group, rows, jitter)
        batch.logits = self.bank.forward(self.leaves, self.buffers, batch.x)
        self.optimiser.zero_grad()
        (self.stream.weight * self.stream.loss(batch).mean(-1)).sum().backward()
        self.optimiser.step()

    def finish(self) -> None:
        """Wait for the lane and write its models to the bank."""
        if self.queue is not None:
            self.queue.synchronize()
        self.fit.write_back(self.group, self.leaves, self.buffers)

    def _recorded(self) -> Callable[[], None]:
        """A function that replays the step on ``rows`` and ``jitter``; recording leaves the weights unchanged."""
        if self.queue is None:
            return lambda: self.step(self.rows, self.jitter)
        state = [*self.leaves.values(), *self.buffers.values(), *self.optimiser.state()]
        before = [value.detach().clone() for value in state]
        for _ in range(WARM_UP):
            self.step(self.rows, self.jitter)
        self.optimiser.zero_grad()  # so that the recording allocates its own gradients
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.queue):
            self.step(self.rows, self.jitter)
        with torch.no_grad():
            for value, start in zip(state, before, strict=True):
                value.copy_(start)
        return graph.replay

    def _queued(self):
        return nullcontext() if self.queue is None else torch.cuda.stream(self.queue)
