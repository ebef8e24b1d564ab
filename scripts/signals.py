"""Read signals other than logits from one batch of models."""

from pathlib import Path
from typing import Any

import numpy as np
from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.evaluation.signal_files import BySample
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import guard
from unlearning_audit.store.files import Arrays, ArtifactError
from unlearning_audit.workflow.attempt import attempt, guard_model
from unlearning_audit.workflow.measured import measured
from unlearning_audit.workflow.open_stack import ModelBatch, device_facts


def default_rows(member: Membership) -> np.ndarray:
    """Return the samples of which a signal without a function ``about`` is read, int64 [rows]: those that some model
    forgets or that are held out from it."""
    return np.flatnonzero((member.forget | member.heldout).any(0))


def as_stored(signal: str, result: Arrays | np.ndarray, rows: np.ndarray, models: int) -> Arrays:
    """Return what a signal's function ``read`` returned in the form in which it is stored.

    An object that holds arrays (`Arrays`) is stored as it is; one array [models, rows, …] becomes a `BySample`,
    together with its ``rows``.

    Parameters
    ----------
    models
        The number of models.

    Raises
    ------
    ValueError
        For an array of another shape.
    """
    if isinstance(result, Arrays):
        return result
    if np.shape(result)[:2] != (models, len(rows)):
        shape = f"({models}, {len(rows)}, …), one entry of each sample in each model"
        raise ValueError(f"signal {signal}: its values must be an array {shape}, not {np.shape(result)}")
    return BySample(signal, result, rows)


def signals(
    data: str, splits: list[str], models: list[str], signals: str, settings: dict[str, Any], place: dict[str, Any]
) -> dict[str, Any]:
    """Compute one signal of a batch of models, write it to the file ``signals``, and return facts for the job's spec.

    If training or unlearning failed, the reason is written in place of the signal. A signal with a ``RECORD`` is
    computed for the defender's models only, and not for shadow models. If all models of the batch are shadow models, an
    empty record is written.

    Parameters
    ----------
    data
        The file of samples.
    splits
        One file, the memberships of the batch.
    models
        One file, the weights of the batch's models.
    settings
        The ``signal``'s name, further settings of it, and the model.
    place
        The file and the time limit of the user's own model.
    """
    samples, membership = Data.read(data), Membership.read(splits[0])
    signals = str(Path(signals).absolute())  # a model may change the folder

    def compute() -> dict[str, Any]:
        """Read the signal from all models, write it, and return facts for the spec."""
        module = registry.load("signals", settings["signal"], place.get("signal_file"))
        # Attacks do not learn from records, so that a signal that is kept as a record is not read from shadow models.
        is_read = ~membership.shadow if hasattr(module, "RECORD") else np.ones(len(membership.seed), bool)
        opened = np.flatnonzero(is_read)
        member = membership[opened]
        # The samples to query: int64 [rows] for all models, or [models, rows] for each.
        rows = module.about(member, samples, settings) if hasattr(module, "about") else default_rows(member)
        if not len(opened):
            module.without_models(rows, settings).write(signals)
            return {"models": 0}
        records = []  # one for each portion of models
        for portion, chosen, stack in ModelBatch(samples, membership, settings, place, ()).stacks(models[0], opened):
            with guard(module.__file__, but=ArtifactError), guard_model(settings, place):
                asked = rows if rows.ndim == 1 else rows[portion]
                if hasattr(module, "measure"):
                    result = measured(module, stack, asked)
                else:
                    result = module.read(stack, chosen, asked, settings)  # ``chosen``: the portion's memberships
                records.append(as_stored(settings["signal"], result, asked, len(stack)))
        type(records[0]).concatenate(records).write(signals)
        return {"models": len(opened), **device_facts(stack.device)}

    # None: this job writes no file of models, in which a failure would be noted. An error that is caught is stated as
    # the model's; models that an earlier job could not make, as the method's, unless their file says otherwise.
    return attempt(compute, None, signals, "model", place.get("file"), before="method", **place.get("terms", {}))
