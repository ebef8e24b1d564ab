"""Initial: the weights before any training; what there is to find where nothing was ever learned."""

from unlearning.bank.bank import Bank
from unlearning.bank.streams import Rows
from unlearning.plugins.settings import Settings


class Options(Settings):
    """Nothing to choose."""


def unlearn(bank: Bank, forget: Rows, retain: Rows, options: Options) -> None:
    """Return to the initial weights of the original (figure 2 of Becker & Liebig 2022)."""
    bank.reset(None)
