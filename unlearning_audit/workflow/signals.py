"""Read a signal beyond logits (`unlearning_audit.signals`) from one batch of models."""

from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.evaluation.signal_files import BySample
from unlearning_audit.plugins import registry
from unlearning_audit.store.files import Arrays
from unlearning_audit.workflow.attempt import attempt, of_model
from unlearning_audit.workflow.open_stack import device_facts, opened


def candidates(member: Membership) -> np.ndarray:
    """Return the samples that some model forgets or that are held out from it, int64 [rows]."""
    return np.flatnonzero((member.forget | member.heldout).any(0))


def record(signal: str, answer: Arrays | np.ndarray, rows: np.ndarray, models: int) -> Arrays:
    """Return the result of a signal's ``read`` in the form in which it is stored: arrays with their own type unchanged,
    an array [models, rows, …] with its ``rows`` as `BySample`.

    Raises ValueError for an array of another shape. ``models``: the number of models.
    """
    if isinstance(answer, Arrays):
        return answer
    if np.shape(answer)[:2] != (models, len(rows)):
        shape = f"({models}, {len(rows)}, …), one entry of each sample in each model"
        raise ValueError(f"signal {signal}: read must return an array {shape}, not {np.shape(answer)}")
    return BySample(signal, answer, rows)


def signals(
    data: str, splits: list[str], models: list[str], signals: str, settings: dict[str, Any], place: dict[str, Any]
) -> dict[str, Any]:
    """Compute one signal of a batch of models, write it to the file ``signals``, and return facts for the job's spec.

    ``data``: the file of samples. ``splits`` and ``models``: lists of one file each, the batch's memberships and
    weights. ``settings``: the ``signal``'s name, further settings of it, and the model. ``place``: the file and the
    time limit of the user's own model. If training or unlearning failed, the reason is written instead. A signal with a
    ``RECORD`` is computed for the defender's models only, and not for shadow models. If the batch then has no models,
    an empty record is written.
    """
    samples, membership = Data.read(data), Membership.read(splits[0])
    signals = str(Path(signals).absolute())  # a model may change the folder

    def ask() -> dict[str, Any]:
        """Read the signal from all models, write it, and return facts for the spec."""
        signal = settings["signal"]
        module = registry.load("signals", signal)
        # The models to ask: all of them, or all but shadow models if the signal is kept as a record, because attacks do
        # not learn from records.
        numbers = np.flatnonzero(~membership.shadow | (not hasattr(module, "RECORD")))
        member = membership[numbers]
        # The samples to query: int64 [rows] for all models, or [models, rows] for each.
        rows = module.about(member, samples, settings) if hasattr(module, "about") else candidates(member)
        if not len(numbers):
            module.nothing(rows, settings).write(signals)
            return {"models": 0}
        records = []  # of each portion of models
        for part, of_part, stack in opened(samples, membership, settings, place, models=models[0], numbers=numbers):
            with of_model(settings, place):
                asked = rows if rows.ndim == 1 else rows[part]
                records.append(record(signal, module.read(stack, of_part, asked, settings), asked, len(stack)))
        type(records[0]).concatenate(records).write(signals)
        return {"models": len(numbers), **device_facts(stack.device)}

    return attempt(ask, None, signals, "model", place.get("file"), before="method", **place.get("terms", {}))
