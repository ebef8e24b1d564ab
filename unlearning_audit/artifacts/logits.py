"""Logits between stages: written whole, read model by model and only for the samples that are asked for."""

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unlearning_audit.artifacts.blocks import SIZE, Blocks
from unlearning_audit.artifacts.files import (
    Arrays,
    Check,
    NotFiniteError,
    reading_errors,
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
        return cls(
            np.stack(list(stored.by_model(range(len(stored)), order))), stored.index[order], stored.y[order]
        )  # fmt: skip


@dataclass(frozen=True)
class StoredLogits:
    """As `Logits`, but the logits stay in the file ``path``, where they begin at byte ``start``: float of ``dtype`` and
    ``shape`` [models, rows, classes]. ``order`` int64 [rows]: the rows by ascending index. ``memory``: these logits, if
    their file cannot be read in part."""

    path: Path
    shape: tuple[int, int, int]
    dtype: np.dtype
    start: int | None
    memory: np.ndarray | None
    index: np.ndarray
    order: np.ndarray
    y: np.ndarray

    def __len__(self) -> int:
        return self.shape[0]

    @classmethod
    def open(cls, path: str | Path, models: int | None = None) -> "StoredLogits":
        """Check a file (finite, aligned) and read all but its logits. Raises NotFiniteError for NaN or infinite logits,
        which a method that diverged leaves behind, FailedError for models that were never made, and ArtifactError
        otherwise."""
        with Blocks(path) as file:
            arrays, start, memory = reading_errors(path, lambda: _contents(file))
            trusted = file.apart and memory is None
        node = arrays.pop("node", None)
        same_node(path, None if node is None else str(node))
        check = Check(path, arrays, may_diverge=True)
        refuse_failure(path, arrays)
        logits = check.field("logits", "f", (models, None, None), finite=False)
        _, rows, classes = logits.shape
        index, y = (check.field(name, "iu", (rows,)).astype(np.int64) for name in ("index", "y"))
        order = np.argsort(index, kind="stable")  # quick for an index of two ascending parts
        stored = cls(Path(path), logits.shape, logits.dtype, start, memory, index, order, y)
        # What a job wrote says so itself, which saves reading it all.
        bad = int(arrays["not_finite"]) if trusted else stored._count_not_finite()
        if bad:
            problem = f"has {bad} values that are NaN or infinite; what made it diverged"
            raise NotFiniteError(f"{path}: field 'logits' {problem}")
        if (np.diff(index[order]) == 0).any():
            check.fail("index", "names some samples twice")
        if not np.isin(y, np.arange(classes)).all():
            check.fail("y", f"has labels outside 0 … {classes - 1}, the classes of the logits")
        return stored

    def by_model(self, models: Sequence[int], rows: np.ndarray | None = None) -> Iterator[np.ndarray]:
        """Logits of some models, one after the other, at ``rows`` int64 [rows] of the file (default: all), each
        [rows, classes]."""
        if self.memory is not None:
            yield from (self.memory[model] if rows is None else self.memory[model][rows] for model in models)
            return
        _, samples, classes = self.shape
        width = classes * self.dtype.itemsize
        positions = np.arange(samples)
        places, back = (positions, None) if rows is None else np.unique(rows, return_inverse=True)
        runs = np.split(places, np.flatnonzero(np.diff(places) * width > SIZE) + 1) if len(places) else []
        with Blocks(self.path) as file:

            def read(model: int, run: np.ndarray) -> np.ndarray:
                file.seek(self.start + (model * samples + int(run[0])) * width)
                raw = file.read((int(run[-1]) + 1 - int(run[0])) * width)
                return np.frombuffer(raw, self.dtype).reshape(-1, classes)[run - run[0]]

            none = np.zeros((0, classes), self.dtype)
            for model in models:
                values = np.concatenate([none, *(read(int(model), run) for run in runs)])
                yield values if back is None else values[back]

    def _count_not_finite(self) -> int:
        return reading_errors(self.path, lambda: sum(_not_finite(values) for values in self.by_model(range(len(self)))))


def content(path: str | Path) -> dict[str, tuple[int, int]]:
    """Checksum (CRC-32) and size of every array in a file of logits, from its zip's directory; nothing else is read.
    Raises ArtifactError."""
    with Blocks(path) as file:
        members = reading_errors(path, lambda: zipfile.ZipFile(file).infolist())
    # The file also names its own node, which says nothing about the logits.
    return {member.filename: (member.CRC, member.file_size) for member in members if member.filename != "node.npy"}


def _not_finite(values: np.ndarray) -> int:
    return values.size - int(np.isfinite(values).sum())


def _contents(file: Blocks) -> tuple[dict[str, np.ndarray], int | None, np.ndarray | None]:
    """All arrays of an ``.npz`` but the logits, for which one number stands in their shape; where they begin, or,
    if they do not lie there as they are, themselves."""
    with np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files if name != "logits"}
        if "logits" not in archive.files:
            return arrays, None, None
        member = archive.zip.getinfo("logits.npy")
        with archive.zip.open(member) as opened:
            version = np.lib.format.read_magic(opened)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(opened)
            header = opened.tell()
        if member.compress_type != zipfile.ZIP_STORED or fortran:
            arrays["logits"] = archive["logits"]
            return arrays, None, arrays["logits"]
        # A member lies behind 30 bytes, the last four of which are the lengths of its name and of what else is said.
        file.seek(member.header_offset + 26)
        names = sum(np.frombuffer(file.read(4), "<u2").tolist())
    arrays["logits"] = np.broadcast_to(np.zeros((), dtype), shape)
    return arrays, member.header_offset + 30 + names + header, None
