"""NegGrad: gradient ascent on the loss of the forget set (Golatkar et al. 2020)."""

from unlearning_audit.methods import ModelStack, Optimiser, Passes, Rate, Rows, Stream

#: What may be tuned, and within which values.
TUNE = {"lr": {"low": 0.0001, "high": 0.05, "log": True}, "epochs": {"low": 1, "high": 10}}


class Options(Optimiser):
    """The optimiser's settings, and passes over forget. Jia et al. 2023: lr 1e-4, momentum .9, 5 epochs."""

    lr: Rate = 0.005
    epochs: Passes = 5


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Maximise cross-entropy on forget."""
    stack.fit(Stream(forget, weight=-1.0), optimiser=options, epochs=options.epochs, purpose="unlearn")
