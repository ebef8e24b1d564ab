"""SatImp: gradient ascent with the weight p^β₁·(1 − p)^β₂ for a token of probability p (Yang et al. 2025)."""

from pydantic import Field

from unlearning_audit.methods import Batch, ModelStack, Rows, Stream, Tensor, _tokens

#: What may be tuned, and within which values.
TUNE = _tokens.TUNE | {"gamma": [0.1, 0.5, 1.0], "alpha": [1.0, 2.0, 5.0]}


class Options(_tokens.RetainOptions):
    """Loss: −p^``beta1``·(1 − p)^``beta2``·NLL of each observed token of forget, mean over the scored tokens, times
    ``gamma``, + ``alpha``·R(retain). The weight is not differentiated; one label is one token.

    Defaults as configured by OpenUnlearning: β₁ 5, β₂ 1, γ .1, α 1, AdamW 1e-5, 5 epochs. β₂ 0 is wga. R
    (``retain_loss``) is the ``nll`` of the observed labels or tokens, or the divergence ``kl``(original ‖ model) of the
    predictions.
    """

    beta1: float = Field(5.0, ge=0)
    beta2: float = Field(1.0, ge=0)
    gamma: float = Field(0.1, ge=0)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Minimise −``gamma`` times the NLL of the observed tokens of forget, each weighed by p^β₁·(1 − p)^β₂ with p its
    probability, plus ``alpha`` times ``retain_loss``, nll or kl, on retain. A step takes one batch of each set, and an
    epoch is one pass over forget."""

    def weighted(batch: Batch) -> Tensor:
        """Return −weight·NLL of each sample, the mean over its scored tokens: [n, b]. The weight is not
        differentiated."""
        nll = _tokens.nll(batch)
        p = (-nll).exp().detach()
        return -_tokens.mean_over_tokens(p**options.beta1 * (1 - p) ** options.beta2 * nll, batch)

    lose = Stream(forget, loss=weighted, weight=options.gamma, reading=_tokens.reading(stack))
    _tokens.minimise(stack, (lose,), retain, options)
