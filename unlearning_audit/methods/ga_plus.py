"""GA+: gradient ascent on forget, then repair on retain (Naderloui et al. 2025)."""

from pydantic import Field

from unlearning_audit.methods import ModelStack, Optimiser, Passes, Rate, Rows, Stream

#: What may be tuned, and within which values.
TUNE = {
    "lr": {"low": 1e-4, "high": 0.1, "log": True},
    "epochs": {"low": 1, "high": 20},
    "batch_size": [16, 64, 128],
    "refine_lr": {"low": 1e-4, "high": 0.1, "log": True},
    "refine_epochs": {"low": 0, "high": 10},
}


class Options(Optimiser):
    """``epochs`` of ascent, then ``refine_epochs`` of descent with ``refine_lr`` and ``refine_batch_size``.

    The refinement has its own optimiser and schedule. In the published code it continues the ascent's cosine beyond its
    end, so that its first epoch has learning rate 0. That code uses lr .001, momentum .9, weight decay 5e-4, batches of
    50 and 128, 10 and 4 epochs.
    """

    lr: Rate = 0.02
    epochs: Passes = 5
    refine_lr: Rate = 0.01
    refine_epochs: Passes = 4
    refine_batch_size: int = Field(64, ge=1)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Maximise cross-entropy on forget for ``epochs``, then minimise it on retain for ``refine_epochs``, with learning
    rate ``refine_lr`` and batches of ``refine_batch_size``."""
    stack.fit(Stream(forget, weight=-1.0), optimiser=options, epochs=options.epochs, purpose="unlearn/ascent")
    refine = options.model_copy(update={"lr": options.refine_lr, "batch_size": options.refine_batch_size})
    stack.fit(Stream(retain), optimiser=refine, epochs=options.refine_epochs, purpose="unlearn")
