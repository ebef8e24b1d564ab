"""Flips single bits in the artifacts of a finished study; whoever reads the file must refuse it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from unlearning_audit.evaluation import rows
from unlearning_audit.evaluation.arrays import Data, Logits, Membership
from unlearning_audit.evaluation.selection import Selection
from unlearning_audit.report.page import embed
from unlearning_audit.report.tables import cost, meta
from unlearning_audit.store import tables
from unlearning_audit.store.files import ArtifactError, read_arrays, read_json
from unlearning_audit.training.bank import read_models


def _selection(path: Path) -> Selection:
    return Selection.read(path, len(read_arrays(path)["ratio"]))


#: File below results/ → who reads it. The first that fits is meant.
READERS: dict[str, Callable[[Path], object]] = {
    "*/*/data.npz": Data.read,
    "*/*/membership.npz": Membership.read,
    "*/*/logits.npz": Logits.read,
    "*/*/models.safetensors": read_models,
    "*/*/selection.npz": _selection,
    "*/*/scores.parquet": tables.read_scores,
    "*/*/metrics.csv": rows.read,
    "*/*/spec.json": read_json,
    "*/metrics.csv": rows.read_union,
    "*/cost.csv": cost.read,
    "*/tables/meta.csv": meta.read,
    "*/tables/*.*": embed.download,
    "*/figures/*.svg": lambda path: embed.drawing(path, "figure"),
    "*/figures/*.png": embed.download,
}


def artifacts(results: Path) -> dict[str, list[Path]]:
    """Kind of artifact → the files of that kind, sorted; each file once, seals with the files that they are of."""
    earlier: set[Path] = set()
    by_kind = {}
    for kind in READERS:
        files = sorted(path for path in results.glob(kind) if path.is_file() and path not in earlier)
        files = [path for path in files if not path.name.startswith(".")]
        earlier |= set(files)
        if files:
            by_kind[kind] = files
    return by_kind


def flip(path: Path, bit: int) -> None:
    """Flip one bit of a file in its place."""
    with path.open("rb+") as file:
        file.seek(bit // 8)
        (byte,) = file.read(1)
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


def sealed_by(path: Path) -> Path | None:
    """The file that holds the checksum of another: its seal, or the spec beside it; None for a spec itself."""
    if path.name == "spec.json":
        return None
    return next(p for p in (path.with_name(f".{path.name}.blake2b"), path.with_name("spec.json")) if p.exists())


def attempt(kind: str, files: list[Path], rng: np.random.Generator) -> str:
    """Flip one bit of a random file of a kind, or once in ten times of what holds its checksum, read the file, and put
    the bit back; "" if it was refused in one sentence, else what was wrong."""
    path = files[rng.integers(len(files))]
    record = sealed_by(path)
    hit = record if record is not None and rng.random() < 0.1 else path
    bit = int(rng.integers(8 * hit.stat().st_size))
    flip(hit, bit)
    try:
        READERS[kind](path)
    except ArtifactError as error:
        return "" if "\n" not in str(error) else f"{hit}: bit {bit}: more than one line: {error}"
    except Exception as error:
        return f"{hit}: bit {bit}: {type(error).__name__}: {error}"
    finally:
        flip(hit, bit)
    return f"{hit}: bit {bit}: not noticed"
