"""WGA: gradient ascent that weighs each token by p^β, so that forgotten tokens count little (Wang et al. 2025)."""

from pydantic import Field

from unlearning_audit.methods import Batch, ModelStack, Rows, Stream, Tensor, _tokens

#: What may be tuned, and within which values.
TUNE = _tokens.TUNE | {"beta": [0.1, 1.0, 5.0], "alpha": [1.0, 2.0, 5.0]}


class Options(_tokens.RetainOptions):
    """Loss: −p^``beta``·NLL of each observed token of forget, mean over the scored tokens, times ``gamma``, +
    ``alpha``·R(retain). The weight is not differentiated; one label is one token.

    Defaults as configured by OpenUnlearning: β 1, γ = α = 1, AdamW 1e-5, 5 epochs. β 0 is graddiff. R (``retain_loss``)
    is the ``nll`` of the observed labels or tokens, or the divergence ``kl``(original ‖ model) of the predictions.
    """

    beta: float = Field(1.0, ge=0)
    gamma: float = Field(1.0, ge=0)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Minimise −``gamma`` times the NLL of the observed tokens of forget, each weighed by p^β with p its probability,
    plus ``alpha`` times ``retain_loss``, nll or kl, on retain. A step takes one batch of each set, and an epoch is one
    pass over forget."""

    def weighted(batch: Batch) -> Tensor:
        """Return −weight·NLL of each sample, the mean over its scored tokens: [n, b]. The weight is not
        differentiated."""
        nll = _tokens.nll(batch)  # so that the weight p^β is exp(−β·nll)
        return -_tokens.mean_over_tokens((-options.beta * nll).exp().detach() * nll, batch)

    lose = Stream(forget, loss=weighted, weight=options.gamma, reading=_tokens.reading(stack))
    _tokens.minimise(stack, (lose,), retain, options)
