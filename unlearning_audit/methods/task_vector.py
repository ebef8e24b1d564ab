"""Task arithmetic: subtract from the weights what further training on forget adds to them (Ilharco et al. 2023)."""

from pydantic import Field

from unlearning_audit.methods import ModelStack, Optimiser, Passes, Rate, Rows, Stream

#: What may be tuned, and within which values.
TUNE = {
    "lr": {"low": 0.001, "high": 0.05, "log": True},
    "epochs": {"low": 1, "high": 10},
    "scale": {"low": 0.1, "high": 3.0},
}


class Options(Optimiser):
    """θ ← θ − ``scale``·(θ_overfit − θ), where θ_overfit is the original after ``epochs`` more passes over forget
    alone.

    Ilharco et al. choose the scale on held-out data, from 0 to 1 in steps of .05. MUSE (Shi et al. 2024) doubles the
    epochs until the model fits the forget set.
    """

    lr: Rate = 0.005
    epochs: Passes = 5
    scale: float = Field(1.0, ge=0)


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Train a copy of the models on forget, and subtract from the weights the change that this makes, times ``scale``.
    Retain is not read."""
    overfit = stack.copy()
    overfit.fit(Stream(forget), optimiser=options, epochs=options.epochs, purpose="unlearn")
    stack.edit(lambda name, value: value - options.scale * (overfit.parameters[name] - value))
