"""Answers of models while they relearn half of what they forgot, and with rounded weights: a record that metrics
read."""

from typing import Any

import numpy as np

from unlearning_audit.evaluation.signal_files import Relearned
from unlearning_audit.signals import Data, Membership, ModelStack

RECORD, ROLE = Relearned, "relearned"


def asked(options: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the settings that serve all metrics with these ``options``: the largest of their numbers of ``steps``, or
    0 if none has one, and all of their ``bits``, each once, largest first. Without any, there is no entry "bits"."""
    lists_of_bits = [of_metric["bits"] for of_metric in options if isinstance(of_metric.get("bits"), list)]
    bits = sorted(set().union(*lists_of_bits), reverse=True)
    steps = max((of_metric["steps"] for of_metric in options if "steps" in of_metric), default=0)
    return {"steps": steps, "bits": bits} if bits else {"steps": steps}


def about(member: Membership, data: Data, settings: dict[str, Any]) -> np.ndarray:
    """Return the samples to query, int64 [rows]: those that some model forgets or holds out, and the test part."""
    return np.flatnonzero((member.forget | member.heldout).any(0) | (data.part == 1))  # part 1 is the test part


def read(stack: ModelStack, member: Membership, rows: np.ndarray, settings: dict[str, Any]) -> Relearned:
    """Return the predictions of the models in ``stack`` for ``rows`` int64 [rows] after 0, 1, 2, 4 … steps, in which
    copies of these models relearn half of what they forgot, rounded down.

    The half is drawn by the model's seed alone, so that it is the same for every method. For this, the stack's seeds
    are replaced by those of unlearning.

    Parameters
    ----------
    member
        The memberships of the models.
    settings
        ``steps``, how many are taken at most; ``bits``, if given: the numbers of bits to which weights are rounded for
        further predictions of the models.
    """
    from unlearning_audit.training import relearning, rounding
    from unlearning_audit.training.streams import Rows

    stack.seeds = member.unlearning_seeds()
    forgotten = Rows.where(member.forget)
    half = forgotten.sample(len(forgotten) // 2, stack.seeds, "relearn")
    taught = np.zeros(member.train.shape, bool)  # the samples of the half
    np.put_along_axis(taught, half.index, True, axis=1)
    curves = relearning.curves(stack, half, rows, settings["steps"])
    bits = settings.get("bits", [])
    rounded = (np.array(bits), *rounding.rounded_predictions(stack, rows, bits)) if bits else ()
    return Relearned(*curves, taught[:, rows], rows, *rounded)


def without_models(rows: np.ndarray, settings: dict[str, Any]) -> Relearned:
    """Return the record of a batch that has only shadow models: no answers, to the samples ``rows`` int64 [rows], after
    as many steps and with as many bits as the ``settings`` say (`read`)."""
    from unlearning_audit.training import relearning

    return Relearned.empty(relearning.read_steps(settings["steps"]), rows, np.array(settings.get("bits", []), np.int64))
