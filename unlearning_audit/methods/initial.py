"""Initial: the weights before any training, as a reference without learned information."""

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.training.lazy import Bank
from unlearning_audit.training.streams import Rows


class Options(Settings):
    """No options."""


def unlearn(bank: Bank, forget: Rows, retain: Rows, options: Options) -> None:
    """Restore the original's initial weights (figure 2 of Becker & Liebig 2022)."""
    bank.reset(None)
