"""NPO: negative preference optimisation against the forget set (Zhang et al. 2024)."""

from typing import Literal

from pydantic import Field

from unlearning_audit.methods import Batch, ModelStack, Optimiser, Passes, Rate, Rows, Stream, Tensor, _tokens, nn
from unlearning_audit.training.losses import cross_entropy

#: What may be tuned, and within which values.
TUNE = {"lr": {"low": 0.0001, "high": 0.05, "log": True}, "epochs": {"low": 1, "high": 15}, "beta": [0.05, 0.1, 0.5]}


class Options(Optimiser):
    """Loss: −(2/``beta``)·log σ(``beta``·(NLL − NLL_original)) on forget, + ``retain_weight``·R(retain).

    NLL is a sample's cross-entropy. At first the loss acts as gradient ascent; a sample's gradient decays as its loss
    rises above the original model's. Zhang et al.: β .1, AdamW 1e-5 for language models, 10 passes over forget.
    ``retain_weight`` 0 is their NPO. 1 is their NPO-RT with ``retain_loss`` nll, or NPO-KL with ``kl``, the divergence
    (original ‖ model) of the predictions. ``over``: a language model's NLL is the ``mean`` over tokens, or their
    ``sum`` as in the paper, where a passage of L tokens weighs L times as much as on retain. For L tokens, the sum with
    β is L times the mean with L·β: 31 tokens at β .1 correspond to a mean at β 3.1. ``refine_epochs`` of training on
    retain follow, with the same optimiser (Naderloui et al. 2025: 2).
    """

    lr: Rate = 0.005
    epochs: Passes = 5
    beta: float = Field(0.1, gt=0)
    over: Literal["mean", "sum"] = "mean"
    retain_weight: float = Field(0.0, ge=0)
    retain_loss: Literal["nll", "kl"] = "nll"
    refine_epochs: Passes = 0


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Train on forget with the loss −(2/β)·log σ(β·(NLL − NLL_original)) and, if ``retain_weight`` is above 0, that
    weight times ``retain_loss``, nll or kl, on retain. A step takes one batch of each set, and an epoch is one pass
    over forget. Then train on retain for ``refine_epochs``."""
    original = stack.frozen()

    def preference(batch: Batch) -> Tensor:
        """Return the loss of each sample of forget, [n, b]. NLL is the mean over its scored tokens, or with ``over``
        sum their sum."""
        rise = cross_entropy(batch.logits, batch.labels) - cross_entropy(original(batch), batch.labels)
        if options.over == "sum":  # the cross-entropy of a text is the mean over its scored tokens
            rise = rise * _tokens.count_scored(stack, batch)
        return -2 / options.beta * nn.functional.logsigmoid(options.beta * rise)

    step: tuple[Stream, ...] = (Stream(forget, loss=preference),)
    if options.retain_weight:
        step += (_tokens.retain_stream(stack, retain, options.retain_loss, options.retain_weight),)
    stack.fit(step, optimiser=options, epochs=options.epochs, purpose="unlearn")
    stack.fit(Stream(retain), optimiser=options, epochs=options.refine_epochs, purpose="unlearn/refine")
