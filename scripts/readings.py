"""Read more of one batch of models than their logits: gradients of samples, single tokens, or the last hidden layer."""

from pathlib import Path

from job import script

import numpy as np
from unlearning_audit.artifacts import features
from unlearning_audit.artifacts.arrays import Data, Membership
from unlearning_audit.workflow.attempt import answered, of_model
from unlearning_audit.workflow.open_bank import device_facts, opened, read_signal, targets


@script
def readings(data: str, splits: list[str], models: list[str], readings: str, settings: dict, place: dict) -> dict:
    """One ``signal`` of all models of a batch, shadow models included, of the ``rows`` that the settings name; the last
    hidden layer of the defender's models alone.

    Where there are no models, the reason is written in place of the readings.
    """
    samples, membership = Data.read(data), Membership.read(splits[0])
    readings = str(Path(readings).absolute())  # a model may change the folder

    def ask() -> dict:
        numbers, hidden = np.arange(len(membership.seed)), settings["signal"] == "features"
        about = np.flatnonzero((membership.forget | membership.heldout).any(0))
        if hidden:
            numbers = targets(membership)
            about = features.sample_index(membership[numbers])
            if not len(numbers):
                features.Features(np.zeros((0, 0, 0), np.float32), about).write(readings)
                return {"models": 0}
        values = []
        for part, member, bank in opened(samples, membership, settings, place, models=models[0], numbers=numbers):
            rows = about[part] if hidden else about
            with of_model(settings, place):
                values.append(read_signal(bank, member, settings["signal"], settings["rows"], rows))
        type(values[0]).concatenate(values).write(readings)
        return {"models": len(numbers), **device_facts(bank.device)}

    return answered(ask, place, readings)
