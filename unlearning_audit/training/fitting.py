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
from unlearning_audit.training.recording import Inputs, Recorder, run_step
from unlearning_audit.training.streams import Batch, Order, Stream, fit_labels

#: (parameters, epoch) → one value per model, added to the loss. The epoch, counted from 0, is an int, or a tensor []
#: in a step that is recorded once for all epochs.
Penalty = Callable[[State, int | Tensor], Tensor]


@dataclass
class Fit:
    """One call of `ModelStack.fit`.

    Most fields are its arguments, with every pass as a tuple of streams.

    Models that are trained together are a group: their numbers in the stack, whose tensors are name → [n, …]. A group
    of one model may hold it twice (`Stacked.groups`). ``heartbeat`` prints the progress.

    Parameters
    ----------
    pieces
        In how many parts a batch is processed, one at a time; there are several only if a card's memory does not hold
        the batch.
    update_sums
        Name → [models, …], what `ModelStack.fit` returns: for each model, the sum of the updates of the steps whose
        batch had a sample marked in ``record``; empty without ``record``.
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
    update_sums: State = field(default_factory=dict, init=False)

    @property
    def optimisers(self) -> tuple[Optimiser, ...]:
        """The settings of each pass's optimiser."""
        return self.optimiser if isinstance(self.optimiser, tuple) else (self.optimiser,) * len(self.passes)

    @property
    def losses(self) -> list[Any]:
        """The losses of all streams of all passes; None for a stream without a loss."""
        return [stream.loss for streams in self.passes for stream in streams]

    def run(self) -> State | None:
        """Train all models group by group on a processor. Return ``update_sums``, the sums of updates that ``record``
        asks for, or None without ``record``.

        On a GPU, `lanes.run` is called instead.
        """
        self.begin()
        engine = self.stack.engine
        for group in engine.groups(len(self.stack)):
            state = GroupState(self, group)
            # The serial engine reads a model's tensors through views, which are made once for all steps.
            with engine.persistent_views(state.leaves, state.buffers) if isinstance(engine, Serial) else nullcontext():
                for _ in self.training_steps(state):
                    pass
            state.write_back()
        return self.update_sums or None

    def begin(self) -> None:
        """Start the progress lines, and set ``update_sums`` to 0 if samples are marked in ``record``."""
        self.heartbeat = Heartbeat(self.purpose, len(self.stack), self.epochs)
        if self.record is not None:
            self.update_sums = {name: torch.zeros_like(value) for name, value in self.stack.parameters.items()}

    def replayable(self) -> bool:
        """Return whether steps may be replayed from CUDA graphs: all losses and the penalty are functions of this
        library, which compute the same in every step of a pass.

        A user's loss may run Python code in every step. A recorded step would run that code only once.
        """
        functions = [function for function in (*self.losses, self.penalty) if function is not None]
        return all(str(getattr(each, "__module__", "")).startswith("unlearning_audit.") for each in functions)

    def training_steps(self, state: "GroupState") -> Iterator[None]:
        """Train the models of one group through all epochs, and yield after each step. Their ``state`` changes.

        Training continues from the group's checkpoint if there is one, writes one after an epoch if it is due, leaves
        out passes that are of the first epochs only, and ends early after ``steps`` steps.

        Raises
        ------
        ValueError
            For a stream without rows, and for a batch of one sample that batch normalisation cannot process.
        """
        group = state.group
        first_epoch = self._resume(state)
        orders = self.orders(group, first_epoch)
        batches = [[iter(order) for order in orders_of_pass] for orders_of_pass in orders]
        steps_taken = 0
        for epoch in range(first_epoch, self.epochs):
            state.begin_epoch(epoch)
            for number, streams in enumerate(self.passes):
                if streams[0].epochs is not None and epoch >= streams[0].epochs:
                    continue  # a pass of the first epochs only
                steps = orders[number][0].steps  # the first stream sets how many steps the pass has
                for step in range(max(steps, 1)):  # a stream without rows is read once, and raises an error
                    if steps_taken == self.steps:
                        return
                    inputs = [next(batches_of_stream) for batches_of_stream in batches[number]]
                    rate = self.optimisers[number].rate(epoch, self.epochs, step, steps)
                    state.steppers[number].set_rate(rate)
                    try:
                        self.take_step(number, state, inputs)
                    except ValueError as error:
                        refuse_batch_of_one(error, orders[number], inputs)
                        raise
                    steps_taken += 1
                    self.heartbeat.beat(group, epoch, step, steps)
                    yield
            if self.checkpoints is not None and self.checkpoints.due(group, done=epoch + 1 == self.epochs):
                self.checkpoints.write(group, epoch + 1, self.checkpoint_tensors(state))

    def take_step(self, number: int, state: "GroupState", inputs: Inputs) -> None:
        """Take one training step of a group of models.

        Parameters
        ----------
        number
            The number of the pass.
        state
            The state of the group, which changes.
        inputs
            One batch of each of the pass's streams.
        """
        run_step(state.recorder, number, partial(self._step, number, state), inputs)

    def checkpoint_tensors(self, state: "GroupState") -> State:
        """Return what a checkpoint of a group in this ``state`` must hold: its weights, its buffers and the state of
        its optimiser, by names such as "weights/0.bias", themselves and not copies."""
        kinds = {"weights": state.leaves, "buffers": state.buffers}
        tensors = {f"{kind}/{name}": value for kind, values in kinds.items() for name, value in values.items()}
        # There is one pass, because a fit with several has no checkpoints.
        return tensors | {f"optimiser/{i}": value for i, value in enumerate(state.steppers[0].state())}

    def prepare_group(self, group: list[int], tensors: State) -> None:
        """Make what the training of a ``group`` needs besides weights and the optimiser.

        An ordinary fit needs nothing; private training makes its generators of noise.

        Parameters
        ----------
        tensors
            The tensors of a checkpoint, from which training resumes; empty if it starts.
        """

    def steppers(self, leaves: State, replayed: bool) -> list[Any]:
        """Return the optimiser object of each pass for the weights ``leaves``. If the fit has a single optimiser, all
        passes share one object.

        ``replayed``: whether steps are replayed from CUDA graphs, which read the learning rate from a tensor.
        """
        trained, device = [value for value in leaves.values() if value.requires_grad], self.stack.device
        if isinstance(self.optimiser, Optimiser):
            return [self.optimiser.build(trained, device if replayed else "")] * len(self.passes)
        return [each.build(trained, device if replayed else "") for each in self.optimiser]

    @torch.no_grad()
    def _resume(self, state: "GroupState") -> int:
        """Restore the ``state`` of a group from its checkpoint, and return the epoch at which training continues.

        Return 0 and change nothing if there is no checkpoint of these models, or if its tensors have other names or
        shapes, as with another optimiser.
        """
        group = state.group
        self.prepare_group(group, {})
        checkpoint = self.checkpoints.read(group) if self.checkpoints is not None else None
        if checkpoint is None:
            return 0
        epoch, stored = checkpoint
        tensors = self.checkpoint_tensors(state)
        if {name: value.shape for name, value in tensors.items()} != {name: v.shape for name, v in stored.items()}:
            return 0
        for name, tensor in tensors.items():
            tensor.copy_(stored[name])
        self.prepare_group(group, stored)
        print(f"{self.purpose}: models {[model + 1 for model in group]} go on after {epoch} epochs", flush=True)
        return epoch

    def orders(self, group: list[int], first_epoch: int = 0) -> list[list[Order]]:
        """Return the `Order` in which each stream of each pass is read by the models of a ``group``, from the 0-based
        ``first_epoch`` on: a list for each pass, with an order for each of its streams.

        An order depends on each model's seed, the fit's purpose, and the numbers of pass and stream.
        """
        seeds = [self.stack.seeds[model] for model in group]
        orders: list[list[Order]] = []
        for number, (streams, optimiser) in enumerate(zip(self.passes, self.optimisers, strict=True)):
            orders.append([
                Order(
                    stream.rows[group], seeds, purpose=f"{self.purpose}/{number}.{stream_number}",
                    batch_size=stream.batch_size or optimiser.batch_size, jitter=optimiser.augment == "crop_flip",
                    device=self.stack.device, passes=first_epoch,
                )
                for stream_number, stream in enumerate(streams)
            ])  # fmt: skip
        return orders

    def _step(self, number: int, state: "GroupState", inputs: Inputs) -> None:
        """Update the weights of a group of models once, by the losses of one pass.

        Gradients are added up over the pieces of the batches; the fit's ``penalty`` is added once. The sums are
        multiplied by the fit's ``scale``. After the update, weights outside the ``mask`` are restored. If ``record``
        marks a sample of the first stream's batch, the update is added to the model's ``update_sums``.

        Parameters
        ----------
        number
            The number of the pass.
        state
            The state of the group of models.
        inputs
            One batch of each stream of the pass.
        """
        leaves, stepper = state.leaves, state.steppers[number]
        stepper.zero_grad()
        pairs = zip(self.passes[number], inputs, strict=True)  # a stream that follows another reads no rows of its own
        batch_sizes = [rows.shape[1] for stream, (rows, _) in pairs if stream.follows is None]
        pieces = min([self.pieces, *batch_sizes])  # a piece has one sample at least
        for piece in range(pieces):
            losses = self._losses(number, state, inputs, piece, pieces)
            if self.penalty is not None and piece == 0:  # the penalty counts once, whatever the number of pieces
                losses.append(self.penalty(leaves, state.epoch))
            total = reduce(torch.add, losses)
            # With a gradient given in place of a sum, torch imports its compiler's symbols: three seconds a process.
            (total if total.numel() == 1 else total.sum()).backward()
        if isinstance(self.stack.engine, Serial):
            self.stack.engine.add_view_gradients()
        before = {name: leaves[name].detach().clone() for name in state.update_sums}
        with torch.no_grad():
            for name, factor in state.scale.items():
                gradient = leaves[name].grad
                if gradient is not None:
                    gradient *= factor
            stepper.step()
            for name, (mask, start) in state.masked.items():
                torch.where(mask, leaves[name], start, out=leaves[name])
            if state.marks is not None:
                first_rows, _ = inputs[0]
                state.add_updates(before, has_mark=state.marks.gather(1, first_rows).any(1))

    def _losses(self, number: int, state: "GroupState", inputs: Inputs, piece: int, pieces: int) -> list[Tensor]:
        """Return the loss of each stream that has one, times the stream's weight: [n] each.

        A stream that ``follows`` the first one does not read its batch. For each row of the first stream's batch, it
        reads the row that ``follows`` gives.

        Parameters
        ----------
        number
            The number of the pass whose streams these are.
        state
            The state of the group of n models.
        inputs
            One batch of each stream.
        piece, pieces
            The number of a piece, and how many pieces there are. The losses are what this piece adds: summed over all
            pieces, they are the losses of the batches.
        """
        losses: list[Tensor] = []
        first_batch: Batch | None = None
        for stream, (rows, jitter) in zip(self.passes[number], inputs, strict=True):
            batch_size = rows.shape[1]
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
                loss = _mean_loss(stream.loss, batch, batch_size if pieces > 1 else None)
                losses.append(loss if stream.weight == 1 else stream.weight * loss)
            first_batch = first_batch or batch
        return losses

    def divisible(self) -> bool:
        """Return whether batches may be processed in pieces: no sample affects the loss of another one.

        Samples affect each other by batch normalisation in training mode, and by a loss with the attribute ``whole``.
        A user's loss may read the whole batch too, so all losses and the penalty must be the library's (`replayable`).
        """
        norms = (m for m in self.stack.model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm))
        mixed = any(norm.training for norm in norms) or any(getattr(loss, "whole", False) for loss in self.losses)
        return self.replayable() and not mixed

    def divide(self) -> bool:
        """Process batches in twice as many pieces from now on, and return True. Return False and change nothing if no
        batch has more samples than pieces, or if batches may not be divided (`divisible`)."""
        sizes = [stream.batch_size or 0 for streams in self.passes for stream in streams]
        largest = max(*sizes, *(optimiser.batch_size for optimiser in self.optimisers))
        if self.pieces >= largest or not self.divisible():
            return False
        self.pieces *= 2
        return True


