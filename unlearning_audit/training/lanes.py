"""Run a fit on a GPU with several groups of models at once, replaying one recorded CUDA graph per step.

Launching the kernels of a small network's step takes longer than running them, and a single network leaves gaps between
kernels. So each group of models has a lane: a CUDA stream with its own recorded steps. Lanes take steps in turn, and a
model does not depend on other lanes. The number of lanes is measured: the first lane runs until a step is recorded, and
then as many more start as the remaining memory holds.
"""

import logging
import os
from collections.abc import Iterator

import torch

from unlearning_audit.training.chunks import used_up
from unlearning_audit.training.engine import State
from unlearning_audit.training.fitting import Fit
from unlearning_audit.training.fusion import fused
from unlearning_audit.training.recording import Recorder

#: The share of the card's free memory that lanes may take; the rest is for occasional allocations.
SHARE = 0.9

#: Steps after which a lane has allocated its memory even if no step was recorded, as in short fits.
SETTLED_AFTER = 8


def in_flight() -> int:
    """Return how many groups may train at once if memory allows; UNLEARNING_IN_FLIGHT overrides the default."""
    return max(int(os.environ.get("UNLEARNING_IN_FLIGHT", "4")), 1)


def run(fit: Fit) -> State | None:
    """Train all groups of models on a GPU, several at a time, and write the results to the stack. Return the recorded
    updates, name → [models, …], or None if none are requested.

    If memory is exhausted, half of the groups continue and the others start again later. A single group that is too
    large is divided into smaller groups, then its batches are (`Fit.divide`). Raises torch.OutOfMemoryError if one
    model does not fit.
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
                    break  # other lanes are stopped now, too
                if lane.exhausted:
                    lane.finish()
                    traffic.drop(lane)
            traffic.measure()
    return fit.recorded or None


class Traffic:
    """The groups of models of a fit that are ``waiting``, and the ``lanes`` of those that are training.

    ``room``: how many may train at once, 1 until it is measured; ``most``: the largest number that is allowed;
    ``queues``: CUDA streams that no lane uses; ``free``: bytes of the card before the first lane, None once they are
    not needed.
    """

    def __init__(self, fit: Fit) -> None:
        self.fit, self.on_gpu = fit, torch.device(fit.stack.device).type == "cuda"
        self.waiting = fit.stack.engine.groups(len(fit.stack))
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
        """Start lanes for waiting groups while there is room."""
        while self.waiting and len(self.lanes) < self.room:
            queue = self.queues.pop() if self.queues else torch.cuda.Stream() if self.on_gpu else None
            self.lanes.append(Lane(self.fit, self.waiting.pop(0), queue))

    def measure(self) -> None:
        """Set ``room`` to the number of lanes that fit into memory, once the first lane has allocated what its steps
        need (`Lane.settled`). This is done once.

        All lanes are taken to need the memory of the first. It includes what the allocator keeps for it, because that
        is its peak.
        """
        if self.free is None or not (self.lanes and self.lanes[0].settled):
            return
        left = torch.cuda.mem_get_info()[0]
        of_lane = max(self.free - left, 1)
        self.room, self.free = max(1, min(self.most, 1 + int(SHARE * left / of_lane))), None
        if self.room < self.most:
            logging.warning(
                "%d groups of models train at once, for one takes %d MiB of the card and %d MiB are left",
                self.room, of_lane >> 20, left >> 20,
            )  # fmt: skip

    def halve(self, lane: "Lane", trouble: BaseException) -> None:
        """Continue with half of the lanes, without the ``lane`` that ran out of memory with the error ``trouble``. The
        stopped groups start again later.

        If there is a single lane, its group is divided, or its batches are. Raises ``trouble`` if nothing is left to
        divide. The stack has no results of stopped lanes.
        """
        self.free = None  # the number of lanes is known now
        count, stopped = len(self.lanes), [lane]
        self.drop(lane)
        while len(self.lanes) > count // 2:
            stopped.append(self.lanes[-1])
            self.drop(self.lanes[-1])
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

    def drop(self, lane: "Lane") -> None:
        """Close a lane and keep its CUDA stream for another."""
        self.lanes.remove(lane)
        lane.close()
        if lane.queue is not None:
            self.queues.append(lane.queue)


def halves(group: list[int]) -> list[list[int]]:
    """Return two groups of half the size, or only the group itself if it consists of one model.

    A group of one model may be padded with a copy of it, because stacked models are never computed alone
    (`Stacked.groups`); a half of one model is padded so.
    """
    if len(set(group)) < 2:
        return [group]
    middle = len(group) // 2
    return [half if len(half) > 1 else half * 2 for half in (group[:middle], group[middle:])]


def _lean(error: BaseException) -> BaseException:
    """Return the error without its traceback and those of its causes, because their frames hold the memory of the
    failed step."""
    cause: BaseException | None = error
    while cause is not None:
        cause.with_traceback(None)
        cause = cause.__cause__ or cause.__context__
    return error


class Lane:
    """One ``group`` of models of a ``fit`` in training, on its own CUDA stream ``queue`` (None without a GPU, where
    steps are not recorded).

    ``exhausted``: whether training has ended; ``steps``: how many were taken; ``state``: the group's parameters and
    buffers; ``course``: the generator that takes the steps.
    """

    def __init__(self, fit: Fit, group: list[int], queue: "torch.cuda.Stream | None" = None) -> None:
        self.fit, self.group, self.queue, self.exhausted, self.steps = fit, group, queue, False, 0
        self.recorder: Recorder | None = None
        self.state: tuple[State, State] = {}, {}
        self.course: Iterator[None] | None = None
        if queue is not None:  # what was computed before, such as the weights, must be there
            queue.wait_stream(torch.cuda.current_stream())

    @property
    def settled(self) -> bool:
        """Whether the lane has allocated the memory that its steps need."""
        return self.steps >= SETTLED_AFTER or (self.recorder is not None and self.recorder.recorded)

    def advanced(self) -> BaseException | None:
        """Take one step. Return the error if memory was exhausted, else None; raise all other errors."""
        try:
            with torch.cuda.stream(self.queue):
                if self.course is None:
                    self.start()
                self.advance()
        except Exception as error:
            if not used_up(error):
                raise
            return _lean(error)
        return None

    def start(self) -> None:
        """Copy the models of the group, and prepare to record steps if that is possible."""
        if self.queue is not None and self.fit.recordable():
            self.recorder = Recorder(self.queue)
        self.state = self.fit.copy_state(self.group)
        self.course = self.fit.course(self.group, *self.state, self.recorder)

    def advance(self) -> None:
        """Take one step, or set ``exhausted`` if training has ended: then `next` returns its default, the lane."""
        self.exhausted = self.course is None or next(self.course, self) is self
        self.steps += 1

    def finish(self) -> None:
        """Wait for the lane's stream, and write its models to the stack."""
        if self.queue is not None:
            self.queue.synchronize()
        self.fit.write_back(self.group, *self.state)

    def close(self) -> None:
        """Release the lane's memory."""
        if self.queue is not None:
            self.queue.synchronize()
        if self.recorder is not None:
            self.recorder.forget()
        self.course, self.state, self.recorder = None, ({}, {}), None
