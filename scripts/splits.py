"""Draw which model sees which sample, and which it is asked to forget."""

from contextlib import nullcontext

from unlearning_audit.artifacts.arrays import Data, Membership
from unlearning_audit.artifacts.files import ArtifactError
from unlearning_audit.artifacts.selection import Selection
from unlearning_audit.data import copies_across, duplicates
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError, guard, ours, said, shown
from unlearning_audit.plugins.isolation import apart

from job import script


def made(data: str, membership: str, settings: dict, place: dict, selection: list[str] | None) -> dict:
    """Draw, check and write; a user's own protocol does it in a process of its own."""
    protocol = registry.load("protocols", settings["protocol"], place["file"])
    options = protocol.Options(**settings["options"])
    samples = Data.read(data)
    chosen = (Selection.read(selection[0], len(samples.y)),) if selection else ()

    def draw(block: int) -> Membership:
        found = protocol.draw(block, settings["population"], samples, options, settings["seed"], *chosen)
        if not isinstance(found, Membership):
            wanted = "draw must return a Membership of unlearning_audit.artifacts.arrays"
            raise PluginError(f"{shown(protocol.__file__)}: {wanted}, it returned {said(found)}")
        return found

    with nullcontext() if ours(protocol.__file__) else guard(protocol.__file__, but=ArtifactError):
        drawn = Membership.concatenate([draw(block) for block in settings["blocks"]])
    if "request" in settings:
        drawn = drawn.until(settings["request"])
    drawn.write(membership)
    groups = duplicates(samples.x)
    copies = {
        "forgotten": int(drawn.forget.sum()),
        "forgotten_kept": copies_across(groups, drawn.forget, drawn.retain),
        "forgotten_heldout": copies_across(groups, drawn.forget, drawn.heldout),
        "heldout": int(drawn.heldout.sum()),
        "heldout_trained": copies_across(groups, drawn.heldout, drawn.train),
    }
    return {
        "models": len(drawn.seed), "forget": int(drawn.forget[0].sum()), "train": int(drawn.train[0].sum()),
        "copies": copies,
    }  # fmt: skip


@script
def splits(data: str, membership: str, settings: dict, place: dict, selection: list[str] | None = None) -> dict:
    """Draw the blocks of one batch and stack their models; ``selection`` is for protocols that choose by it. In a
    sequence, as they are after the ``request`` of that number.

    The spec counts the exact copies on both sides of what is to be told apart, summed over models: who has a copy that
    is kept cannot be forgotten.
    """
    return apart(
        lambda: made(data, membership, settings, place, selection),
        place["file"],
        place["where"],
        **place.get("terms", {}),
    )
