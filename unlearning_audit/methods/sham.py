"""A sham: a random change of the weights, as large as another method's. It is a control and forgets nothing on purpose.

What a method gains over its sham, it gains by what it was told of the samples, and not by moving away.
"""

from pydantic import Field

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.training.lazy import Bank, Tensor
from unlearning_audit.training.streams import Rows


class Options(Settings):
    """``like``: what the study calls the method whose change is matched. A sham is in no ranking and in no family of
    tests; a method that is not shown to be closer to retraining than its sham says so. ``size``: without such a method,
    how far every tensor of weights moves, as a share of its norm."""

    like: str | None = None
    size: float = Field(0.01, gt=0)


def unlearn(bank: Bank, forget: Rows, retain: Rows, options: Options) -> None:
    """Move every tensor of weights in a random direction, as far as the other method did; neither set is read."""
    noise = bank.noise("sham")

    def moved(name: str, value: Tensor) -> Tensor:
        change = bank.alike.parameters[name] - value if bank.alike else options.size * value
        new: Tensor = value + noise[name] * (_norm(change) / _norm(noise[name]))
        return new

    bank.edit(moved)


def _norm(value: Tensor) -> Tensor:
    """That of each model, [models, 1, …]."""
    norm: Tensor = value.flatten(1).norm(dim=1) if value.ndim > 1 else value.abs()
    return norm.reshape(len(value), *[1] * (value.ndim - 1))
