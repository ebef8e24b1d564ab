"""Dampen weights that matter much more to the forget set than to all data (Foster et al. 2024)."""

from collections.abc import Callable

from unlearning_audit.methods import ModelStack, Rows, State, Tensor, torch


def dampen(
    stack: ModelStack, forget: Rows, retain: Rows, importance: Callable[[Rows], State], a: float, lam: float
) -> None:
    """Measure how important each weight is for all data (retain and forget) and for ``forget``, and dampen the weights
    that matter mostly to ``forget``.

    A weight whose importance for ``forget`` is more than ``a`` times that for all data is multiplied by ``lam`` times
    the ratio of the importance for all data to that for ``forget``, but at most by 1.

    Parameters
    ----------
    importance
        Maps rows to the importance of each weight: name → [models, …].
    """
    # All rows, in random order, because ``importance`` may be taken over batches.
    for_all = importance((retain + forget).sample(len(retain) + len(forget), stack.seeds, "ssd/all"))
    for_forget = importance(forget.sample(len(forget), stack.seeds, "ssd/forget"))

    def dampened(name: str, value: Tensor) -> Tensor:
        """Return the ``value`` [models, …] of the parameter ``name``, in which weights that matter mostly to forget are
        dampened. ``for_all`` and ``for_forget``, the two importances, are of the function around this one."""
        factor = (lam * for_all[name] / for_forget[name]).clamp(max=1)  # NaN at 0/0 only, where it is not used
        return torch.where(for_forget[name] > a * for_all[name], value * factor, value)

    stack.edit(dampened)
