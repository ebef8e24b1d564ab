"""Read more of one batch of models than their logits: gradients of samples, or single tokens."""

from pathlib import Path

from job import script

import numpy as np
from unlearning_audit.artifacts.arrays import Data, Membership
from unlearning_audit.artifacts.readings import Readings
from unlearning_audit.workflow.attempt import answered, of_model
from unlearning_audit.workflow.open_bank import device_facts, opened, read_signal


@script
def readings(data: str, splits: list[str], models: list[str], readings: str, settings: dict, place: dict) -> dict:
    """One ``signal`` of all models of a batch, shadow models included, of the ``rows`` that the settings name.

    Where there are no models, the reason is written in place of the readings.
    """
    samples, membership = Data.read(data), Membership.read(splits[0])
    readings = str(Path(readings).absolute())  # a model may change the folder

    def ask() -> dict:
        values, about = [], np.flatnonzero((membership.forget | membership.heldout).any(0))
        for _, member, bank in opened(samples, membership, settings, place, models=models[0]):
            with of_model(settings, place):
                values.append(read_signal(bank, member, settings["signal"], settings["rows"], about))
        Readings.concatenate(values).write(readings)
        return {"models": len(membership.seed), **device_facts(bank.device)}

    return answered(ask, place, readings)
