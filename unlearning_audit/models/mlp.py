"""A multilayer perceptron; inputs are not standardised, images are flattened."""

import math
from typing import Annotated, Literal

from pydantic import Field

from unlearning_audit.models import Module, Settings, nn

#: `workflow.forecast.rates` predicts the time of jobs with such models.
SMALL = True


class Options(Settings):
    """``hidden``: units of each hidden layer; ``activation`` after each of them."""

    hidden: tuple[Annotated[int, Field(ge=1, le=100_000)], ...] = Field((128, 64), min_length=1)
    activation: Literal["relu", "tanh"] = "relu"


def build(options: Options, shape: tuple[int, ...], classes: int) -> Module:
    """Return the network as a sequence of Linear and activation layers, preceded by a Flatten if samples have several
    axes: it maps [n, *shape] to logits [n, classes]."""
    from unlearning_audit.models._layers import headed

    layers: list[nn.Module] = [nn.Flatten()] if len(shape) > 1 else []
    activation = nn.ReLU if options.activation == "relu" else nn.Tanh
    inputs = math.prod(shape)
    for outputs in options.hidden:
        layers += [nn.Linear(inputs, outputs), activation()]
        inputs = outputs
    return headed(*layers, nn.Linear(inputs, classes))
