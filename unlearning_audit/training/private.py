"""DP-SGD (Abadi et al. 2016) for every model of a stack: the ordinary loop with Poisson batches, clipped per-sample
gradients and noise.

Noise levels and accounting are Opacus' own. Importing Opacus takes seconds, so only a recipe with a privacy budget
imports this file.
"""

import copy
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from opacus.accountants import RDPAccountant
from opacus.accountants.utils import get_noise_multiplier
from opacus.grad_sample import GradSampleModule
from opacus.validators import ModuleValidator
from torch import Tensor, nn

from unlearning_audit.randomness.keyed import generator, seed_of
from unlearning_audit.training import clipping, lanes
from unlearning_audit.training.checkpoints import Checkpoints
from unlearning_audit.training.engine import Stacked, State, places, using_weights
from unlearning_audit.training.fitting import Fit, GroupState
from unlearning_audit.training.models import Models
from unlearning_audit.training.recipe import Privacy
from unlearning_audit.training.recording import Inputs, run_step
from unlearning_audit.training.streams import Rows, Stream

#: Images that are processed at once on a processor, where more are not faster and take more memory.
IMAGES_AT_ONCE = 128


def train(stack: Models, rows: Rows, privacy: Privacy, checkpoints: Checkpoints | None = None) -> None:
    """Train every model on its ``rows`` by DP-SGD, by the stack's recipe and within the budget ``privacy``.

    A step draws each of the k samples with probability 1/⌈k/batch_size⌉ (Poisson sampling), clips the gradient of its
    cross-entropy to the norm ``max_grad_norm``, adds noise and divides by the expected batch size, rounded down.
    Sampling, augmentation and noise are keyed by the model's seed.

    Sets ``stack.privacy``: the budget that each model's training spent (epsilon, delta; Rényi accounting, one sample
    added or removed), and how it was spent (noise_multiplier, max_grad_norm, sample_rate, steps).

    Parameters
    ----------
    checkpoints
        Where an interrupted training resumes.

    Raises
    ------
    ValueError
        For a model whose per-sample gradients cannot be clipped, such as one with batch normalisation, and for a budget
        that no noise meets.
    """
    refuse_unsuitable(stack.model)
    per_epoch = steps_per_epoch(len(rows), stack.recipe.batch_size)
    sample_rate, steps = 1 / per_epoch, per_epoch * stack.recipe.epochs
    noise = noise_multiplier(privacy, sample_rate, steps)  # in units of max_grad_norm
    accountant = train_with_noise(stack, rows, noise, checkpoints)
    stack.privacy = {
        "epsilon": float(accountant.get_epsilon(privacy.delta)), "delta": privacy.delta, "noise_multiplier": noise,
        "max_grad_norm": privacy.max_grad_norm, "sample_rate": sample_rate, "steps": steps,
    }  # fmt: skip


def steps_per_epoch(samples: int, batch_size: int) -> int:
    """Return the number of steps in an epoch, ⌈samples/batch_size⌉. A step draws each sample with the
    probability 1/(this number)."""
    return -(-samples // batch_size)


def noise_multiplier(privacy: Privacy, sample_rate: float, steps: int) -> float:
    """Return the standard deviation of the noise, in units of ``max_grad_norm``, for which training spends between 99 %
    and 100 % of the epsilon of ``privacy``.

    Parameters
    ----------
    sample_rate
        The probability with which a step draws a sample.
    steps
        The number of steps.

    Raises
    ------
    ValueError
        If no noise is enough.
    """
    try:
        with warnings.catch_warnings():  # the search starts at noise levels for which Opacus warns
            warnings.filterwarnings("ignore", "Optimal order is")
            return float(get_noise_multiplier(
                target_epsilon=privacy.epsilon, target_delta=privacy.delta, sample_rate=sample_rate, steps=steps,
                accountant="rdp", epsilon_tolerance=0.01 * privacy.epsilon,
            ))  # fmt: skip
    except ValueError:
        raise ValueError(
            f"dp.epsilon: {privacy.epsilon} at delta {privacy.delta} is out of reach in {steps} steps; "
            "raise epsilon or delta, or lower epochs"
        ) from None


def refuse_unsuitable(model: nn.Module) -> None:
    """Raise ValueError if samples of a batch interact in ``model`` (batch normalisation), or if Opacus cannot handle
    one of its layers."""
    if any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in model.modules()):
        raise ValueError(
            "dp: batch normalisation mixes the samples of a batch, so that no sample's gradient can be "
            "clipped on its own; set norm: group in the model's options"
        )
    probe = copy.deepcopy(model).train()  # Opacus checks models in training mode only
    errors = [*ModuleValidator.validate(probe), *GradSampleModule.validate(probe)]
    if errors:
        raise ValueError(f"dp: Opacus cannot train this model ({errors[0]}); choose another model or no dp")


