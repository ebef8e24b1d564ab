"""UNSIR: train on noise that maximises the loss (impair), then on retain (repair) (Tarun et al. 2023)."""

import numpy as np
from pydantic import Field

from unlearning_audit.methods import Kind, ModelStack, Optimiser, Passes, Rate, Rows, Settings, Stream, Tensor, _inputs
from unlearning_audit.randomness.keyed import seed_of
from unlearning_audit.training.lazy import torch

#: What may be tuned, and within which values.
TUNE = {
    "retain_share": [0.1, 0.3, 1.0],
    "repeats": {"low": 1, "high": 40, "log": True},
    "repair_epochs": {"low": 0, "high": 5},
}


class Impair(Optimiser):
    """The optimiser of the impair step, as published."""

    optimiser: Kind = "adam"
    lr: Rate = 0.02
    batch_size: int = Field(256, ge=1)


class Repair(Impair):
    """The optimiser of the repair step, as published."""

    lr: Rate = 0.01


class Options(Settings):
    """At most ``noises`` noise samples, with labels of forget samples, are optimised in ``noise_steps`` of Adam with
    rate ``noise_lr`` to maximise CE − ``noise_penalty``·‖noise‖². Then come ``impair_epochs`` of training on the noise,
    each sample ``repeats`` times, and a ``retain_share`` of retain; then ``repair_epochs`` of training on that share
    alone.

    Tarun et al.: 256 samples, 40 steps of .1, penalty .1, 20 repeats, one epoch of each, to forget a class of images.
    """

    noises: int = Field(256, ge=1)
    noise_steps: Passes = 40
    noise_lr: Rate = 0.1
    noise_penalty: float = Field(0.1, ge=0)
    retain_share: float = Field(1.0, gt=0, le=1)
    repeats: int = Field(20, ge=1)
    impair_epochs: Passes = 1
    repair_epochs: Passes = 1
    impair: Impair = Impair()
    repair: Repair = Repair()


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Train the models on a share of retain together with noise that maximises their loss, with the labels of at most
    ``noises`` random forget samples (impair), then on that share alone (repair). Each noise sample comes ``repeats``
    times in an epoch.

    Raises ValueError for samples that are tokens.
    """
    _inputs.refuse_tokens(stack, "unsir")
    noise_rows = forget.sample(options.noises, stack.seeds, "unsir/labels")
    noisy, noise = with_noise(stack, noise_rows, options)
    share = retain.sample(max(1, round(options.retain_share * len(retain))), stack.seeds, "unsir/retain")
    mixed = Rows(np.concatenate([noise.index] * options.repeats + [share.index], axis=1))
    noisy.fit(Stream(mixed), optimiser=options.impair, epochs=options.impair_epochs, purpose="unlearn/impair")
    stack.parameters, stack.buffers = noisy.parameters, noisy.buffers
    stack.fit(Stream(share), optimiser=options.repair, epochs=options.repair_epochs, purpose="unlearn/repair")


def with_noise(stack: ModelStack, noise_rows: Rows, options: Options) -> tuple[ModelStack, Rows]:
    """Return a copy of the models whose data, scaled as models read them, also hold noise samples, and the rows of each
    model's noise in these data.

    The noise of all models is appended to the data, model after model.

    Parameters
    ----------
    noise_rows
        Samples of each model, for each of which one noise sample with the same label is made.
    """
    noisy, count = stack.copy(), len(noise_rows)
    noises, labels = [], []
    for model, index in enumerate(noise_rows.index):
        labels.append(stack.labels_of(model, index))
        noises.append(error_maximising(stack, model, labels[-1], options))
    samples = stack.scaled(stack.x)
    noisy.x = torch.cat([samples, *noises])
    new_labels = torch.cat(labels)
    if stack.labels.ndim == 2:  # models have labels of their own
        new_labels = new_labels.expand(len(stack), -1)
    noisy.labels = torch.cat([stack.labels, new_labels], -1)
    first_rows = len(samples) + count * np.arange(len(stack))  # of each model's noise
    return noisy, Rows(first_rows[:, None] + np.arange(count))


def error_maximising(stack: ModelStack, model: int, labels: Tensor, options: Options) -> Tensor:
    """Return noise samples [n, …] that maximise one model's loss with the ``labels`` int64 [n], minus
    ``noise_penalty``·‖noise‖². They begin as normal noise, and are changed in ``noise_steps`` of Adam.

    The noise has the shape and scale of samples as models read them.
    """
    draws = torch.Generator().manual_seed(seed_of(stack.seeds[model], "unsir/noise"))
    shape = (len(labels), *stack.x.shape[1:])
    noise = torch.randn(shape, generator=draws, dtype=stack.dtype).to(stack.device)
    adam = Optimiser(optimiser="adam", lr=options.noise_lr).build([noise])
    weights = stack.state(model)
    for _ in range(options.noise_steps):
        # The gradient of the penalty less that of the loss, because Adam descends.
        noise.grad = 2 * options.noise_penalty * noise - _inputs.gradient(stack, weights, noise, labels)
        adam.step()
    return noise
