"""Dampening of weights that what is forgotten needs more than all data do (Foster et al. 2024)."""

from unlearning_audit.training.lazy import Bank, State, Tensor


def dampen(bank: Bank, total: State, lost: State, a: float, lam: float) -> None:
    """Multiply weights whose importance for forget, ``lost``, exceeds ``a`` times that for all data, ``total``, by
    min(``lam``·total/lost, 1)."""
    import torch

    def dampened(name: str, value: Tensor) -> Tensor:
        factor = (lam * total[name] / lost[name]).clamp(max=1)  # NaN only where nothing is lost
        return torch.where(lost[name] > a * total[name], value * factor, value)

    bank.edit(dampened)
