"""Dampen weights that matter much more to the forget set than to all data (Foster et al. 2024)."""

from collections.abc import Callable

from unlearning_audit.methods import ModelStack, Rows, State, Tensor, torch


def forget_by(
    stack: ModelStack, forget: Rows, retain: Rows, importance: Callable[[Rows], State], a: float, lam: float
) -> None:
    """Measure the importance of weights for all data and for ``forget``, and dampen those that matter mostly to
    ``forget``.

    ``importance`` maps rows to the importance of each weight, name → [models, …]. A weight whose importance for
    ``forget`` exceeds ``a`` times that for all data is multiplied by min(``lam``·(all data)/forget, 1).
    """
    for_all = importance((retain + forget).sample(len(retain) + len(forget), stack.seeds, "ssd/all"))
    for_forget = importance(forget.sample(len(forget), stack.seeds, "ssd/forget"))

    def dampened(name: str, value: Tensor) -> Tensor:
        """Return the ``value`` [models, …] of the parameter ``name`` with the weights that matter to forget
        dampened."""
        factor = (lam * for_all[name] / for_forget[name]).clamp(max=1)  # NaN at 0/0 only, where it is not used
        return torch.where(for_forget[name] > a * for_all[name], value * factor, value)

    stack.edit(dampened)
