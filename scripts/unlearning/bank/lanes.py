"""Plain training on a GPU: several models in flight, and a step of each is one replay of a recorded CUDA graph.

Launching the kernels of a small network's step takes longer than running them, and a single network leaves gaps
between kernels. So each group of models has a lane: a CUDA stream with its own recorded step; lanes are served in
turn. A model does not depend on the other lanes.
"""

import os
from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor

from unlearning.bank.fitting import Fit
from unlearning.bank.streams import Order, fit_labels
from unlearning.bank.updates import RecordedSGD

#: Warm-up steps before a recording, in which libraries choose kernels and allocate workspaces.
WARM_UP = 3


def suits(fit: Fit) -> bool:
    """Whether a fit is training on a GPU and nothing else: one stream, its labels' cross-entropy, SGD."""
    if torch.device(fit.bank.device).type != "cuda" or len(fit.passes) != 1 or len(fit.passes[0]) != 1:
        return False
    stream, special = fit.passes[0][0], (fit.mask, fit.scale, fit.penalty, fit.record, fit.steps)
    plain = stream.loss is fit_labels and stream.epochs is None and all(one is None for one in special)
    return plain and not isinstance(fit.optimiser, tuple) and fit.optimiser.optimiser == "sgd"


def in_flight() -> int:
    """Groups that train at once; UNLEARNING_IN_FLIGHT overrides."""
    return max(int(os.environ.get("UNLEARNING_IN_FLIGHT", "4")), 1)


def run(fit: Fit) -> None:
    """Train all groups of models, a few at a time, and give the results to the bank."""
    optimiser, at_once, groups = fit.optimiser, in_flight(), fit.bank.engine.groups(len(fit.bank))
    for start in range(0, len(groups), at_once):
        lanes = [Lane(fit, group) for group in groups[start : start + at_once]]
        for epoch in range(fit.epochs):
            for lane in lanes:
                lane.begin()
            steps = lanes[0].order.steps
            for step in range(steps):
                rate = optimiser.rate(epoch, fit.epochs, step, steps)
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
        self.leaves, self.buffers = fit.taken(group)
        on_gpu = torch.device(device).type == "cuda"
        # The GPU's kernel takes a float32 rate only.
        self.rate = torch.zeros((), device=device, dtype=torch.float32 if on_gpu else torch.float64)
        self.optimiser = RecordedSGD(
            [v for v in self.leaves.values() if v.requires_grad], self.rate,
            momentum=optimiser.momentum, weight_decay=optimiser.weight_decay,
        )  # fmt: skip
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
        self.fit.put(self.group, self.leaves, self.buffers)

    def _recorded(self) -> Callable[[], None]:
        """A function that replays the step on ``rows`` and ``jitter``; recording leaves the weights unchanged."""
        if self.queue is None:
            return lambda: self.step(self.rows, self.jitter)
        held = [*self.leaves.values(), *self.buffers.values(), *self.optimiser.velocity]
        before = [value.detach().clone() for value in held]
        for _ in range(WARM_UP):
            self.step(self.rows, self.jitter)
        self.optimiser.zero_grad()  # so that the recording allocates its own gradients
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.queue):
            self.step(self.rows, self.jitter)
        with torch.no_grad():
            for value, kept in zip(held, before, strict=True):
                value.copy_(kept)
        return graph.replay

    def _queued(self):
        return nullcontext() if self.queue is None else torch.cuda.stream(self.queue)
