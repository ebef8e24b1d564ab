"""None: the original model, handed on unchanged; the control that every metric must find not unlearned."""

from unlearning.bank import Bank
from unlearning.settings import Settings
from unlearning.streams import Rows


class Options(Settings):
    """Nothing to choose."""


def unlearn(bank: Bank, forget: Rows, retain: Rows, options: Options) -> None:
    """Do nothing."""
