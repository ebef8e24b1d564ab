"""GradDiff, gradient difference (GA+GDR): ascend on forget and descend on retain at once (Liu et al. 2022)."""

from pydantic import Field

from unlearning_audit.methods import ModelStack, Passes, Rows, Stream, _tokens

#: What may be tuned, and within which values.
TUNE = _tokens.TUNE | {"alpha": [1.0, 2.0, 5.0]}


class Options(_tokens.RetainOptions):
    """Loss: −``gamma``·NLL(forget) + ``alpha``·R(retain). An epoch is one pass over forget.

    R (``retain_loss``) is the ``nll`` of the observed labels or tokens, or the divergence ``kl``(original ‖ model) of
    the predictions, mean over tokens. Maini et al. 2024 (TOFU): γ = α = 1, AdamW 1e-5, weight decay .01, 5 epochs,
    batches of 32. With γ = α = 1 the loss is twice that of neggrad_plus with β = ½ and passes over forget.
    ``refine_epochs`` of training on retain follow, with the same optimiser (Naderloui et al. 2025: 2).
    """

    gamma: float = Field(1.0, ge=0)
    refine_epochs: Passes = 0


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Raise the NLL of forget, ``gamma`` times, and minimise ``alpha`` times ``retain_loss``, nll or kl, on retain,
    with one batch of each set per step. Then train on retain for ``refine_epochs``."""
    keep = _tokens.retain_stream(stack, retain, options.retain_loss, options.alpha)
    step = (Stream(forget, weight=-options.gamma), keep)
    stack.fit(step, optimiser=options, epochs=options.epochs, purpose="unlearn")
    stack.fit(Stream(retain), optimiser=options, epochs=options.refine_epochs, purpose="unlearn/refine")
