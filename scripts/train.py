"""Train one batch of models, and dump their logits while they are in memory."""

from pathlib import Path

from job import script

from unlearning_audit.artifacts.arrays import Data, Membership
from unlearning_audit.bank.streams import Rows
from unlearning_audit.workflow.attempt import attempt, of_model
from unlearning_audit.workflow.open_bank import dump, open_bank


@script
def train(
    data: str, splits: list[str], models: str, logits: str, settings: dict, place: dict, base: list[str] = ()
) -> dict:
    """Every original sees its own training rows, by the study's recipe; models of one seed are one original.

    A model that fails has neither weights nor logits, and the reason is written in their place.
    """
    samples, membership = Data.read(data), Membership.read(splits[0])
    first, copies = membership.originals()
    batch, about = membership[first], membership.queries.any(axis=0)

    def make() -> dict:
        bank = open_bank(samples, batch, settings, place, base)
        with of_model(settings, place):
            bank.train(Rows.where(batch.train), record=batch.forget if bank.recipe.record_updates else None)
            return dump(bank, samples, models, logits, copies, about)

    models, logits = (str(Path(path).absolute()) for path in (models, logits))  # a model may change the folder
    return attempt(make, models, logits, "model", place["file"], **place.get("terms", {}))
