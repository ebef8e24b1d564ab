"""CE-U: cross-entropy to the model's own prediction without the observed token (Yang 2025)."""

from pydantic import Field

from unlearning_audit.methods import Batch, ModelStack, Rows, Stream, Tensor, _tokens, nn, torch

#: What may be tuned, and within which values.
TUNE = _tokens.TUNE | {"alpha": [0.0, 1.0, 2.0]}


class Options(_tokens.RetainOptions):
    """Loss: cross-entropy to softmax(z with the observed token's logit at −∞) on forget, + ``alpha``·R(retain).

    The target is not differentiated. So the gradient is p·(one-hot(observed) − target), with p the observed token's
    probability, and vanishes once the token is forgotten. The loss is the mean over the scored tokens; one label is one
    token. ``skip_first``: how many tokens at the beginning of an answer, or of a passage without a question, are left
    out, because nothing predicts the first one. Yang, and OpenUnlearning's code: α 0, skip_first 1 (the default here is
    0). R (``retain_loss``) is the ``nll`` of the observed labels or tokens, or the divergence ``kl``(original ‖ model)
    of the predictions.
    """

    alpha: float = Field(0.0, ge=0)
    skip_first: int = Field(0, ge=0)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Train on forget with the cross-entropy to the model's own prediction, from which the observed token is removed,
    plus ``alpha`` times ``retain_loss``, nll or kl, on retain. A step takes one batch of each set, and an epoch is one
    pass over forget."""

    def without(batch: Batch) -> Tensor:
        """Return the cross-entropy of each sample to the model's own prediction without the observed token: the mean
        over the sample's scored tokens, [n, b]. For language models the first ``skip_first`` tokens that are not
        negative do not count, the first of a sample, which is never scored, included; 0 if these are all."""
        z = batch.logits
        observed = nn.functional.one_hot(_tokens.labels(batch), z.shape[-1]).bool()
        target = z.detach().masked_fill(observed, -torch.inf).softmax(-1)
        values = -(target * z.log_softmax(-1)).sum(-1)
        if not options.skip_first or batch.reading is None:
            return _tokens.mean_over_tokens(values, batch)
        scored = batch.x >= 0
        counted = (scored & (scored.cumsum(-1) > options.skip_first))[..., 1:]  # without the first scored tokens
        return (values * counted).sum(-1) / counted.sum(-1).clamp(min=1)

    lose = Stream(forget, loss=without, reading=_tokens.reading(stack))
    _tokens.minimise(stack, (lose,), retain, options)
