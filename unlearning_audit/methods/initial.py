"""Initial: the weights before any training, as a reference without learned information."""

from unlearning_audit.methods import ModelStack, Rows, Settings


class Options(Settings):
    """No options."""


def unlearn(stack: ModelStack, forget: Rows, retain: Rows, options: Options) -> None:
    """Restore the weights that the models had before any training (figure 2 of Becker & Liebig 2022)."""
    stack.reset(purpose=None)
