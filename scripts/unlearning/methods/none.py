"""None: the original model, handed on unchanged; the control that every metric must find not unlearned."""

from unlearning.bank.bank import Bank
from unlearning.bank.streams import Rows
from unlearning.plugins.settings import Settings


class Options(Settings):
    """Nothing to choose."""


def unlearn(bank: Bank, forget: Rows, retain: Rows, options: Options) -> None:
    """Do nothing."""
