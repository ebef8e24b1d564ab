"""Whether a method unlearns every model by itself: a small rehearsal in which other models are exchanged."""

import random
from collections.abc import Callable

import numpy as np
import torch

from unlearning_audit.plugins.guard import readable
from unlearning_audit.training.bank import Bank
from unlearning_audit.training.streams import Rows

#: Models of the rehearsal, of which the middle one is watched; samples that each forgets and keeps there, at most.
MODELS, FORGOTTEN, RETAINED = 3, 32, 96

#: By what the weights of the other two are multiplied.
TIMES = 1.5

#: Share of its way by which the watched model may end elsewhere, for what rounds otherwise; and from which on its
#: numbers say nothing about it.
ROUNDING, MUCH = 1e-3, 0.1

#: Seconds that the rehearsal may take; what takes longer is left alone.
SECONDS = 60.0


def influence(bank: Bank, unlearn: Callable[[Bank, Rows, Rows], object], forget: Rows, retain: Rows) -> float:
    """How far a model of ``bank`` ends from where it ends beside other neighbours, as a share of its way.

    ``unlearn`` is asked twice to let three models forget a few of their samples, once with the weights of the first and
    the last multiplied, with the same random numbers. 0 for a method that changes every model by itself, for a bank of
    one model, and where even the same neighbours do not lead to the same end, so that nothing can be measured.
    """
    if len(bank) < 2:
        return 0.0
    models = np.arange(MODELS) % len(bank)
    sides = Rows(forget.index[models, :FORGOTTEN]), Rows(retain.index[models, :RETAINED])
    before = bank.take(models)

    def end(times: float) -> torch.Tensor:
        trial = before.copy()
        trial.parameters = {name: value * _times(value, times) for name, value in trial.parameters.items()}
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)
        unlearn(trial, *sides)
        return _watched(trial)

    first = end(1.0)
    way = max(float((first - _watched(before)).norm()), float(torch.finfo(torch.float32).eps))
    apart = float((end(TIMES) - first).norm())
    if apart > ROUNDING * way and float((end(1.0) - first).norm()) > apart / 10:
        return 0.0
    return apart / way if np.isfinite(apart) else 0.0


def _times(value: torch.Tensor, times: float) -> torch.Tensor:
    """1 for the model in the middle and ``times`` for the others, as a factor of ``value`` [3, …]."""
    factors = torch.tensor([times, 1.0, times], dtype=value.dtype, device=value.device)
    return factors.view(-1, *[1] * (value.ndim - 1))


def _watched(bank: Bank) -> torch.Tensor:
    """All weights of the model in the middle, float64 [weights]."""
    return torch.cat([value[1].detach().flatten().double() for value in bank.parameters.values()])


def sentence(share: float, file: str) -> str:
    """What an influence means, "" for one by rounding alone."""
    if share <= ROUNDING:
        return ""
    return (
        f"{readable(file)}: what it does to a model depends on the models beside it: in a rehearsal on three models, "
        f"other weights of two of them moved the third by {share:.0%} of its own way; reduce over all dimensions but "
        "the first, which counts the models"
    )
