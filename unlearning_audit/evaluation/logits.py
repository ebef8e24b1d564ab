"""Logits between stages: written whole, read model by model and only for the samples that are asked for."""

import functools
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unlearning_audit.store.files import (
    Arrays,
    Check,
    NotFiniteError,
    checked,
    record_of,
    refuse_failure,
    same_node,
    write_arrays,
)


@dataclass(frozen=True)
class Logits(Arrays):
    """``logits.npz``: ``logits`` float32 [models, rows, classes], ``index`` int64 [rows] into the data,
    ``y`` int64 [rows] observed labels."""

    logits: np.ndarray
    index: np.ndarray
    y: np.ndarray

    def write(self, path: str | Path, first: np.ndarray | None = None) -> None:
        """Write atomically, the rows in ``first`` bool [rows] before all others, so that they lie together.

        Infinite or NaN logits are written as they are, and counted in ``not_finite``: a reader names them.
        """
        arrays = self.arrays()
        if first is not None:
            order = np.argsort(~first, kind="stable")
            arrays |= {"logits": self.logits[:, order], "index": self.index[order], "y": self.y[order]}
        not_finite = sum(_not_finite(values) for values in self.logits)
        write_arrays(path, **arrays, not_finite=np.array(not_finite))

    @classmethod
    def read(cls, path: str | Path, models: int | None = None) -> "Logits":
        """All logits of a file, rows by ascending index. Raises as `StoredLogits.open`."""
        stored = StoredLogits.open(path, models)
        order = stored.order
        return cls(np.asarray(stored.opened()[:, order]), stored.index[order], stored.y[order])


@dataclass(frozen=True)
class StoredLogits:
    """As `Logits`, but the logits stay in their file, which ``opened`` maps. ``shape``: [models, rows, classes];
    ``order`` int64 [rows]: the rows by ascending index."""

    opened: Callable[[], np.ndarray]
    shape: tuple[int, int, int]
    index: np.ndarray
    order: np.ndarray
    y: np.ndarray

    def __len__(self) -> int:
        return self.shape[0]

    @classmethod
    def open(cls, path: str | Path, models: int | None = None) -> "StoredLogits":
        """Check a file (finite, aligned). Raises NotFiniteError for NaN or infinite logits, which a method that
        diverged leaves behind, FailedError for models that were never made, and ArtifactError otherwise."""
        arrays, opened = checked(path, lambda: _contents(path))
        node = arrays.pop("node", None)
        same_node(path, None if node is None else str(node))
        check = Check(path, arrays, may_diverge=True)
        refuse_failure(path, arrays)
        logits = check.field("logits", "f", (models, None, None), finite=False)
        _, rows, classes = logits.shape
        index, y = (check.field(name, "iu", (rows,)).astype(np.int64) for name in ("index", "y"))
        order = np.argsort(index, kind="stable")  # quick for an index of two ascending parts
        # What a job wrote says so itself, which saves reading it all.
        of_job = Path(path).name in record_of(path).get("checksums", {})
        bad = int(arrays["not_finite"]) if of_job else sum(_not_finite(values) for values in logits)
        if bad:
            problem = f"has {bad} values that are NaN or infinite; what made it diverged"
            raise NotFiniteError(f"{path}: field 'logits' {problem}")
        if (np.diff(index[order]) == 0).any():
            check.fail("index", "names some samples twice")
        if not np.isin(y, np.arange(classes)).all():
            check.fail("y", f"has labels outside 0 … {classes - 1}, the classes of the logits")
        return cls(opened, logits.shape, index, order, y)

    def by_model(self, models: Sequence[int], rows: np.ndarray | None = None) -> Iterator[np.ndarray]:
        """Logits of some models, one after the other, at ``rows`` int64 [rows] of the file (default: all), each
        [rows, classes]."""
        logits = self.opened()
        yield from (np.array(logits[model]) if rows is None else np.asarray(logits[model][rows]) for model in models)


def content(path: str | Path) -> dict[str, tuple[int, int]]:
    """Checksum (CRC-32) and size of every array in a file of logits, from its zip's directory; nothing else is read.
    Raises ArtifactError."""
    members = checked(path, lambda: zipfile.ZipFile(path).infolist())
    # The file also names its own node, which says nothing about the logits.
    return {member.filename: (member.CRC, member.file_size) for member in members if member.filename != "node.npy"}


def _not_finite(values: np.ndarray) -> int:
    return values.size - int(np.isfinite(values).sum())


def _contents(path: str | Path) -> tuple[dict[str, np.ndarray], Callable[[], np.ndarray]]:
    """All arrays of an ``.npz``, and what gives its logits: a map of the file, where they lie there as they are."""
    with np.load(path, allow_pickle=False) as archive, Path(path).open("rb") as file:
        arrays = {name: archive[name] for name in archive.files if name != "logits"}
        if "logits" not in archive.files:
            return arrays, lambda: arrays["logits"]
        member = archive.zip.getinfo("logits.npy")
        with archive.zip.open(member) as stream:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(stream)
            header = stream.tell()
        if member.compress_type != zipfile.ZIP_STORED or fortran or dtype.hasobject or 0 in shape:
            arrays["logits"] = archive["logits"]
            return arrays, lambda: arrays["logits"]
        # A member lies behind 30 bytes, the last four of which are the lengths of its name and of what else is said.
        file.seek(member.header_offset + 26)
        start = member.header_offset + 30 + sum(np.frombuffer(file.read(4), "<u2").tolist()) + header
    opened = functools.partial(np.memmap, path, dtype, "r", start, shape)
    return {**arrays, "logits": opened()}, opened
