"""Train one batch of models, and write their logits while the models are in memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.store.files import Json
from unlearning_audit.training import checkpoints
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows
from unlearning_audit.workflow.attempt import attempt, guard_model
from unlearning_audit.workflow.open_stack import ModelBatch, write_outputs


def train(
    data: str, splits: list[str], models: str, logits: str, settings: Json, place: Json, base: Sequence[str] = ()
) -> Json:
    """Train each original model on its own rows by the study's recipe, and write weights and logits; return facts for
    the spec.

    Models with the same seed are one original, which is trained once, and the file of weights has it several times. If
    training fails, the reason is written in place of the weights and the logits. Checkpoints beside ``models`` let a
    stopped job go on; they are removed at the end.

    Parameters
    ----------
    splits
        One file, the memberships.
    place
        The file and the time limit of the user's own model.
    base
        At most one file, the weights that all models start from.
    """
    samples, membership = Data.read(data), Membership.read(splits[0])
    originals, copies = membership.originals()  # the numbers of the originals; of each model, which original it is
    batch = ModelBatch(samples, membership[originals], settings, place, base)
    queried = np.any(membership.queries, axis=0)  # the samples that scoring reads for every model

    def train_stacks() -> Iterator[tuple[np.ndarray, Membership, ModelStack]]:
        """Train the originals, as many at once as memory holds, and yield their numbers, memberships and models."""
        for portion, member, stack in batch.stacks():
            stack.checkpoints = checkpoints.Checkpoints(Path(models).parent, portion)
            with guard_model(settings, place):
                stack.train(Rows.where(member.train), record=member.forget if stack.recipe.record_updates else None)
            yield portion, member, stack

    def make() -> Json:
        """Train, write the weights and logits of all models, and return facts for the spec."""
        return write_outputs(
            train_stacks(), samples, models, logits, copies, first=queried, guarded=lambda: guard_model(settings, place)
        )

    models, logits = (str(Path(path).absolute()) for path in (models, logits))  # a model may change the folder
    # "model": an error of the user's own model is caught and stated as the model's.
    facts = attempt(make, models, logits, "model", place["file"], **place.get("terms", {}))
    checkpoints.remove(Path(models).parent)
    return facts
