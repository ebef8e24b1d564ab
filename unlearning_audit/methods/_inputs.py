"""Helpers for methods that change samples instead of weights."""

from unlearning_audit.training.lazy import ModelStack, State, Tensor, nn, torch


def refuse_tokens(stack: ModelStack, method: str) -> None:
    """Raise ValueError, naming the ``method``, if the stack's samples are tokens, which cannot be changed by small
    steps."""
    if not (stack.x.is_floating_point() or stack.x.dtype == torch.uint8):
        raise ValueError(
            f"{method} moves samples along a gradient, but tokens cannot be moved; leave it out of studies of text"
        )


def gradient(stack: ModelStack, weights: tuple[State, State], x: Tensor, labels: Tensor) -> Tensor:
    """Return the gradient of each sample's cross-entropy in the sample ``x`` itself, of the shape of ``x``, for one
    model with these ``weights`` in evaluation mode.

    Parameters
    ----------
    x
        [rows, …]: samples as the model reads them.
    labels
        int64 [rows]: the labels of these samples.
    """
    from unlearning_audit.training.engine import forward_one

    stack.model.eval()
    leaf = x.detach().clone().requires_grad_()
    loss = nn.functional.cross_entropy(forward_one(stack.model, *weights, leaf), labels, reduction="sum")
    return torch.autograd.grad(loss, leaf)[0]  # one gradient, because there is one tensor to take it in
