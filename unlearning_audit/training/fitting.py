"""The training loop of a stack: epochs of passes over streams of batches."""

from collections.abc import Callable, Collection, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unlearning_audit.training.checkpoints import Checkpoints
from unlearning_audit.training.engine import Serial, State
from unlearning_audit.training.heartbeat import Heartbeat
from unlearning_audit.training.models import Models
from unlearning_audit.training.optim import Optimiser
from unlearning_audit.training.recording import Inputs, Recorder, taken
from unlearning_audit.training.streams import Batch, Order, Stream, fit_labels

#: (parameters, epoch) → one value per model, added to the loss. The epoch, counted from 0, is an int, or a tensor []
#: in a step that is recorded once for all epochs.
Penalty = Callable[[State, int | Tensor], Tensor]


@dataclass
class Fit:
    """One call of `ModelStack.fit`. Most fields are its arguments, with every pass as a tuple of streams.

    Models that are trained together are a group: their numbers in the stack, whose tensors are name → [n, …]. A group
    of one model may hold it twice (`Stacked.groups`). ``pieces``: in how many parts a batch is processed, one at a
    time; there are several only if a card's memory does not hold the batch. ``heartbeat`` prints the progress.
    ``recorded``: name → [models, …], the updates that `ModelStack.fit` returns.
    """

    stack: Models
    passes: tuple[tuple[Stream, ...], ...]
    optimiser: Optimiser | tuple[Optimiser, ...]
    epochs: int
    purpose: str
    only: Collection[str] | None = None
    mask: State | None = None
    scale: State | None = None
    penalty: Penalty | None = None
    record: np.ndarray | None = None
    steps: int | None = None
    checkpoints: Checkpoints | None = None
    pieces: int = field(default=1, init=False)
    heartbeat: Heartbeat = field(init=False)
    recorded: State = field(default_factory=dict, init=False)

    @property
    def optimisers(self) -> tuple[Optimiser, ...]:
        """The settings of each pass's optimiser."""
        return self.optimiser if isinstance(self.optimiser, tuple) else (self.optimiser,) * len(self.passes)

    @property
    def losses(self) -> list[Any]:
        """The losses of all streams of all passes; None for a stream without a loss."""
        return [stream.loss for streams in self.passes for stream in streams]

    def run(self) -> State | None:
        """Train all models group by group on a processor, and return the recorded updates, name → [models, …], or None
        if none are requested.

        On a GPU, `lanes.run` takes its place.
        """
        self.begin()
        engine = self.stack.engine
        for group in engine.groups(len(self.stack)):
            leaves, buffers = self.copy_state(group)
            # A single model reads its tensors through views that are made once for all steps.
            with engine.lasting(leaves, buffers) if isinstance(engine, Serial) else nullcontext():
                for _ in self.course(group, leaves, buffers):
                    pass
            self.write_back(group, leaves, buffers)
        return self.recorded or None

    def begin(self) -> None:
        """Start the clock, and allocate the recorded updates if they are requested."""
        self.heartbeat = Heartbeat(self.purpose, len(self.stack), self.epochs)
        if self.record is not None:
            self.recorded = {k: torch.zeros_like(v) for k, v in self.stack.parameters.items()}

    def recordable(self) -> bool:
        """Return whether steps may be recorded and replayed: all losses and the penalty are the library's, which
        compute the same in every step of a pass.

        A user's loss may run Python code in every step, which a recorded step would run only once.
        """
        modules = (getattr(loss, "__module__", "") or "" for loss in (*self.losses, self.penalty) if loss is not None)
        return all(module.startswith("unlearning_audit.") for module in modules)

    def copy_state(self, group: list[int]) -> tuple[State, State]:
        """Return copies of the parameters of a ``group`` of models, with gradients for the trained ones, and of their
        buffers: name → [n, …] each."""
        trained = set(self.stack.parameters if self.only is None else self.only)
        leaves = {k: v[group].clone().requires_grad_(k in trained) for k, v in self.stack.parameters.items()}
        return leaves, {k: v[group].clone() for k, v in self.stack.buffers.items()}

    def write_back(self, group: list[int], leaves: State, buffers: State) -> None:
        """Write the trained parameters ``leaves`` and ``buffers`` of a ``group`` of models back to the stack."""
        for state, trained in ((self.stack.parameters, leaves), (self.stack.buffers, buffers)):
            for k, v in trained.items():
                state[k][group] = v.detach()

    def course(
        self, group: list[int], leaves: State, buffers: State, recorder: Recorder | None = None
    ) -> Iterator[None]:
        """Train the models of one group through all epochs, and yield after each step. ``leaves`` (the parameters, with
        gradients) and ``buffers``, name → [n, …], change in place.

        With a ``recorder``, steps are recorded and replayed. Training continues from a checkpoint of the group, if
        there is one, and ends early after ``steps`` steps. Raises ValueError for a stream without rows, and for a batch
        of one sample that batch normalisation cannot process.
        """
        steppers = self._steppers(leaves, recorder is not None)
        first_epoch = self._resume(group, leaves, buffers, steppers[0])
        state = GroupState(self, group, leaves, buffers, steppers, recorder is not None)
        orders = self.orders(group, first_epoch)
        readers = [[iter(order) for order in orders_of_pass] for orders_of_pass in orders]
        count = 0  # of steps
        for epoch in range(first_epoch, self.epochs + 1):
            done = epoch == self.epochs  # a last turn of the loop, for the checkpoint after the last epoch
            if epoch > first_epoch and self.checkpoints is not None and self.checkpoints.due(group, done):
                self.checkpoints.write(group, epoch, self.remembered(state))
            if done:
                break
            state.turn(epoch)
            for p, streams in enumerate(self.passes):
                if streams[0].epochs is not None and epoch >= streams[0].epochs:
                    continue  # a pass of the first epochs only
                steps = orders[p][0].steps
                for step in range(max(steps, 1)):  # without rows, the reader raises an error
                    if count == self.steps:
                        state.write_record()
                        return
                    inputs = [next(reader) for reader in readers[p]]
                    steppers[p].set_rate(self.optimisers[p].rate(epoch, self.epochs, step, steps))
                    try:
                        self.advance(p, state, inputs, recorder)
                    except ValueError as error:
                        refuse_lone(error, orders[p], inputs)
                        raise
                    count += 1
                    self.heartbeat.beat(group, epoch, step, steps)
                    yield
        state.write_record()

    def advance(self, number: int, state: "GroupState", inputs: Inputs, recorder: Recorder | None) -> None:
        """Take one step of the pass ``number`` with a group in its ``state``, on ``inputs``, one batch of each of the
        pass's streams, through the ``recorder`` if there is one."""
        taken(recorder, number, partial(self._step, number, state), inputs)

    def remembered(self, state: "GroupState") -> dict[str, State | list[Tensor]]:
        """Return what a checkpoint of a group in this ``state`` must hold: kind ("weights", "buffers", "optimiser") →
        tensors."""
        return {"weights": state.leaves, "buffers": state.buffers, "optimiser": state.steppers[0].state()}

    def prepare(self, group: list[int], states: dict[str, State]) -> None:
        """Make what the training of a ``group`` needs beside weights and the optimiser. It is made as at the start
        or, if ``states`` is not empty, from the tensors of a checkpoint, kind → name → tensor. An ordinary fit needs
        nothing."""

    def _steppers(self, leaves: State, recorded: bool) -> list[Any]:
        """Return the optimiser object of each pass for the weights ``leaves``. If the fit has a single optimiser, all
        passes share one object.

        ``recorded``: whether steps are recorded, so that the learning rate must be a tensor.
        """
        trained, shared = [v for v in leaves.values() if v.requires_grad], isinstance(self.optimiser, Optimiser)
        # One object for all passes, or one for each.
        steppers = [
            settings.build(trained, settings.recorded_rate(self.stack.device) if recorded else None)
            for settings in (self.optimisers[:1] if shared else self.optimisers)
        ]
        return steppers * len(self.passes) if shared else steppers

    @torch.no_grad()
    def _resume(self, group: list[int], leaves: State, buffers: State, stepper: Any) -> int:
        """Restore the models of a ``group``, their parameters ``leaves`` and ``buffers``, and their optimiser
        ``stepper`` from their checkpoint, and return the epoch at which training continues.

        Return 0 if there is no checkpoint, or if it is of other models or of another optimiser; then none of it is
        used.
        """
        self.prepare(group, {})
        checkpoint = self.checkpoints.read(group) if self.checkpoints is not None else None
        if checkpoint is None:
            return 0
        epoch, states = checkpoint
        try:
            places = ((leaves, states.get("weights", {})), (buffers, states.get("buffers", {})))
            values = [(place, stored[name]) for tensors, stored in places for name, place in tensors.items()]
            if any(place.shape != value.shape for place, value in values):
                return 0
            self.prepare(group, states)
            remembered = states.get("optimiser", {})
            stepper.load([remembered[str(i)].to(self.stack.device) for i in range(len(remembered))])
        except (KeyError, ValueError, RuntimeError):  # the checkpoint is of other models, or of another optimiser
            self.prepare(group, {})
            return 0
        for place, value in values:
            place.copy_(value)
        print(f"{self.purpose}: models {[model + 1 for model in group]} go on after {epoch} epochs", flush=True)
        return epoch

    def orders(self, group: list[int], first_epoch: int = 0) -> list[list[Order]]:
        """Return the order of the rows, from the 0-based ``first_epoch`` on, of every stream of every pass, for the
        models of a ``group``: [pass][stream].

        An order is keyed by each model's seed, the fit's purpose, and the numbers of pass and stream.
        """
        seeds = [self.stack.seeds[model] for model in group]
        return [
            [
                Order(
                    stream.rows[group], seeds, f"{self.purpose}/{p}.{s}",
                    stream.batch_size or optimiser.batch_size, jitter=optimiser.augment == "crop_flip",
                    device=self.stack.device, passes=first_epoch,
                )
                for s, stream in enumerate(streams)
            ]
            for p, (streams, optimiser) in enumerate(zip(self.passes, self.optimisers, strict=True))
        ]  # fmt: skip

    def _step(self, number: int, state: "GroupState", inputs: Inputs) -> None:
        """Compute the losses of the pass ``number`` on ``inputs``, one batch of each of its streams, and update once
        the weights of the group whose ``state`` is given.

        The gradients of the batch's pieces are added up first. Then gradients are scaled, weights outside the mask are
        restored, and the update is recorded, as far as the fit asks for it.
        """
        leaves, stepper, streams = state.leaves, state.steppers[number], self.passes[number]
        stepper.zero_grad()
        # A piece has one sample at least.
        pieces = min([self.pieces, *(rows.shape[1] for stream, (rows, _) in zip(streams, inputs, strict=True)
                                     if stream.follows is None)])  # fmt: skip
        for piece in range(pieces):
            losses = self._losses(number, state, inputs, piece, pieces)
            if self.penalty is not None and piece == 0:  # the penalty counts once, whatever the number of pieces
                losses.append(self.penalty(leaves, state.epoch))
            total = reduce(torch.add, losses)
            # With a gradient given in place of a sum, torch imports its compiler's symbols: three seconds a process.
            (total if total.numel() == 1 else total.sum()).backward()
        if isinstance(self.stack.engine, Serial):
            self.stack.engine.hand_on()
        before = {k: leaves[k].detach().clone() for k in state.sums}
        with torch.no_grad():
            for k, factor in state.scale.items():
                gradient = leaves[k].grad
                if gradient is not None:
                    gradient *= factor
            stepper.step()
            for k, (mask, start) in state.masked.items():
                torch.where(mask, leaves[k], start, out=leaves[k])
            if state.marks is not None:  # were any of the samples of the first stream's batch marked?
                state.add(before, state.marks.gather(1, inputs[0][0]).any(1))

    def _losses(self, number: int, state: "GroupState", inputs: Inputs, piece: int, pieces: int) -> list[Tensor]:
        """Return the loss of each stream of a pass, [n] each, on one of the ``pieces`` of its batch. The sum over
        pieces is the loss of the whole batches.

        ``number``: the pass; ``inputs``: one batch of each of its streams; ``piece``: the number of the piece. A stream
        that ``follows`` the first reads the rows that belong to the rows of the first.
        """
        losses: list[Tensor] = []
        first_batch: Batch | None = None
        for stream, (rows, jitter) in zip(self.passes[number], inputs, strict=True):
            whole = rows.shape[1]
            if stream.follows is not None and first_batch is not None:
                rows = stream.follows[first_batch.rows]
            elif pieces > 1:
                rows = rows.tensor_split(pieces, 1)[piece]
                jitter = None if jitter is None else jitter.tensor_split(pieces, 1)[piece]
            batch = self.stack.read(state.group, rows, jitter)
            batch.epoch, batch.first, batch.reading = state.epoch, first_batch, stream.reading
            batch.loss_state = state.loss_state
            batch.logits = self.stack.forward(state.leaves, state.buffers, batch.x, stream.reading)
            if stream.loss is not None:
                loss = _reduced(stream.loss, batch, whole if pieces > 1 else None)
                losses.append(loss if stream.weight == 1 else stream.weight * loss)
            first_batch = first_batch or batch
        return losses

    def divisible(self) -> bool:
        """Return whether a batch may be processed in pieces: no sample affects another sample's loss, neither by batch
        normalisation nor by a loss with the attribute ``whole``. A user's loss is never divided."""
        norms = (m for m in self.stack.model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm))
        mixed = any(norm.training for norm in norms) or any(getattr(loss, "whole", False) for loss in self.losses)
        return self.recordable() and not mixed

    def divide(self) -> bool:
        """Process batches in twice as many pieces from now on. Return False if they cannot be divided further."""
        sizes = [stream.batch_size or 0 for streams in self.passes for stream in streams]
        largest = max(*sizes, *(optimiser.batch_size for optimiser in self.optimisers))
        if self.pieces >= largest or not self.divisible():
            return False
        self.pieces *= 2
        return True


