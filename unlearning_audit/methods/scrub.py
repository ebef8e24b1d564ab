"""SCRUB: maximise the distance to the teacher on forget, minimise it on retain (Kurmanji et al. 2023)."""

from typing import Literal

from pydantic import Field

from unlearning_audit.methods import Batch, Kind, ModelStack, Optimiser, Passes, Rate, Rows, Stream, Tensor, _tokens
from unlearning_audit.training.losses import distillation

#: What may be tuned, and within which values.
TUNE = {
    "lr": {"low": 1e-05, "high": 0.005, "log": True},
    "epochs": {"low": 1, "high": 10},
    "gamma": [0.9, 0.95, 0.99],
    "alpha": [0.001, 0.01, 0.1, 0.5],
    "msteps": {"low": 1, "high": 6},
    "batch_size": [16, 64, 128],
    "forget_batch_size": [16, 64, 128],
}


class Options(Optimiser):
    """Each of the first ``msteps`` epochs starts with a pass over forget that maximises T²·KL(teacher ‖ student). Every
    epoch has a pass over retain that minimises ``gamma``·CE + ``alpha``·T²·KL. The teacher is the original model.

    Defaults of Naderloui et al. 2025 (Adam 5e-4, weight decay 5e-4, γ .99, α .1, T 1, msteps 1 of 5 epochs, batches of
    64 and 16). Kurmanji et al.: SGD .9, T 4; on large problems α .001, msteps 2 of 3 epochs, batches of 128 and 32; on
    small ones γ 1, α .5, msteps 3 of 5 to 10 epochs, batches of 32 and 16. ``forget_order`` memorisation: in every
    epoch, batches hold samples of similar memorisation, the most memorised first (Naderloui et al., appendix C.1). It
    needs targets that were selected by memorisation. For a language model, CE and KL are means over the scored tokens.
    """

    optimiser: Kind = "adam"
    lr: Rate = 5e-4
    weight_decay: float = Field(5e-4, ge=0)
    epochs: Passes = 5
    gamma: float = Field(0.99, ge=0)
    alpha: float = Field(0.1, ge=0)
    T: float = Field(1.0, gt=0)
    msteps: Passes = 1
    batch_size: int = Field(64, ge=1)
    forget_batch_size: int = Field(16, ge=1)
    forget_order: Literal["random", "memorisation"] = "random"


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Alternate passes over forget that maximise the divergence from the original with passes over retain that minimise
    it together with the cross-entropy. Passes over forget end after ``msteps`` epochs, and those over retain go on.

    With ``forget_order`` memorisation, the most memorised samples come first. Raises ValueError if no selection has
    measured memorisation.
    """
    if options.forget_order == "memorisation":
        if stack.memorised is None:
            raise ValueError(
                "forget_order: memorisation needs targets chosen by memorisation: a target_set of vulnerable, "
                "protected or canary samples, or the option memorised of the protocol"
            )
        forget = forget.ranked(stack.memorised)
    teacher, reading = stack.frozen(), _tokens.reading(stack)

    def distance(batch: Batch) -> Tensor:
        """Return T²·KL(teacher ‖ student) of each sample, [n, b]. The teacher is the original."""
        return _tokens.mean_over_tokens(distillation(batch.logits, teacher(batch), options.T), batch)

    def hold(batch: Batch) -> Tensor:
        """Return γ·CE + α·T²·KL(teacher ‖ student) of each sample, [n, b]."""
        return options.gamma * _tokens.mean_over_tokens(_tokens.nll(batch), batch) + options.alpha * distance(batch)

    away = Stream(
        forget, loss=distance, weight=-1.0, batch_size=options.forget_batch_size, epochs=options.msteps, reading=reading
    )
    toward = Stream(retain, loss=hold, reading=reading)
    stack.fit(away, toward, optimiser=options, epochs=options.epochs, purpose="unlearn")
