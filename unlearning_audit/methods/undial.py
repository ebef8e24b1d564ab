"""UNDIAL: distil the original with the observed token's logit lowered (Dong et al. 2024)."""

from pydantic import Field

from unlearning_audit.methods import Batch, ModelStack, Passes, Rate, Rows, Stream, Tensor, _tokens, nn

#: What may be tuned, and within which values.
TUNE = _tokens.TUNE | {"beta": [3.0, 10.0, 30.0], "alpha": [0.0, 1.0, 2.0]}


class Options(_tokens.RetainOptions):
    """Loss: cross-entropy to softmax(z_original − ``beta``·one-hot(observed)) on forget, + ``alpha``·R(retain).

    The loss is the mean over the scored tokens; one label is one token. Dong et al.: β 10 (as configured by
    OpenUnlearning, with α 0, AdamW 1e-4, 10 epochs). R (``retain_loss``) is the ``nll`` of the observed labels or
    tokens, or the divergence ``kl``(original ‖ model) of the predictions. The published code also averages over
    padding, where it lowers the logit of a wrong token; here only scored tokens count.
    """

    lr: Rate = 1e-4
    epochs: Passes = 10
    beta: float = Field(10.0, ge=0)
    alpha: float = Field(0.0, ge=0)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Train on forget towards the original's prediction in which the observed token's logit is lowered by ``beta``,
    plus ``alpha`` times ``retain_loss``, nll or kl, on retain. A step takes one batch of each set, and an epoch is one
    pass over forget."""
    original = stack.frozen()

    def lowered(batch: Batch) -> Tensor:
        """Return each sample's cross-entropy to the prediction of the ``original`` models in which the observed token's
        logit is lowered, the mean over the sample's scored tokens: [n, b]."""
        z = original(batch)
        target = (z - options.beta * nn.functional.one_hot(_tokens.labels(batch), z.shape[-1])).softmax(-1)
        return _tokens.mean_over_tokens(-(target * batch.logits.log_softmax(-1)).sum(-1), batch)

    lose = Stream(forget, loss=lowered, reading=_tokens.reading(stack))
    _tokens.minimise(stack, (lose,), retain, options)
