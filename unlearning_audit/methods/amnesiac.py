"""Amnesiac: subtract every training step whose batch held a forget sample (Graves et al. 2021)."""

from unlearning_audit.methods import ModelStack, Momentum, Passes, Rate, Rows, Stream

#: What training must record: the summed updates of the steps whose batch held a forget sample.
NEEDS = "record_updates"

#: What may be tuned, and within which values.
TUNE = {"repair_epochs": [0, 1, 2, 5, 10], "lr": {"low": 0.001, "high": 0.2, "log": True}}


class Options(Momentum):
    """``repair_epochs`` of training on retain follow: 0 in Becker & Liebig 2022, 10 in Graves et al. (Adam .001)."""

    lr: Rate = 0.01
    repair_epochs: Passes = 0


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Subtract from the weights the updates of those training steps whose batch had a forget sample, then train on
    retain for ``repair_epochs``. Raises ValueError if training did not keep these updates."""
    updates = stack.updates
    if updates is None:
        raise ValueError(
            "amnesiac needs the updates of the training steps that touched the forget set, but these were not kept "
            "in training; set recipe.record_updates to true and train again"
        )
    stack.edit(lambda name, value: value - updates[name])
    stack.fit(Stream(retain), optimiser=options, epochs=options.repair_epochs, purpose="unlearn")
