"""SimNPO: NPO with a constant in place of the original model's loss, without a second model (Fan et al. 2024)."""

from pydantic import Field

from unlearning_audit.methods import Batch, ModelStack, Passes, Rows, Stream, Tensor, _tokens, cross_entropy, nn

#: What may be tuned, and within which values.
TUNE = _tokens.TUNE | {"beta": [2.5, 3.5, 4.5], "gamma": [0.125, 0.25, 1.0]}


class Options(_tokens.RetainOptions):
    """Loss: −``gamma``·(2/``beta``)·log σ(``beta``·(NLL − ``delta``)) on forget + ``alpha``·R(retain).

    NLL is a sample's cross-entropy; for a language model, the mean over tokens. Fan et al. on TOFU: β 4.5, δ 0, γ .125,
    α 1, AdamW 1e-5, 10 epochs. A sample's gradient is weighed by σ(−β·(NLL − δ)). At a loss of 3 and the published β
    this is 1e-6. For models with such losses, set β near 1/NLL of the original, or δ to that NLL. R (``retain_loss``)
    is the ``nll`` of the observed labels or tokens, or the divergence ``kl``(original ‖ model) of the predictions.
    """

    epochs: Passes = 10
    beta: float = Field(4.5, gt=0)
    delta: float = 0.0
    gamma: float = Field(0.125, ge=0)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Train on forget with ``gamma`` times the preference loss −(2/β)·log σ(β·(NLL − δ)), which raises each sample's
    NLL above δ, plus ``alpha`` times ``retain_loss``, nll or kl, on retain. A step takes one batch of each set, and an
    epoch is one pass over forget."""

    def preference(batch: Batch) -> Tensor:
        """Return the preference loss −(2/β)·log σ(β·(NLL − δ)) of each sample, [n, b]."""
        above = cross_entropy(batch.logits, batch.labels) - options.delta
        return -2 / options.beta * nn.functional.logsigmoid(options.beta * above)

    lose = Stream(forget, loss=preference, weight=options.gamma)
    _tokens.minimise(stack, (lose,), retain, options)
