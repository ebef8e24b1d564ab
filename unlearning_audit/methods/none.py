"""None: the original model, unchanged; the control that every metric must distinguish from retraining."""

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.training.lazy import ModelStack
from unlearning_audit.training.streams import Rows


class Options(Settings):
    """No options."""


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Leave the models unchanged."""
