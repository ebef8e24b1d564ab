"""How a model is trained: the recipe of originals and, unchanged, of retrained and shadow models."""

from typing import Literal

from pydantic import Field, field_validator

from unlearning.optim import Optimiser
from unlearning.settings import Settings


class Privacy(Settings):
    """DP-SGD (Abadi et al. 2016) by Opacus: the budget ε at δ, and the norm to which gradients are clipped."""

    epsilon: float = Field(gt=0)
    delta: float = Field(1e-5, gt=0, lt=1)
    max_grad_norm: float = Field(1.0, gt=0)


class Recipe(Optimiser):
    """Optimiser, length, augmentation, and optionally a privacy budget.

    An infinite ``dp.epsilon`` means training without DP, so that a budget axis can end in .inf.
    ``record_updates`` keeps the sum of the updates that touched the forget set, for amnesiac unlearning.
    """

    epochs: int = Field(40, ge=1)
    augment: Literal["none", "crop_flip"] = "none"
    dp: Privacy | None = None
    record_updates: bool = False

    @field_validator("dp")
    @classmethod
    def _infinite_budget_is_none(cls, value: Privacy | None) -> Privacy | None:
        return None if value is not None and value.epsilon == float("inf") else value
