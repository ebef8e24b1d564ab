"""Dampening of weights that what is forgotten needs more than all data do (Foster et al. 2024)."""

from collections.abc import Callable

from unlearning_audit.training.lazy import Bank, State, Tensor
from unlearning_audit.training.streams import Rows


def forget_by(
    bank: Bank, forget: Rows, retain: Rows, importance: Callable[[Rows], State], a: float, lam: float
) -> None:
    """Dampen by the ``importance`` of weights, name → [models, …], for all data and for ``forget``."""
    total = importance((retain + forget).sample(len(retain) + len(forget), bank.seeds, "ssd/all"))
    lost = importance(forget.sample(len(forget), bank.seeds, "ssd/forget"))
    dampen(bank, total, lost, a, lam)


def dampen(bank: Bank, total: State, lost: State, a: float, lam: float) -> None:
    """Multiply weights whose importance for forget, ``lost``, exceeds ``a`` times that for all data, ``total``, by
    min(``lam``·total/lost, 1)."""
    import torch

    def dampened(name: str, value: Tensor) -> Tensor:
        factor = (lam * total[name] / lost[name]).clamp(max=1)  # NaN only where nothing is lost
        return torch.where(lost[name] > a * total[name], value * factor, value)

    bank.edit(dampened)