def refuse_lone(error: ValueError, orders: list[Order], inputs: Inputs) -> None:
    """Raise ValueError that names the rows which make a batch of one sample, if torch's ``error`` is that batch
    normalisation has one value per channel. Return if it is another error.

    ``orders`` and ``inputs``: the orders and the batches of the streams of the step that failed.
    """
    for order, (rows, _) in zip(orders, inputs, strict=True):
        if rows.shape[1] == 1 and "more than 1 value per channel" in str(error):
            raise ValueError(
                f"batch_size: {len(order.rows)} rows in batches of {order.batch_size} make a batch of one sample, by "
                "which this model cannot normalise; choose another batch_size, or norm: group where the model has it"
            ) from error


def _reduced(loss: Callable[[Batch], Tensor], batch: Batch, whole: int | None) -> Tensor:
    """Return the mean ``loss`` of every model over a batch, [n].

    For one piece of a batch of ``whole`` samples (None: the batch is complete), return what the piece adds to that
    mean. For a single model with the ordinary loss, torch's own mean is used: its gradient has the same bits, and it
    saves a twentieth of a small network's step.
    """
    if whole is not None:
        return loss(batch).sum(-1) / whole
    if loss is fit_labels and len(batch.models) == 1:
        return nn.functional.cross_entropy(batch.logits.flatten(0, -2), batch.labels.flatten()).unsqueeze(0)
    return loss(batch).mean(-1)


