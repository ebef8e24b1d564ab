"""What a job that scores reads, from its input files as they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from unlearning_audit.store.files import ArtifactError, read_arrays


@dataclass(frozen=True)
class Reading:
    """``logits``: bytes of the logits of all models, and of those that attacks read (``attacked``); ``cells``: models ×
    samples of all memberships; ``queried``: share of these that attacks are asked about; ``other_bytes``: bytes of all
    other inputs."""

    logits: int
    attacked: int
    cells: int
    queried: float
    other_bytes: int


#: Inputs of which attacks read the logits; of models from elsewhere these are not told apart.
ATTACKED = ("originals", "unlearned", "populations")


def of_files(inputs: Mapping[str, str | Sequence[str]]) -> Reading | None:
    """What a job reads that has these inputs; None where logits or memberships are not there yet, or are damaged.
    What else is not there yet counts nothing."""
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


#: Names of files without which nothing is known of a job.
ESSENTIAL = ("logits.npz", "membership.npz")


@cache
def _cells(path: Path, modified: int) -> tuple[int, int]:
    """Models × samples of a file of memberships, and models × samples that attacks are asked about for some model."""
    arrays = read_arrays(path)
    models, samples = arrays["forget"].shape
    return models * samples, models * int(np.count_nonzero((arrays["forget"] | arrays["heldout"]).any(axis=0)))
