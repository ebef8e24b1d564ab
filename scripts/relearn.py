"""Teach models a half of what they forgot once more, and see how fast the other half comes back; ask them with their
weights rounded."""

from pathlib import Path

from job import script

import numpy as np
from unlearning_audit.artifacts.arrays import Data, Membership
from unlearning_audit.artifacts.relearned import Relearned
from unlearning_audit.bank import relearning, rounding
from unlearning_audit.bank.streams import Rows
from unlearning_audit.workflow.attempt import answered, of_model
from unlearning_audit.workflow.open_bank import device_facts, opened, targets


@script
def relearn(data: str, splits: list[str], models: list[str], relearned: str, settings: dict, place: dict) -> dict:
    """The defender's models of one batch; the half that a model is taught depends on its seed alone, so that all
    methods are asked the same."""
    samples, membership = Data.read(data), Membership.read(splits[0])
    relearned = str(Path(relearned).absolute())  # a model may change the folder

    def ask() -> dict:
        numbers = targets(membership)
        member = membership[numbers]
        rows = np.flatnonzero((member.forget | member.heldout).any(0) | (samples.part == 1))
        bits, curves, rounding_of = np.array(settings.get("bits", []), np.int64), [], []
        if not len(numbers):
            Relearned.empty(relearning.points(settings["steps"]), rows, bits).write(relearned)
            return {"models": len(member.seed), "taught": 0}
        half = Rows.where(member.forget).sample(int(member.forget[0].sum()) // 2, member.unlearning_seeds(), "relearn")
        for part, _, bank in opened(samples, membership, settings, place, models=models[0], numbers=numbers):
            bank.seeds = member[part].unlearning_seeds()
            with of_model(settings, place):
                curves.append(relearning.curves(bank, half[part.tolist()], rows, settings["steps"]))
                if len(bits):
                    rounding_of.append(rounding.answers(bank, rows, bits.tolist()))
        steps, (phi, right) = curves[0][0], (np.concatenate([curve[i] for curve in curves]) for i in (1, 2))
        coarse = (bits, *map(np.concatenate, zip(*rounding_of, strict=True))) if len(bits) else ()
        taught = np.zeros(member.train.shape, bool)
        np.put_along_axis(taught, half.index, True, axis=1)
        Relearned(steps, phi, right, taught[:, rows], rows, *coarse).write(relearned)
        return {"models": len(member.seed), "taught": len(half), **device_facts(bank.device)}

    return answered(ask, place, relearned)
