"""Read more of one batch of models than their logits: gradients of samples, or single tokens."""

from unlearning_audit.artifacts.arrays import Data, Membership
from unlearning_audit.artifacts.files import FailedError, NoAnswerError
from unlearning_audit.artifacts.readings import Readings
from unlearning_audit.workflow.open_bank import open_bank, read_signal

from job import script


@script
def readings(data: str, splits: list[str], models: list[str], readings: str, settings: dict, place: dict) -> dict:
    """One ``signal`` of all models of a batch, shadow models included, of the ``rows`` that the settings name.

    Where there are no models, the reason is written in place of the readings.
    """
    samples, membership = Data.read(data), Membership.read(splits[0])
    try:
        bank = open_bank(samples, membership, settings, place)
        bank.load(models[0])
    except NoAnswerError as error:
        part = error.part if isinstance(error, FailedError) else "method"
        Readings.write_failure(readings, part, str(error))
        return {"failed": str(error)}
    read_signal(bank, membership, settings["signal"], settings["rows"]).write(readings)
    return {"models": len(bank), "device": bank.device}
