"""Random labels: train on forget with random labels, and on retain with the observed labels (Graves et al. 2021)."""

from typing import Literal

from unlearning_audit.methods import ModelStack, Momentum, Passes, Rate, Rows, Stream
from unlearning_audit.methods._labels import RandomLabels

#: What may be tuned, and within which values.
TUNE = {"lr": {"low": 0.001, "high": 0.1, "log": True}, "epochs": {"low": 1, "high": 15}}


class Options(Momentum):
    """Each epoch is a pass over forget with random labels, then one over retain.

    ``relabel``: draw from ``any`` class, the true one included (Fan et al. 2024), or from any ``other`` (Graves et
    al.). ``redraw``: draw new labels in every epoch, or keep the first ones.
    """

    lr: Rate = 0.01
    epochs: Passes = 5
    relabel: Literal["any", "other"] = "any"
    redraw: bool = True


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Train with random labels on forget and observed labels on retain, in alternate passes. The labels are drawn from
    ``any`` class or any ``other`` than the true one, as ``relabel`` says; with ``redraw``, anew in every epoch."""
    wrong = Stream(forget, loss=RandomLabels(stack, options.relabel, options.redraw))
    stack.fit(wrong, Stream(retain), optimiser=options, epochs=options.epochs, purpose="unlearn")
