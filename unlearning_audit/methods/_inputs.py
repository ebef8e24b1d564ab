"""What methods do to samples rather than to weights: gradients with respect to inputs, and samples of their own."""

from unlearning_audit.training.lazy import Bank, State, Tensor


def real(bank: Bank, method: str) -> None:
    """Raise ValueError, naming the ``method``, for samples that cannot be moved a little, such as tokens."""
    import torch

    if not (bank.x.is_floating_point() or bank.x.dtype == torch.uint8):
        raise ValueError(
            f"{method} moves samples along a gradient, and these are tokens, which cannot be moved; leave it out of "
            "studies of text"
        )


def gradient(bank: Bank, weights: tuple[State, State], x: Tensor, labels: Tensor) -> Tensor:
    """∂ CE(x, label)/∂x of one model with these ``weights`` in evaluation mode, like ``x`` [rows, …] as models read it;
    ``labels`` int64 [rows]."""
    import torch
    from torch.nn import functional

    from unlearning_audit.training.engine import forward_one

    bank.model.eval()
    leaf = x.detach().clone().requires_grad_()
    loss = functional.cross_entropy(forward_one(bank.model, *weights, leaf), labels, reduction="sum")
    return torch.autograd.grad(loss, leaf)[0]