def train_with_noise(stack: Models, rows: Rows, noise: float, checkpoints: Checkpoints | None = None) -> RDPAccountant:
    """Train all models on their ``rows`` with the noise multiplier ``noise``.

    Return Opacus' account of the privacy that each of them has spent; all spend the same.

    Parameters
    ----------
    checkpoints
        Where an interrupted training resumes.

    Raises
    ------
    ValueError
        If gradients cannot be clipped.
    """
    stack.model.train()
    check_gradient_norms(stack, rows.index[0][:2])  # two samples of the first model
    fit = PrivateFit(stack, rows, noise, checkpoints)
    lanes.run(fit) if torch.device(stack.device).type == "cuda" else fit.run()
    accountant = RDPAccountant()
    accountant.history = [(noise, 1 / fit.per_epoch, fit.per_epoch * fit.epochs)]  # noise, sample rate, steps
    return accountant


def check_gradient_norms(stack: Models, rows: np.ndarray) -> None:
    """Raise ValueError unless the per-sample gradients that `clipping` sees have the true norms, to 1 %, for the first
    model and the samples ``rows``. True norms come from one backward pass for each sample.

    If two layers share a weight, or a function reads it, `clipping` sees only a part of its gradient. In a layer that
    gets one row for all samples, it sees a single sample. Gradients would then be larger than the noise allows for. A
    network with random outputs (dropout) is not checked. ``requires_grad`` of the parameters does not matter, because
    training moves all of them.
    """
    # Training moves all parameters, also those that a network's author froze.
    loss, model = nn.functional.cross_entropy, copy.deepcopy(stack.model).requires_grad_()
    stack.fill(model, 0)
    parameters = [*model.parameters()]
    x, labels = stack.scaled(stack.x[torch.from_numpy(rows).to(stack.device)]), stack.labels_of(0, rows)
    with torch.random.fork_rng(devices=[]):
        if not torch.equal(model(x), model(x)):  # dropout
            return
        losses = [loss(model(row), label) for row, label in zip(x.split(1), labels.split(1), strict=True)]
        true = [torch.autograd.grad(value, parameters, allow_unused=True) for value in losses]
        # The squared norm of each sample's gradient, over all parameters.
        squares = [torch.stack([g.square().sum() for g in sample if g is not None]).sum() for sample in true]
        norms, problem = torch.stack(squares).sqrt().tolist(), ""
        try:
            _, squared_norms = clipping.sums_of_model(model, x, labels, limit=math.inf)
            seen = squared_norms.sqrt().tolist()
            if not np.allclose(seen, norms, rtol=0.01, atol=0):
                problem = f"of a gradient with norm {norms[0]:.4g} it sees {seen[0]:.4g}"
        except (RuntimeError, AttributeError) as error:
            problem = str(error).splitlines()[0]
    if problem:
        raise ValueError(
            f"dp: the gradients of this network cannot be clipped sample by sample ({problem}), so that no budget "
            "would hold; layers do this that share weights, or read positions without an axis of samples: choose "
            "another model or no dp"
        )


