"""Fisher forgetting: noise on every weight, larger where it matters less to the retain set (Golatkar et al. 2020)."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from unlearning.bank.bank import Bank
from unlearning.bank.streams import Rows
from unlearning.plugins.settings import Settings


class Options(Settings):
    """``variant`` of the published code; ``alpha`` scales the noise's variance.

    ``golatkar``: from the authors of the method, notebook of Golatkar et al. 2020 (α 3e-6 by default, 1e-6 in
    their runs). ``becker``: from Becker & Liebig 2022 (α 3e-6), with the observed label. The two differ
    by orders of magnitude.
    """

    variant: Literal["golatkar", "becker"] = "golatkar"
    alpha: float = Field(3e-6, ge=0)


def unlearn(bank: Bank, forget: Rows, retain: Rows, options: Options) -> None:
    """Add normal noise, each model's from its own seed, with `spread` from the retain set's Fisher information."""
    std = spread(bank, retain, options)
    noise = bank.noise("fisher")
    bank.edit(lambda name, value: value + std[name] * noise[name])


def spread(bank: Bank, retain: Rows, options: Options) -> dict[str, Tensor]:
    """Standard deviation of the noise, name → [models, …]."""
    if options.variant == "golatkar":
        fisher = bank.squared_gradients(retain, labels="model")
        return {
            name: torch.stack([_golatkar(f, name in bank.head, options.alpha) for f in value])
            for name, value in fisher.items()
        }
    squares, gradient = bank.squared_gradients(retain, labels="observed"), bank.gradient(retain)
    return {
        name: _becker(value, gradient[name], len(retain), name in bank.head, options.alpha)
        for name, value in squares.items()
    }


def _golatkar(fisher: Tensor, head: bool, alpha: float) -> Tensor:
    """var = α·min(1/(F + 1e-8), 1e3), in the last layer 1e2; mean over inputs; × 10 in the last layer and 1-D."""
    variance = alpha * (1 / (fisher + 1e-8)).clamp(max=1e2 if head else 1e3)
    if variance.ndim > 1:
        variance = variance.mean(1, keepdim=True).expand_as(variance)
    return (variance * (10 if head or variance.ndim == 1 else 1)).sqrt()


def _becker(squares: Tensor, gradient: Tensor, rows: int, head: bool, alpha: float) -> Tensor:
    """std = min(√(α/F), 1e-3) with F = Σ (g + 1e-7)²; × 10 for the last layer's bias alone, as their code has it."""
    offset = 1e-7
    information = rows * (squares + 2 * offset * gradient + offset**2)
    std = (alpha / information).sqrt().clamp(max=1e-3)
    return std * 10 if head and squares.ndim == 2 else std
