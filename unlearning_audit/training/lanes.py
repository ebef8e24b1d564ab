"""A fit on a GPU: several groups of models in flight, and a step of each is one replay of a recorded CUDA graph.

Launching the kernels of a small network's step takes longer than running them, and a single network leaves gaps
between kernels. So each group of models has a lane: a CUDA stream with its own recorded steps; lanes are served in
turn. A model does not depend on the other lanes. How many there are is measured: the first lane goes ahead until a step
is recorded, and as many more follow as the rest of the card's memory holds.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from unlearning_audit.training.chunks import used_up
from unlearning_audit.training.engine import State
from unlearning_audit.training.fitting import Fit
from unlearning_audit.training.fusion import fused
from unlearning_audit.training.recording import Recorder

#: The share of the card's free memory that lanes may take; the rest is for what a step asks for now and then.
SHARE = 0.9

#: Steps after which a lane has taken its memory though nothing was recorded, as in fits of a few steps.
SETTLED_AFTER = 8


def in_flight() -> int:
    """Groups that train at once where memory allows it; UNLEARNING_IN_FLIGHT overrides."""
    return max(int(os.environ.get("UNLEARNING_IN_FLIGHT", "4")), 1)


def run(fit: Fit) -> State | None:
    """Train all groups of models, a few at a time, and give the results to the bank; return the recorded updates, if
    any were asked for.

    Where memory is used up, half as many go on, and the others begin again later; a single group that is too large is
    divided, then its batches are (`Fit.divide`). Raises torch.OutOfMemoryError if one model does not fit.
    """
    fit.begin()
    with fused(fit):
        traffic = Traffic(fit)
        while traffic.waiting or traffic.lanes:
            traffic.admit()
            for lane in [*traffic.lanes]:
                trouble = lane.advanced()
                if trouble is not None:
                    traffic.halve(lane, trouble)
                    break
                if lane.exhausted:
                    traffic.leave(lane)
            traffic.measure()
    return fit.recorded or None


class Traffic:
    """Which groups of models are in flight. ``room``: how many may be, one until it is measured."""

    def __init__(self, fit: Fit) -> None:
        self.fit, self.on_gpu = fit, torch.device(fit.bank.device).type == "cuda"
        self.waiting = fit.bank.engine.groups(len(fit.bank))
        self.lanes: list[Lane] = []
        # A user's loss may remember the models that it saw last, so its groups come one after the other.
        self.most = min(in_flight(), len(self.waiting)) if fit.recordable() else 1
        self.room = 1
        self.queues: list[torch.cuda.Stream] = []
        self.free: int | None = None
        if self.on_gpu and self.most > 1:
            torch.cuda.empty_cache()
            self.free = torch.cuda.mem_get_info()[0]

    def admit(self) -> None:
        """Let groups in while there is room."""
        while self.waiting and len(self.lanes) < self.room:
            queue = self.queues.pop() if self.queues else torch.cuda.Stream() if self.on_gpu else None
            self.lanes.append(Lane(self.fit, self.waiting.pop(0), queue))

    def measure(self) -> None:
        """Once the first lane has recorded a step: as many lanes as fit into the memory that it left. What the
        allocator keeps for it counts as its own, for that is its peak."""
        if self.free is None or not (self.lanes and self.lanes[0].settled):
            return
        left = torch.cuda.mem_get_info()[0]
        lane = max(self.free - left, 1)
        self.room, self.free = max(1, min(self.most, 1 + int(SHARE * left / lane))), None
        if self.room < self.most:
            logging.warning(
                "%d groups of models train at once, for one takes %d MiB of the card and %d MiB are left",
                self.room, lane >> 20, left >> 20,
            )  # fmt: skip

    def leave(self, lane: "Lane") -> None:
        """Give a lane's models to the bank."""
        lane.finish()
        self._drop(lane)

    def halve(self, lane: "Lane", trouble: BaseException) -> None:
        """Go on with half of the lanes, without the one that found no memory; the bank has seen nothing of those that
        stop. Raises ``trouble`` if there is nothing left to divide."""
        self.free = None
        count, stopped = len(self.lanes), [lane]
        self._drop(lane)
        while len(self.lanes) > count // 2:
            stopped.append(self.lanes[-1])
            self._drop(self.lanes[-1])
        groups = [lane.group for lane in sorted(stopped, key=lambda lane: lane.group)]
        self.room = max(1, count // 2)
        if count == 1:
            groups = halves(groups[0])
            if len(groups) == 1 and not self.fit.divide():
                raise trouble
        logging.warning(
            "the card's memory is used up: groups of %d models, %d at once, batches in %d pieces",
            len(groups[0]), self.room, self.fit.pieces,
        )  # fmt: skip
        self.waiting = groups + self.waiting
        torch.cuda.empty_cache()

    def _drop(self, lane: "Lane") -> None:
        self.lanes.remove(lane)
        lane.close()
        if lane.queue is not None:
            self.queues.append(lane.queue)


def halves(group: list[int]) -> list[list[int]]:
    """Two groups of half the size, or the group itself if it is of one model, or of one with its ghost."""
    if len(set(group)) < 2:
        return [group]
    middle = len(group) // 2
    return [part if len(part) > 1 else part * 2 for part in (group[:middle], group[middle:])]


def _lean(error: BaseException) -> BaseException:
    """The error, and those it came from, without the frames that hold what the step had taken."""
    part: BaseException | None = error
    while part is not None:
        part.with_traceback(None)
        part = part.__cause__ or part.__context__
    return error


class Lane:
    """One group of models in training, on a stream of its own; without a GPU its steps are ordinary ones."""

    def __init__(self, fit: Fit, group: list[int], queue: "torch.cuda.Stream | None" = None) -> None:
        self.fit, self.group, self.queue, self.exhausted, self.steps = fit, group, queue, False, 0
        self.recorder: Recorder | None = None
        self.state: tuple[State, State] = {}, {}
        self.course: Iterator[None] | None = None

    @property
    def settled(self) -> bool:
        """Whether the lane has taken the memory that its steps need."""
        return self.steps >= SETTLED_AFTER or (self.recorder is not None and self.recorder.recorded)

    def advanced(self) -> BaseException | None:
        """Go one step ahead. Returns the error if there was no memory for it."""
        try:
            with self._queued():
                if self.course is None:
                    self.start()
                self.advance()
        except Exception as error:
            if not used_up(error):
                raise
            return _lean(error)
        return None

    def start(self) -> None:
        """Copy the models of the group."""
        if self.queue is not None and self.fit.recordable():
            self.recorder = Recorder(self.queue)
        self.state = self.fit.copy_state(self.group)
        self.course = self.fit.course(self.group, *self.state, self.recorder)

    def advance(self) -> None:
        """One step; or note that it was the last."""
        self.exhausted = self.course is None or next(self.course, self) is self
        self.steps += 1

    def finish(self) -> None:
        """Wait for the lane and write its models to the bank."""
        if self.queue is not None:
            self.queue.synchronize()
        self.fit.write_back(self.group, *self.state)

    def close(self) -> None:
        """Drop what the lane holds."""
        if self.queue is not None:
            self.queue.synchronize()
        if self.recorder is not None:
            self.recorder.forget()
        self.course, self.state, self.recorder = None, ({}, {}), None

    @contextmanager
    def _queued(self) -> Iterator[None]:
        if self.queue is None:
            yield
            return
        if self.course is None:
            self.queue.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.queue):
            yield
