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
from unlearning_audit.workflow.open_bank import open_targets


@script
def relearn(data: str, splits: list[str], unlearned: list[str], relearned: str, settings: dict, place: dict) -> dict:
    """The defender's models of one batch; the half that a model is taught depends on its seed alone, so that all
    methods are asked the same."""
    samples, membership = Data.read(data), Membership.read(splits[0])
    relearned = str(Path(relearned).absolute())  # a model may change the folder

    def ask() -> dict:
        member, bank = open_targets(samples, membership, unlearned[0], settings, place)
        bank.seeds = member.unlearning_seeds()
        rows = np.flatnonzero((member.forget | member.heldout).any(0) | (samples.part == 1))
        half = Rows.where(member.forget).sample(int(member.forget[0].sum()) // 2, bank.seeds, "relearn")
        bits = settings.get("bits", [])
        with of_model(settings, place):
            steps, phi, right = relearning.curves(bank, half, rows, settings["steps"])
            coarse = (np.array(bits, np.int64), *rounding.answers(bank, rows, bits)) if bits else ()
        taught = np.zeros(member.train.shape, bool)
        np.put_along_axis(taught, half.index, True, axis=1)
        Relearned(steps, phi, right, taught[:, rows], rows, *coarse).write(relearned)
        return {"models": len(member.seed), "taught": len(half), "device": bank.device}

    return answered(ask, place, relearned)
