"""Retrfinal: reinitialise the last layer and train only it (EU-k with k = 1, Goel et al. 2022; Tu et al. 2024)."""

from unlearning_audit.methods import ModelStack, Momentum, Passes, Rate, Rows, Stream

#: What may be tuned, and within which values.
TUNE = {"lr": {"low": 0.001, "high": 0.5, "log": True}, "epochs": {"low": 1, "high": 40}}


class Options(Momentum):
    """The optimiser's settings, and the number of epochs for the new layer.

    Goel et al. train EU-k by the schedule of the original training; set the recipe's schedule to do the same. If a
    model's last layer comes from ``weights`` or a ``base``, its training starts from that layer, the same for all
    models.
    """

    lr: Rate = 0.05
    epochs: Passes = 20


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Train a new last layer on retain. The other weights and batch-norm statistics are frozen. Raises ValueError
    for a model without a final layer of its own."""
    stack.reset_head("retrfinal")
    stack.fit(
        Stream(retain), optimiser=options, epochs=options.epochs, purpose="unlearn", training=False, only=stack.head
    )
