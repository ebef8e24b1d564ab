"""ℓ1-sparse: finetune on retain with an ℓ1 penalty on all weights, or after pruning (Jia et al. 2023)."""

import functools
from typing import Literal

from pydantic import Field

from unlearning_audit.methods import ModelStack, Momentum, Passes, Rate, Rows, State, Stream, Tensor, torch

#: What may be tuned, and within which values.
TUNE = {
    "lr": {"low": 0.001, "high": 0.2, "log": True},
    "epochs": {"low": 1, "high": 20},
    "alpha": {"low": 1e-05, "high": 0.01, "log": True},
    "batch_size": [16, 64, 128],
    "penalty_schedule": ["constant", "decay", "increase"],
}


class Options(Momentum):
    """Loss: CE(retain) + α_e·‖θ‖₁ over all parameters. α_e comes from ``alpha`` by ``penalty_schedule``, in epoch e of
    E.

    ``decay``: α·(1 − e/E), as in the authors' code; ``increase``: α·2e/E, as in Naderloui et al. 2025 (α 3e-4);
    ``constant``: α. Jia et al.: lr .01, 10 epochs, α 5e-4. ``prune``: the share of the weights of matrices and
    convolutions, the smallest of each model, that is set to 0 first and stays 0. Naderloui et al. describe this variant
    (prune first, then unlearn), which has α 0; their code has the penalty alone.
    """

    lr: Rate = 0.01
    epochs: Passes = 5
    alpha: float = Field(5e-4, ge=0)
    penalty_schedule: Literal["decay", "increase", "constant"] = "decay"
    prune: float = Field(0.0, ge=0, lt=1)

    def strength(self, epoch: "int | Tensor") -> "float | Tensor":
        """Return α_e, the weight of the penalty in the 0-based ``epoch``: ``alpha``, which falls or rises over the
        epochs as ``penalty_schedule`` says."""
        progress = epoch / self.epochs
        return self.alpha * {"decay": 1 - progress, "increase": 2 * progress, "constant": 1.0}[self.penalty_schedule]


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Minimise cross-entropy on retain plus the ℓ1 penalty α_e·‖θ‖₁. If ``prune`` is above 0, that share of the weights
    is set to 0 first, and stays 0."""

    def penalty(parameters: dict[str, Tensor], epoch: int | Tensor) -> Tensor:
        """Return α_e·‖θ‖₁ of each model, [n]: the sum of the absolute values of its ``parameters`` times the strength
        of the penalty in this ``epoch``."""
        norms = (value.flatten(1).abs().sum(1) for value in parameters.values())
        return options.strength(epoch) * functools.reduce(torch.add, norms)

    kept = prune_smallest(stack, options.prune) if options.prune else None
    stack.fit(Stream(retain), optimiser=options, epochs=options.epochs, purpose="unlearn", penalty=penalty, mask=kept)


def prune_smallest(stack: ModelStack, share: float) -> State:
    """Set the ``share`` of each model's weights with the smallest absolute value to 0, rounded down, and all weights as
    large as the largest of these. All matrices and kernels are ranked together; biases and the weights of norms stay.
    Return which weights are kept: name → bool [models, …]."""
    matrices = {name: value.flatten(1).abs() for name, value in stack.parameters.items() if value.ndim > 2}
    sizes = torch.cat([*matrices.values()], dim=1)  # [models, weights]
    count = int(share * sizes.shape[1])
    # The size of the largest weight that is pruned; without one, a limit below all sizes.
    limit = sizes.kthvalue(count, dim=1, keepdim=True).values if count else -torch.ones_like(sizes[:, :1])
    kept = {
        name: (matrices[name] > limit).view_as(value) if name in matrices else torch.ones_like(value, dtype=torch.bool)
        for name, value in stack.parameters.items()
    }
    stack.edit(lambda name, value: value * kept[name])
    return kept
