"""LFSSD: SSD with an importance of weights that needs neither labels nor a loss (Foster et al. 2024b)."""

from pydantic import Field

from unlearning_audit.methods import ModelStack, Module, Rows, Settings, State, Tensor, torch
from unlearning_audit.methods._dampening import dampen

#: What may be tuned, and within which values.
TUNE = {"a": {"low": 0.5, "high": 50, "log": True}, "lam": {"low": 0.1, "high": 5, "log": True}}


class Options(Settings):
    """Where I_forget > ``a``·I_all, a weight is multiplied by min(``lam``·I_all/I_forget, 1).

    The importance I of a weight θ is the mean of |∂‖f(x)‖²/∂θ|, with f the logits. As in the published code, it is
    taken over means of batches of ``batch_size``; with 1, over samples.
    """

    a: float = Field(10.0, ge=0)
    lam: float = Field(1.0, ge=0)
    batch_size: int = Field(64, ge=1)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Multiply each weight whose importance for forget is more than ``a`` times that for all data by ``lam`` times the
    inverse of this ratio, or by 1 if that is less. There is no training step."""
    from unlearning_audit.training.engine import forward_one

    def importance(model: Module, parameters: State, buffers: State, x: Tensor, _: Tensor) -> State:
        """Return the importance of each weight of one model with these ``parameters`` and ``buffers``, name → tensor:
        the mean over batches of ``x`` [rows, …] of the absolute gradient of the batch's mean of ‖logits‖². Labels, the
        last argument, are not used."""
        leaves = {name: value.requires_grad_() for name, value in parameters.items()}
        total = {name: torch.zeros_like(value) for name, value in parameters.items()}
        batches = torch.split(x, options.batch_size)
        for batch in batches:
            square = forward_one(model, leaves, buffers, batch).square().sum(-1).mean()
            gradients = torch.autograd.grad(square, list(leaves.values()), allow_unused=True, materialize_grads=True)
            for name, gradient in zip(leaves, gradients, strict=True):
                total[name] += gradient.abs()
        return {name: value / len(batches) for name, value in total.items()}

    dampen(stack, forget, retain, lambda rows: stack.per_model(rows, importance), options.a, options.lam)
