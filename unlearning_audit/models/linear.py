"""Multinomial logistic regression; inputs are not standardised, images are flattened."""

import math

from unlearning_audit.models import Module, Settings, nn

#: `workflow.forecast.rates` predicts the time of jobs with such models.
SMALL = True


class Options(Settings):
    """No options."""


def build(options: Options, shape: tuple[int, ...], classes: int) -> Module:
    """Return one Linear layer, preceded by a Flatten if samples have several axes: it maps [n, *shape] to logits [n,
    classes]."""
    from unlearning_audit.models._layers import headed

    flatten = [nn.Flatten()] if len(shape) > 1 else []
    return headed(*flatten, nn.Linear(math.prod(shape), classes))