class GroupState:
    """The state of one group of models in training.

    ``leaves`` (the parameters, with gradients) and ``buffers``: name → [n, …]; ``steppers``: the optimiser of each
    pass; ``masked``: name → (which weights are trained, all weights at the start); ``scale``: the group's part of the
    fit's ``scale``; ``marks`` bool [n, samples]: the recorded samples; ``sums``: the summed updates of steps whose
    batch had a recorded sample; ``loss_state``: what losses keep between steps; ``epoch``: an int, or a tensor [] if
    steps are recorded.
    """

    def __init__(
        self, fit: Fit, group: list[int], leaves: State, buffers: State, steppers: list[Any], recorded: bool
    ) -> None:
        self.fit, self.group, self.leaves, self.buffers, self.steppers = fit, group, leaves, buffers, steppers
        self.loss_state: dict[str, Any] = {}
        self.epoch: int | Tensor = 0
        if recorded:
            self.epoch = torch.zeros((), dtype=torch.float64, device=fit.stack.device)
        self.masked = {
            k: (fit.mask[k][group], v.detach().clone()) for k, v in leaves.items() if fit.mask and v.requires_grad
        }
        self.scale = {k: v[group] for k, v in (fit.scale or {}).items()}
        self.marks: Tensor | None = None
        self.sums: State = {}
        if fit.record is not None:
            self.marks = torch.from_numpy(fit.record[group]).to(fit.stack.device)
            self.sums = {k: torch.zeros_like(v) for k, v in leaves.items() if v.requires_grad}

    def turn(self, epoch: int) -> None:
        """Start an epoch: set ``epoch``, and call ``begin`` of losses that have it, so that they draw what they need
        for all of the epoch outside the recorded steps."""
        if isinstance(self.epoch, Tensor):
            self.epoch.fill_(epoch)
        else:
            self.epoch = epoch
        for loss in self.fit.losses:
            begin = getattr(loss, "begin", None)
            if begin is not None:
                begin(epoch, self.group, self.loss_state, self.fit.stack.device)

    def add(self, before: State, touched: Tensor) -> None:
        """Add this step's update to the sums of the models in ``touched`` bool [n]. ``before``: name → the weights
        before the step."""
        if touched.device.type == "cpu" and not touched.any():  # on a card the question would wait for it
            return
        for k, v in before.items():
            mask = touched.reshape(-1, *[1] * (v.ndim - 1))
            self.sums[k] += torch.where(mask, self.leaves[k] - v, torch.zeros_like(v))

    def write_record(self) -> None:
        """Write the summed updates of this group to the fit's ``recorded``."""
        for k, v in self.sums.items():
            self.fit.recorded[k][self.group] = v
