"""SSD: dampen weights whose Fisher information is much larger on the forget set than on all data (Foster 2024)."""

from pydantic import Field

from unlearning_audit.methods import ModelStack, Rows, Settings, Tensor
from unlearning_audit.methods._dampening import dampen

#: What may be tuned, and within which values.
TUNE = {"a": {"low": 0.5, "high": 50, "log": True}, "lam": {"low": 0.1, "high": 5, "log": True}}


class Options(Settings):
    """Where F_forget > ``a``·F_all, a weight is multiplied by min(``lam``·F_all/F_forget, 1).

    F is the mean squared gradient of the cross-entropy, over samples as in the paper or, with ``per_sample`` false,
    over means of batches of ``batch_size`` as in the published code. The defaults are the paper's for ResNet-18. On
    small networks with random forget sets, few weights reach a = 10; use 2 to 3.
    """

    a: float = Field(10.0, ge=0)
    lam: float = Field(1.0, ge=0)
    per_sample: bool = True
    batch_size: int = Field(64, ge=1)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Multiply each weight whose Fisher information on forget is more than ``a`` times that on all data by ``lam``
    times the inverse of this ratio, or by 1 if that is less. There is no training step."""

    def importance(rows: Rows) -> dict[str, Tensor]:
        """Return the Fisher information of each weight on some ``rows``, name → [models, …]: the mean squared gradient
        of the cross-entropy over samples or, without ``per_sample``, of its means over batches."""
        return stack.squared_gradients(rows, per_sample=options.per_sample, batch_size=options.batch_size)

    dampen(stack, forget, retain, importance, options.a, options.lam)
