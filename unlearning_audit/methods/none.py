"""None: the original model, unchanged; the control that every metric must distinguish from retraining."""

from unlearning_audit.methods import ModelStack, Rows, Settings


class Options(Settings):
    """No options."""


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Leave the models unchanged."""
