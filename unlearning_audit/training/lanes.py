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

from unlearning_audit.training.chunks import memory_is_exhausted
from unlearning_audit.training.engine import State
from unlearning_audit.training.fitting import Fit, GroupState
from unlearning_audit.training.fusion import fused
from unlearning_audit.training.recording import Recorder

#: The share of the card's free memory that lanes may take; the rest is for occasional allocations.
SHARE = 0.9

#: Steps after which a lane has allocated its memory even if no step was recorded, as in short fits.
SETTLED_AFTER = 8


def run(fit: Fit) -> State | None:
    """Train all groups of models on a GPU, several at a time, and write the results to the stack. Return the sums of
    updates that the fit asks for (`Fit.update_sums`), name → [models, …], or None if it asks for none.

    A lane trains one group. If memory is exhausted, half of the lanes go on, and the groups of the stopped lanes start
    again later. If a single lane exhausts the memory, its group or its batches are divided (`Scheduler.halve_lanes`).
    Raises the step's error, such as torch.OutOfMemoryError, if one model does not fit.
    """
    fit.begin()
    with fused(fit):
        scheduler = Scheduler(fit)
        while scheduler.waiting or scheduler.lanes:
            scheduler.admit()
            for lane in [*scheduler.lanes]:
                memory_error = lane.try_step()
                if memory_error is not None:
                    scheduler.halve_lanes(lane, memory_error)
                    break  # the loop's list holds lanes that are stopped now
                if lane.ended:
                    lane.write_back()
                    scheduler.drop(lane)
            scheduler.measure()
    return fit.update_sums or None