def refuse_batch_of_one(error: ValueError, orders: list[Order], inputs: Inputs) -> None:
    """Raise ValueError that says which rows make a batch of one sample, if that is why a step failed with torch's
    ``error``: batch normalisation cannot use a single value per channel.

    Do nothing if it is another error.

    Parameters
    ----------
    orders
        The order of each stream of that step.
    inputs
        The batch of each stream of that step.
    """
    for order, (rows, _) in zip(orders, inputs, strict=True):
        if rows.shape[1] == 1 and "more than 1 value per channel" in str(error):
            raise ValueError(
                f"batch_size: {len(order.rows)} rows in batches of {order.batch_size} make a batch of one sample, by "
                "which this model cannot normalise; choose another batch_size, or norm: group where the model has it"
            ) from error


def _mean_loss(loss: Callable[[Batch], Tensor], batch: Batch, batch_size: int | None) -> Tensor:
    """Return the mean ``loss`` of every model over a batch, [n]. For one piece of a batch, return what it adds to the
    mean over the whole batch.

    For a single model with the ordinary loss, torch's own mean is used: its gradient has the same bits, and it saves a
    twentieth of a small network's step.

    Parameters
    ----------
    batch
        The batch, or one piece of it.
    batch_size
        The number of samples in the whole batch; None for a batch that is not divided.
    """
    if batch_size is not None:
        return loss(batch).sum(-1) / batch_size
    if loss is fit_labels and len(batch.models) == 1:
        # [1]: the mean of the only model.
        return nn.functional.cross_entropy(batch.logits.flatten(0, -2), batch.labels.flatten()).unsqueeze(0)
    return loss(batch).mean(-1)


