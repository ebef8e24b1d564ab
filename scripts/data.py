"""Load a data set and write it in the one layout that every later stage reads."""

from pathlib import Path
from typing import Any

from unlearning_audit.data import duplicates, pairs_across, prepare, read_source
from unlearning_audit.plugins.isolation import isolated
from unlearning_audit.store import folders


def data(data: str, settings: dict[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    """Write a data set to the file ``data``; return counts for the spec. A user's own source is read in a separate
    process.

    ``settings``: the source, its options, and how its samples are used. ``place``: where the source lies, and under
    "where", its path in the study. The place is not part of the settings, because it changes no sample. Samples,
    changed labels, groups of equal samples, and equal pairs of a training and a test sample are counted.
    """

    def make() -> dict[str, Any]:
        """Read the source, prepare its samples, write them, and return the counts."""
        samples = read_source(settings, place, Path.cwd())
        folders.refuse_changes(place.get("contents", {}))  # reading may take long
        prepared = prepare(samples, seed=settings["seed"], **settings["use"])
        prepared.write(data)
        groups = duplicates(prepared.x)
        return {
            "samples": len(prepared.y),
            "relabelled": int((prepared.y != prepared.y_clean).sum()),
            "duplicates": {"groups": len(groups), "train_test_pairs": len(pairs_across(groups, prepared.part))},
        }

    return isolated(make, place.get("file"), where=place["where"], **place.get("terms", {}))