class Scheduler:
    """The groups of models of a fit that are ``waiting``, and the ``lanes`` of those that are training.

    Parameters
    ----------
    room
        How many lanes there may be, 1 until `measure` knows better.
    most
        The upper limit of ``room``: 4, unless UNLEARNING_IN_FLIGHT is set.
    idle_streams
        CUDA streams that no lane uses, or as many times None without a GPU.
    free
        The free bytes of the card before the first lane, or None if `measure` has nothing left to do.
    """

    def __init__(self, fit: Fit) -> None:
        """Put all groups on the waiting list. If several lanes are possible, note how much memory is free."""
        self.fit, self.on_gpu = fit, torch.device(fit.stack.device).type == "cuda"
        self.waiting = fit.stack.engine.groups(len(fit.stack))
        self.lanes: list[Lane] = []
        # With a user's loss there is one lane, because the loss may remember the models that it saw last.
        in_flight = max(int(os.environ.get("UNLEARNING_IN_FLIGHT", "4")), 1)
        self.most = min(in_flight, len(self.waiting)) if fit.replayable() else 1
        self.room = 1
        self.idle_streams = [torch.cuda.Stream() if self.on_gpu else None for _ in range(self.most)]
        self.free: int | None = None
        if self.on_gpu and self.most > 1:
            torch.cuda.empty_cache()
            self.free, _ = torch.cuda.mem_get_info()  # free bytes, and all bytes of the card

    def admit(self) -> None:
        """Start lanes for waiting groups while there is room. Each takes one of the ``idle_streams``."""
        while self.waiting and len(self.lanes) < self.room:
            self.lanes.append(Lane(self.fit, self.waiting.pop(0), self.idle_streams.pop()))

    def measure(self) -> None:
        """Set ``room`` to the number of lanes that fit into memory, at most ``most``, as soon as the first lane has
        allocated what its steps need (`Lane.settled`). ``room`` is set once: earlier and later calls do nothing.

        Every lane is assumed to need as much as the first one: the memory that is not free any more, even if the
        allocator only keeps it for later, because the lane needed it at its peak.
        """
        if self.free is None or not (self.lanes and self.lanes[0].settled):
            return
        left, _ = torch.cuda.mem_get_info()  # free bytes, and all bytes of the card
        of_lane = max(self.free - left, 1)  # bytes of one lane
        more_lanes = int(SHARE * left / of_lane)
        self.room, self.free = min(self.most, 1 + more_lanes), None
        if self.room < self.most:
            logging.warning(
                "%d groups of models train at once, for one takes %d MiB of the card and %d MiB are left",
                self.room, of_lane >> 20, left >> 20,
            )  # fmt: skip

    def halve_lanes(self, lane: "Lane", memory_error: BaseException) -> None:
        """Stop half of the lanes, rounded up, first of all the ``lane`` that ran out of memory with the
        ``memory_error``; ``room`` becomes the number of the others, at least 1. The stopped groups wait again, before
        all others, and will start from the beginning; the stack has no results of theirs.

        If there was a single lane, divide its group into two groups. If the group is a single model, let the fit divide
        its batches (`Fit.divide`), or raise ``memory_error`` if they cannot be divided.
        """
        self.free = None  # how many lanes fit is known now
        count, stopped = len(self.lanes), [lane]
        self.drop(lane)
        while len(self.lanes) > count // 2:
            stopped.append(self.lanes[-1])
            self.drop(self.lanes[-1])
        groups = sorted(lane.group for lane in stopped)
        self.room = max(1, count // 2)
        if count == 1:
            groups = split_group(groups[0])
            if len(groups) == 1 and not self.fit.divide():
                raise memory_error
        logging.warning(
            "the card's memory is used up: groups of %d models, %d at once, batches in %d pieces",
            len(groups[0]), self.room, self.fit.pieces,
        )  # fmt: skip
        self.waiting = groups + self.waiting
        torch.cuda.empty_cache()

    def drop(self, lane: "Lane") -> None:
        """Remove a ``lane``, release its memory, and keep its CUDA stream for another lane."""
        self.lanes.remove(lane)
        lane.close()
        self.idle_streams.append(lane.cuda_stream)


def split_group(group: list[int]) -> list[list[int]]:
    """Return the two halves of a ``group``, or the group alone if it consists of one model.

    Stacked models are never computed alone: a group of one model names it twice (`Stacked.groups`). A half that has
    one model names it twice, too.
    """
    if len(set(group)) < 2:
        return [group]
    middle = len(group) // 2
    return [half if len(half) > 1 else [*half, *half] for half in (group[:middle], group[middle:])]


def _without_tracebacks(error: BaseException) -> BaseException:
    """Remove the tracebacks of an ``error`` and of its causes, and return the error. The frames in a traceback would
    keep the memory of the failed step."""
    cause: BaseException | None = error
    while cause is not None:
        cause.with_traceback(None)
        cause = cause.__cause__ or cause.__context__
    return error


class Lane:
    """One ``group`` of models of a ``fit`` in training.

    Parameters
    ----------
    cuda_stream
        The lane's own CUDA stream; None without a GPU.
    ended
        Whether training has ended.
    steps
        How many steps were taken, and 1 more once the lane has ended.
    state
        The state of the group, None before its first step.
    training_steps
        The generator that takes the steps, made by `start`.
    """

    def __init__(self, fit: Fit, group: list[int], cuda_stream: "torch.cuda.Stream | None" = None) -> None:
        """Let the lane's CUDA stream wait for all that was computed before, such as the weights."""
        self.fit, self.group, self.cuda_stream, self.ended, self.steps = fit, group, cuda_stream, False, 0
        self.state: GroupState | None = None
        self.training_steps: Iterator[None] = iter(())
        if cuda_stream is not None:
            cuda_stream.wait_stream(torch.cuda.current_stream())

    @property
    def settled(self) -> bool:
        """Whether the lane has allocated the memory that its steps need: a step was recorded, or several were taken."""
        recorder = self.state.recorder if self.state else None
        return self.steps >= SETTLED_AFTER or (recorder is not None and recorder.has_recording)

    def try_step(self) -> BaseException | None:
        """Take one step; before the first step, copy the group's models from the stack (`start`). Return the error if
        memory was exhausted, else None. All other errors are raised."""
        try:
            with torch.cuda.stream(self.cuda_stream):
                if self.steps == 0:
                    self.start()
                self.take_step()
        except Exception as error:
            if not memory_is_exhausted(error):
                raise
            return _without_tracebacks(error)
        return None

    def start(self) -> None:
        """Copy the group's models from the stack, and make the generator of steps. Steps will be replayed from CUDA
        graphs on a GPU, if the fit allows it (`Fit.replayable`)."""
        recorder = Recorder(self.cuda_stream) if self.cuda_stream is not None and self.fit.replayable() else None
        self.state = GroupState(self.fit, self.group, recorder)
        self.training_steps = self.fit.training_steps(self.state)

    def take_step(self) -> None:
        """Take one step, or set ``ended`` if there is none left."""
        self.ended = next(self.training_steps, "no step is left") is not None  # the generator yields None
        self.steps += 1

    def write_back(self) -> None:
        """Wait until the GPU has run all of the lane's steps, and write its models to the stack."""
        if self.cuda_stream is not None:
            self.cuda_stream.synchronize()
        if self.state is not None:
            self.state.write_back()

    def close(self) -> None:
        """Wait until the GPU has run all of the lane's steps, and release the lane's memory."""
        if self.cuda_stream is not None:
            self.cuda_stream.synchronize()
        if self.state is not None and self.state.recorder is not None:
            self.state.recorder.forget()
        self.training_steps, self.state = iter(()), None