class GroupState:
    """The state of one group of models in training.

    Parameters
    ----------
    group
        The numbers of its n models in the stack.
    recorder
        What records steps as CUDA graphs and replays them, or None.
    leaves, buffers
        Name → [n, …]: copies of the parameters, with gradients for the trained ones, and of the buffers.
    steppers
        The optimiser object of each pass.
    loss_state
        What losses keep between steps.
    epoch
        An int, or a tensor [] if steps are replayed from CUDA graphs.
    masked
        Name → (which weights are trained, all weights at the start); empty without the fit's ``mask``.
    scale
        Name → [n, …]: the factors of gradients, the group's part of the fit's ``scale``; empty if it has none.
    marks
        bool [n, samples]: the samples that the fit's ``record`` marks, or None.
    update_sums
        Name → [n, …]: the sum of the updates of the steps whose batch had a marked sample; empty without ``marks``.
    """

    def __init__(self, fit: Fit, group: list[int], recorder: Recorder | None = None) -> None:
        """Copy the models from the stack; start with the first epoch and sums of 0."""
        self.fit, self.group, self.recorder = fit, group, recorder
        only, parameters = fit.only, fit.stack.parameters.items()
        self.leaves = {name: v[group].clone().requires_grad_(only is None or name in only) for name, v in parameters}
        self.buffers = {name: value[group].clone() for name, value in fit.stack.buffers.items()}
        self.steppers = fit.steppers(self.leaves, recorder is not None)
        self.loss_state: dict[str, Any] = {}
        self.epoch: int | Tensor = 0
        if recorder is not None:
            self.epoch = torch.zeros((), dtype=torch.float64, device=fit.stack.device)
        trained = {name: leaf.detach() for name, leaf in self.leaves.items() if leaf.requires_grad}
        self.masked = {name: (fit.mask[name][group], value.clone()) for name, value in trained.items() if fit.mask}
        self.scale = {name: value[group] for name, value in (fit.scale or {}).items()}
        self.marks: Tensor | None = None
        self.update_sums: State = {}
        if fit.record is not None:
            self.marks = torch.from_numpy(fit.record[group]).to(fit.stack.device)
            self.update_sums = {name: torch.zeros_like(value) for name, value in trained.items()}

    def begin_epoch(self, epoch: int) -> None:
        """Set ``epoch``, and call the method ``begin`` of the losses that have one. There, a loss draws all random
        numbers of the epoch, because steps that are replayed cannot draw any."""
        if isinstance(self.epoch, Tensor):
            self.epoch.fill_(epoch)
        else:
            self.epoch = epoch
        for loss in self.fit.losses:
            begin = getattr(loss, "begin", None)
            if begin is not None:
                begin(epoch, self.group, self.loss_state, self.fit.stack.device)

    def add_updates(self, before: State, has_mark: Tensor) -> None:
        """Add this step's update to the ``update_sums`` of those models whose batch had a marked sample.

        Parameters
        ----------
        has_mark
            bool [n]: which models these are.
        before
            Name → the weights before the step.
        """
        if has_mark.device.type == "cpu" and not has_mark.any():  # on a card, asking this would wait for the card
            return
        for name, old in before.items():
            mask = has_mark.reshape(-1, *[1] * (old.ndim - 1))  # one value per model, for all of its weights
            self.update_sums[name] += torch.where(mask, self.leaves[name] - old, torch.zeros_like(old))

    def write_back(self) -> None:
        """Write the parameters and buffers of the group's models to the stack, and the sums of their updates to the
        fit, which both have all models."""
        stack, fit = self.fit.stack, self.fit
        kinds = ((stack.parameters, self.leaves), (stack.buffers, self.buffers), (fit.update_sums, self.update_sums))
        for of_all, of_group in kinds:
            for name, value in of_group.items():
                of_all[name][self.group] = value.detach()
