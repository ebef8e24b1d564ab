"""Draw which model is trained on which samples, and which of them it forgets."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from unlearning_audit.data import copies_across, duplicates
from unlearning_audit.evaluation.arrays import Data, Membership, Selection
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import guard, in_library
from unlearning_audit.plugins.isolation import isolated
from unlearning_audit.store.files import ArtifactError


def splits(
    data: str, membership: str, settings: dict[str, Any], place: dict[str, Any], selection: list[str] | None = None
) -> dict[str, Any]:
    """Draw the memberships of one batch of models and write them to the file ``membership``. A user's own protocol runs
    in a separate process.

    In a sequence of requests, the memberships after request number ``settings["request"]`` are drawn.

    Returns counts for the spec: the models, the forgotten samples and the training samples of the first model, and,
    summed over models, the samples that have an exact copy in another role: a sample whose copy is retained cannot be
    forgotten.

    Parameters
    ----------
    data
        The file of samples.
    settings
        The protocol, its options, the seed, the population, the numbers of the blocks to draw (the models of one block
        are drawn together) and, in a sequence, the "request".
    place
        "file": the file of the user's own protocol, or None.
    selection
        At most one file, the selected samples, among which a protocol chooses target samples.
    """

    def draw() -> dict[str, Any]:
        """Draw the memberships, write them, and return the counts."""
        protocol = registry.load("protocols", settings["protocol"], place["file"])
        options = protocol.Options(**settings["options"])
        samples = Data.read(data)
        # A tuple of one or of none, which is the last argument of ``draw``.
        selected = (Selection.read(selection[0], samples=len(samples.y)),) if selection else ()

        # An error in a protocol of the library is a defect. One in a user's file is raised as PluginError, which names
        # the file, unless it is an error of data that the protocol reads.
        guarded = nullcontext() if in_library(protocol.__file__) else guard(protocol.__file__, but=ArtifactError)
        with guarded:
            arguments = (settings["population"], samples, options, settings["seed"], *selected)
            memberships = Membership.concatenate([protocol.draw(block, *arguments) for block in settings["blocks"]])
        if selected:
            memberships = replace(memberships, memorised=selected[0].ratio)
        if "request" in settings:
            memberships = memberships.until(settings["request"])
        memberships.write(membership)
        groups = duplicates(samples.x)
        copies = {
            "forgotten": int(memberships.forget.sum()),
            "forgotten_kept": copies_across(groups, memberships.forget, memberships.retain),
            "forgotten_heldout": copies_across(groups, memberships.forget, memberships.heldout),
            "heldout": int(memberships.heldout.sum()),
            "heldout_trained": copies_across(groups, memberships.heldout, memberships.train),
        }
        return {
            "models": len(memberships.seed), "forget": int(memberships.forget[0].sum()),
            "train": int(memberships.train[0].sum()), "copies": copies,
        }  # fmt: skip

    return isolated(draw, place["file"], where=place["where"], **place.get("terms", {}))
