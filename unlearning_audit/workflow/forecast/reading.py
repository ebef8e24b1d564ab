"""Measure how much data a scoring job reads, from its present input files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from unlearning_audit.store.files import ArtifactError, read_arrays


@dataclass(frozen=True)
class Reading:
    """The amount of data that a scoring job reads.

    ``logits``: bytes of the logits of all models; ``attacked``: bytes of those that attacks read. ``cells``: models ×
    samples of all memberships; ``queried``: the share of these that attacks score. ``other_bytes``: bytes of all other
    inputs.
    """

    logits: int
    attacked: int
    cells: int
    queried: float
    other_bytes: int


#: Inputs whose logits attacks read. For imported models, all populations count.
ATTACKED = ("originals", "unlearned", "populations")


def of_files(inputs: Mapping[str, str | Sequence[str]]) -> Reading | None:
    """Return how much data a job with these ``inputs`` (role → path or paths) reads; None if logits or memberships are
    missing or damaged. Other missing files count as empty."""
    roles = {role: [paths] if isinstance(paths, str) else paths for role, paths in inputs.items()}
    places = [Path(path) for path in dict.fromkeys(path for paths in roles.values() for path in paths)]
    try:
        size = {path: path.stat().st_size for path in places if path.exists() or path.name in ESSENTIAL}
        members = [_cells(path, path.stat().st_mtime_ns) for path in size if path.name == "membership.npz"]
    except (ArtifactError, KeyError, OSError):
        return None
    cells, queried = (sum(column) for column in zip(*members, strict=True)) if members else (0, 0)
    of_logits = {path: size[path] for path in size if path.name == "logits.npz"}
    attacked = {Path(path) for role in ATTACKED for path in roles.get(role, ())} & of_logits.keys()
    logits = sum(of_logits.values())
    return Reading(
        logits, sum(of_logits[path] for path in attacked), cells, queried / max(cells, 1), sum(size.values()) - logits
    )


#: Names of files without which a job's size is unknown.
ESSENTIAL = ("logits.npz", "membership.npz")


@cache
def _cells(path: Path, modified: int) -> tuple[int, int]:
    """Return models × samples of a file of memberships, and models × samples that some model forgets or has held out.

    ``modified``: the file's time of change, so that the cache does not answer for an older version.
    """
    arrays = read_arrays(path)
    models, samples = arrays["forget"].shape
    return models * samples, models * int(np.count_nonzero((arrays["forget"] | arrays["heldout"]).any(axis=0)))
