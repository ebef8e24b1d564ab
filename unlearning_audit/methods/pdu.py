"""PDU: flatten predictions on forget while a Lagrange multiplier limits the loss on retain (Entesari et al. 2025)."""

from pydantic import Field

from unlearning_audit.methods import Batch, ModelStack, Passes, Rows, Stream, Tensor, _tokens, torch

#: What may be tuned, and within which values.
TUNE = _tokens.TUNE | {"retain_limit": [0.01, 0.1, 0.3, 1.0], "dual_step": [0.1, 1.0, 5.0]}


class Options(_tokens.TextOptimiser):
    """Loss: ``gamma``·(max z − mean z)² on forget, with z the logits of a token, + λ·(NLL − ``retain_limit``) on
    retain. Both are means over the scored tokens; one label is one token.

    After each step, the multiplier λ, which starts at ``alpha``, increases by ``dual_step``·(NLL − retain_limit) of the
    step's batch, but not below 0. This is dual ascent for: minimise the loss on forget subject to NLL ≤ retain_limit.
    The published code averages on forget over all tokens, also those of questions and padding. The optimiser and epochs
    are those of OpenUnlearning's other methods: AdamW 1e-5, weight decay .01, batches of 32, 10 epochs.
    """

    epochs: Passes = 10
    gamma: float = Field(1.0, ge=0)
    alpha: float = Field(1.0, ge=0)
    retain_limit: float = Field(0.3, ge=0)
    dual_step: float = Field(1.0, ge=0)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Minimise γ·(max logit − mean logit)² on forget + λ·(NLL − limit) on retain. Each model has a multiplier λ, which
    rises while its NLL on retain is above ``retain_limit``, and falls while the NLL is below. A step takes one batch of
    each set, and an epoch is one pass over forget."""

    def flatness(batch: Batch) -> Tensor:
        """Return (max z − mean z)² of each sample's logits z, the mean over scored tokens: [n, b]."""
        z = batch.logits
        return _tokens.mean_over_tokens((z.amax(-1) - z.mean(-1)).square(), batch)

    def constraint(batch: Batch) -> Tensor:
        """Return λ·(NLL − retain_limit) of each sample, [n, b], with λ as it was before this batch. Then move the λ of
        each model by ``dual_step`` times its mean of NLL − retain_limit, but not below 0."""
        above = _tokens.mean_over_tokens(_tokens.nll(batch), batch) - options.retain_limit
        if constraint not in batch.loss_state:  # where this function itself is the key of the multipliers
            batch.loss_state[constraint] = torch.full_like(above[:, 0], options.alpha, requires_grad=False)
        multiplier: Tensor = batch.loss_state[constraint].clone()  # λ, [n]
        with torch.no_grad():  # in place, so that a step that is replayed from a CUDA graph moves λ, too
            batch.loss_state[constraint].copy_((multiplier + options.dual_step * above.mean(-1)).clamp(min=0))
        return multiplier[:, None] * above

    constraint.whole = True  # type: ignore[attr-defined]  # its multiplier moves once with each batch
    reading = _tokens.reading(stack)
    lose = Stream(forget, loss=flatness, weight=options.gamma, reading=reading)
    keep = Stream(retain, loss=constraint, reading=reading)
    stack.fit((lose, keep), optimiser=options, epochs=options.epochs, purpose="unlearn")
