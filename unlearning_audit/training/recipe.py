"""Recipes: how originals, retrained and shadow models are trained."""

from typing import Literal

from pydantic import Field, field_validator, model_validator

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.training.optim import Optimiser


class Privacy(Settings):
    """DP-SGD (Abadi et al. 2016) by Opacus: the budget ε at δ, and the norm to which gradients are clipped."""

    epsilon: float = Field(gt=0)
    delta: float = Field(1e-5, gt=0, lt=1)
    max_grad_norm: float = Field(1.0, gt=0)


class Recipe(Optimiser):
    """Optimiser, number of epochs, and optionally a privacy budget.

    ``augment`` crop_flip shifts images by up to 4 pixels and mirrors half of them, drawn anew for every epoch. It
    applies to training and retraining only; methods have their own option ``augment``.

    An infinite ``dp.epsilon`` means training without DP, so that an axis of budgets can end in .inf. ``record_updates``
    stores the sum of the updates of steps whose batch had a forget sample, for amnesiac unlearning. ``precision``
    bfloat16 multiplies in half precision where torch.autocast supports it (convolutions, and linear layers of networks
    that are trained one by one); weights, losses and stored logits are float32. ``class_weights`` balanced weighs a
    sample's loss by the inverse frequency of its class among the model's training samples, and divides by the sum of a
    batch's weights (Triantafillou et al. 2024, §6).
    """

    epochs: int = Field(40, ge=1, le=100_000)
    dp: Privacy | None = None
    record_updates: bool = False
    precision: Literal["float32", "bfloat16"] = "float32"
    class_weights: Literal["none", "balanced"] = "none"

    @field_validator("dp")
    @classmethod
    def _infinite_budget_is_none(cls, value: Privacy | None) -> Privacy | None:
        """Return None for a privacy budget with infinite epsilon, which means training without DP, and any other
        ``value`` unchanged."""
        return None if value is not None and value.epsilon == float("inf") else value

    @model_validator(mode="after")
    def _what_private_training_allows(self) -> "Recipe":
        """Return the recipe. Raise ValueError if ``dp`` is set and an option that private training does not support
        differs from its default."""
        for name in ("record_updates", "precision", "class_weights"):
            if self.dp is not None and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} {getattr(self, name)} cannot be combined with dp; drop one of the two")
        return self
