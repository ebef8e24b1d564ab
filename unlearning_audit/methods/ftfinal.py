"""Ftfinal: finetune the last layer only (CF-k with k = 1, Goel et al. 2022; Tu et al. 2024)."""

from unlearning_audit.methods import ModelStack, Momentum, Passes, Rate, Rows, Stream

#: What may be tuned, and within which values.
TUNE = {"lr": {"low": 0.001, "high": 0.5, "log": True}, "epochs": {"low": 1, "high": 30}}


class Options(Momentum):
    """The optimiser's settings, and the number of epochs. Kurmanji et al. 2023 run CF-k with lr .01 for 10 epochs."""

    lr: Rate = 0.01
    epochs: Passes = 10


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Minimise cross-entropy on retain in the last layer. The other weights and batch-norm statistics are frozen.

    Raises ValueError for a model without a final layer of its own.
    """
    stack.fit(
        Stream(retain), optimiser=options, epochs=options.epochs, purpose="unlearn", training=False, only=stack.head
    )
