"""Finetune: continue training on the retain set only (Warnecke et al. 2023)."""

from unlearning_audit.methods import ModelStack, Momentum, Passes, Rate, Rows, Stream

#: What may be tuned, and within which values.
TUNE = {"lr": {"low": 0.001, "high": 0.2, "log": True}, "epochs": {"low": 1, "high": 20}}


class Options(Momentum):
    """The optimiser's settings, and the number of epochs. Jia et al. 2023: lr .01, 10 epochs."""

    lr: Rate = 0.01
    epochs: Passes = 5


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Minimise cross-entropy on retain."""
    stack.fit(Stream(retain), optimiser=options, epochs=options.epochs, purpose="unlearn")
