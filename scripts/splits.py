"""Draw which model sees which sample, and which it is asked to forget."""

from job import script
from unlearning import plugins
from unlearning.artifacts import Data, Membership
from unlearning.selection import Selection


@script
def splits(data: str, membership: str, settings: dict, place: dict, selection: list[str] | None = None) -> dict:
    """Draw the blocks of one batch and stack their models; ``selection`` is for protocols that choose by it."""
    protocol = plugins.load("protocols", settings["protocol"], place["file"])
    options = protocol.Options(**settings["options"])
    samples = Data.read(data)
    chosen = (Selection.read(selection[0], len(samples.y)),) if selection else ()
    drawn = Membership.concatenate(
        [
            protocol.draw(block, settings["population"], samples, options, settings["seed"], *chosen)
            for block in settings["blocks"]
        ]
    )
    drawn.write(membership)
    return {"models": len(drawn.seed), "forget": int(drawn.forget[0].sum()), "train": int(drawn.train[0].sum())}
