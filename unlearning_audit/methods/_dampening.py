"""Dampen weights that matter much more to the forget set than to all data (Foster et al. 2024)."""

from collections.abc import Callable

from unlearning_audit.methods import ModelStack, Rows, State, Tensor


def forget_by(
    stack: ModelStack, forget: Rows, retain: Rows, importance: Callable[[Rows], State], a: float, lam: float
) -> None:
    """Measure the importance of weights for all data and for ``forget``, and dampen those that matter mostly to
    ``forget``.

    ``importance`` maps rows to name → Tensor [models, …]. A weight whose importance for ``forget`` exceeds ``a`` times
    that for all data is multiplied by min(``lam``·(all data)/forget, 1), as `dampen` does.
    """
    total = importance((retain + forget).sample(len(retain) + len(forget), stack.seeds, "ssd/all"))
    lost = importance(forget.sample(len(forget), stack.seeds, "ssd/forget"))
    dampen(stack, total, lost, a, lam)


def dampen(stack: ModelStack, total: State, lost: State, a: float, lam: float) -> None:
    """Multiply each weight with lost > ``a``·total by min(``lam``·total/lost, 1), in place.

    ``lost`` and ``total``: the importance of each weight for the forget set and for all data, name → [models, …].
    """
    import torch

    def dampened(name: str, value: Tensor) -> Tensor:
        factor = (lam * total[name] / lost[name]).clamp(max=1)  # NaN only where nothing is lost
        return torch.where(lost[name] > a * total[name], value * factor, value)

    stack.edit(dampened)
