"""Draw which model sees which sample, and which it is asked to forget."""

from job import script
from unlearning.artifacts.arrays import Data, Membership
from unlearning.artifacts.selection import Selection
from unlearning.data import copies_across, duplicates
from unlearning.plugins import registry


@script
def splits(data: str, membership: str, settings: dict, place: dict, selection: list[str] | None = None) -> dict:
    """Draw the blocks of one batch and stack their models; ``selection`` is for protocols that choose by it. In a
    sequence, as they are after the ``request`` of that number.

    The spec counts the exact copies on both sides of what is to be told apart, summed over models: who has a copy that
    is kept cannot be forgotten.
    """
    protocol = registry.load("protocols", settings["protocol"], place["file"])
    options = protocol.Options(**settings["options"])
    samples = Data.read(data)
    chosen = (Selection.read(selection[0], len(samples.y)),) if selection else ()
    drawn = Membership.concatenate(
        [
            protocol.draw(block, settings["population"], samples, options, settings["seed"], *chosen)
            for block in settings["blocks"]
        ]
    )
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