class PrivateFit(Fit):
    """Private training of all models on their ``rows``.

    Batches are processed in parts of at most ``size`` samples. If models are computed as stacked chains, or on a card,
    all parts must have one size: they are ``filled`` up to ``size`` with rows that have no loss.

    Parameters
    ----------
    noise
        The standard deviation of the noise, in units of the norm to which gradients are clipped.
    checkpoints
        Where an interrupted training resumes.
    limit
        The norm to which gradients are clipped; infinite for a recipe without ``dp``.
    expected
        The number of samples in a batch on average, rounded down.
    generators
        Group → the generator of noise of each of its models.
    """

    def __init__(self, stack: Models, rows: Rows, noise: float, checkpoints: Checkpoints | None = None) -> None:
        """Take settings from the stack's recipe, and choose ``size``, the number of samples in a part of a batch:
        `IMAGES_AT_ONCE` for images, and a whole batch for other data. If parts are filled, it is a quarter of a batch,
        rounded up."""
        recipe = stack.recipe
        super().__init__(stack, ((Stream(rows),),), recipe, recipe.epochs, "private training", checkpoints=checkpoints)
        self.noise, self.places = noise, places(stack.model)
        self.limit = recipe.dp.max_grad_norm if recipe.dp is not None else math.inf
        self.per_epoch = steps_per_epoch(len(rows), recipe.batch_size)
        self.expected = len(rows) // self.per_epoch
        self.generators: dict[tuple[int, ...], list[torch.Generator]] = {}
        stacked_chains = isinstance(stack.engine, Stacked) and stack.engine.layers is not None
        self.filled = stacked_chains or torch.device(stack.device).type == "cuda"
        self.size = IMAGES_AT_ONCE if stack.x.ndim == 4 else recipe.batch_size
        if self.filled:
            self.size = -(-recipe.batch_size // 4)

    def prepare_group(self, group: list[int], tensors: State) -> None:
        """Make the generator of noise of each model in the ``group``, from the model's seed. After an interruption,
        restore the states of the generators.

        Parameters
        ----------
        tensors
            The tensors of a checkpoint, from which training resumes; empty if it starts. The state of a generator is
            called "noise/" and the model's position in the group.
        """
        seeds = [seed_of(self.stack.seeds[model], "train/noise") for model in group]
        generators = [torch.Generator(self.stack.device).manual_seed(seed) for seed in seeds]
        if tensors:
            for position, rng in enumerate(generators):
                rng.set_state(tensors[f"noise/{position}"])
        self.generators[tuple(group)] = generators

    def checkpoint_tensors(self, state: GroupState) -> State:
        """Return what a checkpoint of a group in this ``state`` must hold, by name: weights, buffers, and the states of
        the optimiser and of the generators of noise."""
        generators = self.generators[tuple(state.group)]
        return super().checkpoint_tensors(state) | {f"noise/{i}": rng.get_state() for i, rng in enumerate(generators)}

    def orders(self, group: list[int], first_epoch: int = 0) -> list[Any]:
        """Return the batches of a ``group`` of models, from the 0-based ``first_epoch`` on: a list of one pass, which
        is a list of one stream.

        If parts are filled, the length of a batch is a multiple of a part's size: ``size``, or a part of it if memory
        was exhausted before (``pieces``).
        """
        size = -(-self.size // self.pieces) if self.filled else 1  # rounded up
        return [[Poisson(self.stack, group, self.passes[0][0].rows, size, first_epoch)]]

    def take_step(self, number: int, state: GroupState, inputs: Inputs) -> None:
        """Take one private step: sum the clipped gradients over the parts of the batch, add noise, divide by the
        expected batch size, and update the weights.

        Parameters
        ----------
        number
            The number of the pass, of which there is one.
        state
            The state of the group of models.
        inputs
            The one batch of the step: sample numbers int64 [n, b], where −1 stands for no sample, and shifts of images
            uint8 [n, b, 3] or None.
        """
        [(rows, jitter)] = inputs
        gradients: State = {}  # the tensors in which the optimiser looks for gradients
        for name, leaf in state.leaves.items():
            leaf.grad = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad.zero_()
            gradients[name] = leaf.grad
        size = -(-self.size // self.pieces)  # of a part, rounded up
        add = partial(self._add_clipped_gradients, state, gradients)
        for start in range(0, rows.shape[1], size):
            part = slice(start, start + size)
            shifts = None if jitter is None else jitter[:, part]
            run_step(state.recorder, number, add, [(rows[:, part], shifts)])
        deviation = self.noise * self.limit
        with torch.no_grad():
            if deviation:
                for position, rng in enumerate(self.generators[tuple(state.group)]):  # of a model in the group
                    for gradient in gradients.values():
                        gradient[position] += torch.normal(
                            0.0, deviation, gradient.shape[1:], generator=rng, device=gradient.device,
                            dtype=gradient.dtype,
                        )  # fmt: skip
            torch._foreach_div_([*gradients.values()], self.expected)
        state.steppers[number].step()

    @torch.no_grad()
    def _add_clipped_gradients(self, state: GroupState, gradients: State, inputs: Inputs) -> None:
        """Add the sums of the clipped gradients of some samples to ``gradients``, for a group of n models.

        Stacked chains are computed together, other networks one model at a time.

        Parameters
        ----------
        state
            The state of the group of models.
        gradients
            Name → [n, …], the sums so far, which change in place.
        inputs
            Sample numbers int64 [n, b], and shifts of images uint8 [n, b, 3] or None. Where the number is −1, there is
            no sample: sample 0 is read, with a label that the loss ignores.
        """
        [(rows, jitter)] = inputs
        batch, engine = self.stack.read(state.group, rows.clamp(min=0), jitter), self.stack.engine
        labels = batch.labels.masked_fill(rows < 0, clipping.IGNORED)
        if isinstance(engine, Stacked) and engine.layers is not None:
            for name, total in clipping.sums_of_chain(engine, state.leaves, batch.x, labels, self.limit).items():
                gradients[name] += total
            return
        model = self.stack.model
        for position in range(len(state.group)):  # of a model in the group
            weights: State = {name: nn.Parameter(value[position]) for name, value in state.leaves.items()}
            weights |= {name: value[position] for name, value in state.buffers.items()}
            with using_weights(self.places, weights):
                sums, _ = clipping.sums_of_model(model, batch.x[position], labels[position], self.limit)
            for name, total in sums.items():
                gradients[name][position] += total


@dataclass
class Poisson:
    """The Poisson batches of a ``group`` of n models: each of a model's ``rows`` is in a batch with probability
    1/``steps``.

    A batch is sample numbers int64 [n, b] and, if images are shifted, shifts uint8 [n, b, 3]. Places without a sample
    hold −1.

    Parameters
    ----------
    size
        The length b of a batch is a multiple of this number; 0 if no model draws a sample.
    first_epoch
        The 0-based epoch of the first batch.
    """

    stack: Models
    group: list[int]
    rows: Rows
    size: int
    first_epoch: int = 0

    @cached_property
    def steps(self) -> int:
        """The number of batches in an epoch."""
        return steps_per_epoch(len(self.rows), self.stack.recipe.batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Yield one batch of all models for each step, from ``first_epoch`` on: sample numbers, and shifts of images or
        None. The batches of earlier epochs are drawn, too, and dropped, so that the later ones are the same."""
        batches_of_models = [self._batches_of(model) for model in self.group]
        for step in range(self.steps * self.stack.recipe.epochs):
            batches = [next(batches_of_model) for batches_of_model in batches_of_models]  # one of each model
            if step < self.first_epoch * self.steps:
                continue
            longest = max(len(rows) for rows, _ in batches)
            length = -(-longest // self.size) * self.size  # rounded up to a multiple of ``size``
            index = np.full((len(batches), length), -1)
            jitter = np.zeros((len(batches), length, 3), np.uint8)
            for position, (rows, shifts) in enumerate(batches):  # of a model in the group
                index[position, : len(rows)] = rows
                if shifts is not None:
                    jitter[position, : len(rows)] = shifts
            device = self.stack.device
            # ``shifts`` is that of the last model: images of all models are shifted, or of none.
            yield torch.from_numpy(index).to(device), None if shifts is None else torch.from_numpy(jitter).to(device)

    def _batches_of(self, model: int) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Yield the batches of one ``model`` without end: sample numbers int64 [samples of the batch], and shifts of
        images uint8 [samples of the batch, 3] or None. Each of the model's rows is in a batch with probability
        1/``steps``."""
        seed, rows = self.stack.seeds[model], self.rows.index[model]
        sampling = torch.Generator().manual_seed(seed_of(seed, "train/sampling"))
        augmentation = generator(seed, "train/augment")
        while True:
            sampled, shifts = rows[(torch.rand(len(rows), generator=sampling) < 1 / self.steps).numpy()], None
            if self.stack.recipe.augment == "crop_flip":
                # For `crop_and_flip`: two shifts from 0 to 8 pixels, and 0 or 1 to mirror.
                shifts = augmentation.integers(0, [9, 9, 2], (len(sampled), 3), dtype=np.uint8)
            yield sampled, shifts
