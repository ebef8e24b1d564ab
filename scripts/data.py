"""Load a data set and write it in the one layout that every later stage reads."""

from pathlib import Path

from job import script
from unlearning.artifacts.arrays import Data
from unlearning.data import duplicates, loaded, pairs_across, prepare
from unlearning.plugins import registry
from unlearning.plugins.isolation import apart


def made(data: str, settings: dict, file: str | None, place: dict) -> dict:
    """Load, prepare and write; a user's own source does it in a process of its own."""
    source = registry.load("data", settings["source"], file)
    samples = loaded(source, source.Options(**settings["options"], **place), Path.cwd())
    prepared = prepare(samples, seed=settings["seed"], **settings["use"])
    Data(
        prepared.x, prepared.y, prepared.part, prepared.y_clean, prepared.index, prepared.classes,
        prepared.public, prepared.compressed, prepared.tokenizer, prepared.parent, prepared.view,
    ).write(data)  # fmt: skip
    groups = duplicates(prepared.x)
    return {
        "samples": len(prepared.y),
        "relabelled": int((prepared.y != prepared.y_clean).sum()),
        "duplicates": {"groups": len(groups), "train_test_pairs": len(pairs_across(groups, prepared.part))},
    }


@script
def data(data: str, settings: dict, place: dict) -> dict:
    """``place`` says where the source lies; it is no part of the settings, because it changes no sample."""
    place = dict(place)
    where, file = place.pop("where"), place.pop("file", None)
    return apart(lambda: made(data, settings, file, place), file, where)
