"""Test whether a method unlearns each model independently, by a small rehearsal in which the other models change."""

import random
from collections.abc import Callable

import numpy as np
import torch

from unlearning_audit.plugins.guard import readable
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

#: The number of models in the rehearsal, and the largest numbers of samples that each forgets and keeps.
MODELS, FORGOTTEN, RETAINED = 3, 32, 96

#: The factor by which the weights of the first and the last model are multiplied.
TIMES = 1.5

#: The change of the middle model's result that rounding may cause, and the change from which on the method's
#: numbers are useless; both divided by the distance that unlearning moves the model.
ROUNDING, MUCH = 1e-3, 0.1

#: Seconds that the rehearsal may take. Slower methods are not tested.
SECONDS = 60.0


def influence(
    stack: ModelStack, unlearn: Callable[[ModelStack, Rows, Rows], object], forget: Rows, retain: Rows
) -> float:
    """Return how far a change of the other models in a stack moves the result of one model, divided by how far
    unlearning moves this model.

    ``unlearn`` lets three models forget a few samples twice, with the same random numbers; the second time, the weights
    of the first and the last model are multiplied by `TIMES`, and the results of the model in the middle are compared.
    The result is 0 for a method that changes every model independently, for a stack of one model, and if weights become
    NaN. It is also 0 if a repetition with unchanged weights moves the model by more than a tenth as far, because then
    the method is not repeatable and nothing can be measured.
    """
    if len(stack) < 2:
        return 0.0
    models = np.arange(MODELS) % len(stack)  # a stack of two models gives its first one twice
    rows = Rows(forget.index[models, :FORGOTTEN]), Rows(retain.index[models, :RETAINED])
    before = stack.take(models)

    def unlearned_middle(times: float) -> torch.Tensor:
        """Let a copy of the three models ``before`` forget and retain the ``rows`` of the function around this one. The
        weights of the first and the last model are multiplied by ``times`` beforehand. Return the weights of the model
        in the middle, float64 [weights]."""
        trial = before.copy()
        for name, value in trial.parameters.items():
            factors = value.new_tensor([times, 1.0, times])
            trial.parameters[name] = value * factors.view(-1, *[1] * (value.ndim - 1))
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)
        unlearn(trial, *rows)
        return _middle_weights(trial)

    reached = unlearned_middle(1.0)
    moved = max(float((reached - _middle_weights(before)).norm()), float(torch.finfo(torch.float32).eps))
    apart = float((unlearned_middle(TIMES) - reached).norm())
    if apart > ROUNDING * moved:  # a repetition takes time, so there is none if rounding explains ``apart``
        repeated_apart = float((unlearned_middle(1.0) - reached).norm())
        if repeated_apart > apart / 10:
            return 0.0
    return apart / moved if np.isfinite(apart) else 0.0


def _middle_weights(stack: ModelStack) -> torch.Tensor:
    """Return all weights of the second of three models, float64 [weights]. Each parameter is [models, …]."""
    return torch.cat([value[1].detach().flatten().double() for value in stack.parameters.values()])


def sentence(share: float, file: str) -> str:
    """Return a warning that the method in ``file`` mixes models; "" if rounding explains their influence on each other.

    ``share``: how far a change of other models moves a model's result, divided by how far unlearning moves the model.
    """
    if share <= ROUNDING:
        return ""
    return (
        f"{readable(file)}: its effect on a model depends on the models beside it: in a test with three models, "
        f"other weights in two of them changed the third's update by {share:.0%}; reduce over all dimensions but the "
        "first, which counts the models"
    )
