"""Train one batch of models, and dump their logits while they are in memory."""

from job import script
from unlearning.artifacts.arrays import Data, Membership
from unlearning.bank.streams import Rows
from unlearning.workflow.open_bank import dump, open_bank


@script
def train(data: str, splits: list[str], models: str, logits: str, settings: dict, place: dict) -> dict:
    """Every original sees its own training rows, by the study's recipe; models of one seed are one original."""
    samples, membership = Data.read(data), Membership.read(splits[0])
    first, copies = membership.originals()
    chosen = membership[first]
    bank = open_bank(samples, chosen, settings, place)
    bank.train(Rows.where(chosen.train), record=chosen.forget if bank.recipe.record_updates else None)
    return dump(bank, samples, models, logits, chosen.forget, settings["gradients"], copies)
