"""Dampening of weights that what is forgotten needs more than all data do (Foster et al. 2024)."""

import torch

from unlearning_audit.bank.bank import Bank
from unlearning_audit.bank.engine import State


def dampen(bank: Bank, total: State, lost: State, a: float, lam: float) -> None:
    """Multiply weights whose importance for forget, ``lost``, exceeds ``a`` times that for all data, ``total``, by
    min(``lam``·total/lost, 1)."""

    def dampened(name: str, value: torch.Tensor) -> torch.Tensor:
        factor = (lam * total[name] / lost[name]).clamp(max=1)  # NaN only where nothing is lost
        return torch.where(lost[name] > a * total[name], value * factor, value)

    bank.edit(dampened)
