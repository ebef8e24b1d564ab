"""Sham: a control that changes the weights at random, as much as another method does. It forgets nothing on purpose.

What a method achieves beyond its sham comes from its information on the samples, and not from changing weights.
"""

from pydantic import Field

from unlearning_audit.methods import ModelStack, Rows, Settings, Tensor


class Options(Settings):
    """``like``: the study's name of the method whose change is matched in size. ``size``: without ``like``, how much
    every tensor of weights changes, relative to its norm.

    A sham is not ranked and belongs to no family of tests. The report states where a method is not shown to be closer
    to retraining than its sham.
    """

    like: str | None = None
    size: float = Field(0.01, gt=0)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Change every tensor of weights in a random direction, as far as the method ``like`` changed it, or without
    ``like`` by ``size`` of its norm. Neither set is read. ``stack.matched`` holds the same models after the method
    ``like``."""
    noise = stack.noise("sham")

    def moved(name: str, value: Tensor) -> Tensor:
        """Return the ``value`` [models, …] of the parameter ``name`` plus the ``noise`` of the function around this
        one, for each model with the norm of the change that is to be matched."""
        change = stack.matched.parameters[name] - value if stack.matched else options.size * value
        new: Tensor = value + noise[name] * (_norm(change) / _norm(noise[name]))
        return new

    stack.edit(moved)


def _norm(value: Tensor) -> Tensor:
    """Return the norm of each model's tensor in ``value`` [models, …], as [models, 1, …] with as many axes. A parameter
    may be a single number per model, ``value`` [models]."""
    norm: Tensor = value.flatten(1).norm(dim=1) if value.ndim > 1 else value.abs()
    return norm.reshape(len(value), *[1] * (value.ndim - 1))
