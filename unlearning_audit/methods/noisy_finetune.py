"""Noisy fine-tuning: clipped, noisy steps on retain that make the starting weights irrelevant (Koloskova et al.
2025)."""

import logging

from pydantic import Field

from unlearning_audit.methods import ModelStack, Momentum, Passes, Rate, Rows, Settings, Stream, _certified, torch
from unlearning_audit.training.lazy import State

#: What may be tuned, and within which values.
TUNE = {
    "lr": {"low": 0.005, "high": 0.5, "log": True},
    "steps": {"low": 10, "high": 200, "log": True},
    "radius": {"low": 0.001, "high": 1.0, "log": True},
    "clip": {"low": 0.0001, "high": 0.1, "log": True},
    "refine_epochs": {"low": 5, "high": 40},
}


class Refine(Momentum):
    """The optimiser of the epochs after the last noise. Training after the noise does not weaken the guarantee."""

    lr: Rate = 0.05


class Options(Settings):
    """The vector of all weights is clipped to the length ``radius``, C₀. Each of ``steps`` takes a batch of retain,
    clips its gradient g to the length ``clip``, C₁, and adds noise: θ ← θ − ``lr``·(g + ``weight_decay``·θ) + σξ. Then
    come ``refine_epochs`` of ordinary training on retain.

    σ is the smallest value for which two runs on the same retain set and batches are (``epsilon``,
    ``delta``)-indistinguishable, whatever their starting weights. The starts are at most 2C₀ apart, and clipped
    gradients add at most 2·lr·C₁ per step; the noise of all steps absorbs both (`_certified.step_noise`). This σ is
    about three quarters of that of theorem 1 of Koloskova et al. 2025, who publish ε 1, δ 1e-5. The guarantee does not
    cover running batch statistics, which training has computed from forget. With ``epsilon`` 0 there is neither noise
    nor a guarantee.

    At ε 1, δ 1e-5 every weight ends with noise of (2C₀ + 2·lr·C₁·steps)/.27. A network tolerates this for small C₀ and
    C₁ only, and such values nearly restart it. The defaults leave noise of .09.
    """

    epsilon: float = Field(1.0, ge=0)
    delta: float = Field(1e-5, gt=0, lt=1)
    radius: float = Field(0.01, gt=0)
    clip: float = Field(0.001, gt=0)
    lr: Rate = 0.05
    weight_decay: float = Field(0.0, ge=0)
    steps: int = Field(50, ge=1)
    batch_size: int = Field(64, ge=1)
    refine_epochs: Passes = 10
    refine: Refine = Refine()


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Clip the weights to the norm ``radius``, take ``steps`` noisy steps of gradient descent on retain, then train on
    it for ``refine_epochs``. The noise makes two runs with any starting weights (``epsilon``,
    ``delta``)-indistinguishable; with ``epsilon`` 0 there is none. Raises ValueError if lr·weight_decay is above 1."""
    shrink = 1 - options.lr * options.weight_decay
    if shrink < 0:
        raise ValueError("noisy_finetune: lr times weight_decay must be at most 1")
    sigma = 0.0
    if options.epsilon:
        sigma = _certified.step_noise(
            distance=2 * options.radius, drift=2 * options.lr * options.clip, contraction=shrink, steps=options.steps,
            epsilon=options.epsilon, limit=options.delta,
        )  # fmt: skip
        logging.info("noise of standard deviation %.6g in each of %d steps", sigma, options.steps)
    stack.parameters = clipped(stack.parameters, options.radius)
    for step in range(options.steps):
        batch = retain.sample(options.batch_size, stack.seeds, f"noisy_finetune/{step}")
        gradient = clipped(stack.gradient(batch), options.clip)
        noise = stack.noise(f"noisy_finetune/{step}")
        stack.parameters = {
            name: shrink * value - options.lr * gradient[name] + sigma * noise[name]
            for name, value in stack.parameters.items()
        }
    stack.fit(Stream(retain), optimiser=options.refine, epochs=options.refine_epochs, purpose="unlearn/refine")


def clipped(state: State, length: float) -> State:
    """Return the tensors of ``state``, name → [models, …], scaled down so that all tensors of a model together, as one
    vector, have at most the norm ``length``."""
    norms = torch.stack([value.flatten(1).square().sum(1) for value in state.values()]).sum(0).sqrt()
    factor = (length / norms.clamp(min=1e-30)).clamp(max=1)  # of each model; the first clamp avoids 0/0
    return {name: value * factor.reshape(-1, *[1] * (value.ndim - 1)) for name, value in state.items()}
