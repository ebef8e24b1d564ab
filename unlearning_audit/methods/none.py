"""None: the original model, unchanged; the control that every metric must tell from retraining."""

from unlearning_audit.bank.lazy import Bank
from unlearning_audit.bank.streams import Rows
from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    """No options."""


def unlearn(bank: Bank, forget: Rows, retain: Rows, options: Options) -> None:
    """Do nothing."""
