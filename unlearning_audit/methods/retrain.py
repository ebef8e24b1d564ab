"""Retrain: train from scratch on the retain set with the same recipe; the reference that methods approximate."""

from pydantic import Field

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.training.lazy import Bank
from unlearning_audit.training.streams import Rows


class Options(Settings):
    """``draw`` tells independent retrained populations apart (a control uses another number); ``same_start`` takes the
    original's initial weights and seed instead of fresh ones (Becker & Liebig 2022). Copies of one original would be
    one model by its seed, and keep their own; so does each request of a sequence after the first."""

    draw: int = Field(0, ge=0)
    same_start: bool = False


def unlearn(bank: Bank, forget: Rows, retain: Rows, options: Options) -> None:
    """Reinitialise, and train on the retain set only."""
    bank.reset(None if options.same_start else f"retrain/{options.draw}")
    bank.train(retain)
