"""Logits between stages: written atomically, and read model by model for selected samples only."""

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unlearning_audit.store import files
from unlearning_audit.store.files import Arrays, Check, NotFiniteError, read_verified


@dataclass(frozen=True)
class Logits(Arrays):
    """``logits.npz``: logits, and the samples and labels to which they belong.

    Parameters
    ----------
    logits
        float32 [models, rows, classes].
    index
        int64 [rows]: the sample of each row in the data.
    y
        int64 [rows]: the observed labels.
    """

    logits: np.ndarray
    index: np.ndarray
    y: np.ndarray

    def write(self, path: str | Path, first: np.ndarray | None = None) -> None:
        """Write atomically, with the rows in ``first`` bool [rows] before all others, so that they can be read in one
        piece.

        Infinite or NaN logits are written as they are and counted in ``not_finite``, so that a reader can refuse them.
        """
        arrays = self.arrays()
        if first is not None:
            order = np.argsort(~first, kind="stable")  # False comes first, and order is kept otherwise
            arrays |= {"logits": self.logits[:, order], "index": self.index[order], "y": self.y[order]}
        files.write_arrays(path, **arrays, not_finite=np.array(sum(_not_finite(values) for values in self.logits)))

    @classmethod
    def open(cls, path: str | Path, models: int | None = None) -> "Logits":
        """Open a file with a number of ``models`` (None: any), and check what it contains. Its rows have the order of
        the file, and its logits stay there until they are needed.

        Raises NotFiniteError for NaN or infinite logits, which come from a method that diverged. Raises FailedError for
        models that were never made. Raises ArtifactError for a damaged file, or one of another shape, if it
        names a sample twice, or if a label is none of its classes.
        """
        arrays = files.read_arrays(path, lambda: _contents(path))
        check = Check(path, arrays, may_diverge=True)
        logits = check.field("logits", "f", (models, None, None), finite=False)
        _models, rows, classes = logits.shape
        index, y = (check.field(name, "iu", (rows,)).astype(np.int64) for name in ("index", "y"))
        # A file that a job wrote contains the count, which makes it unnecessary to read all logits.
        of_job = Path(path).name in files.spec_of(path).get("checksums", {})
        count = int(arrays["not_finite"]) if of_job else sum(_not_finite(values) for values in logits)
        if count:
            problem = f"has {count} values that are NaN or infinite; what made it diverged"
            raise NotFiniteError(f"{path}: field 'logits' {problem}")
        if len(np.unique(index)) < rows:
            check.fail("index", "names some samples twice")
        if not np.isin(y, np.arange(classes)).all():
            check.fail("y", f"has labels outside 0 … {classes - 1}, the classes of the logits")
        return cls(logits, index, y)

    @classmethod
    def read(cls, path: str | Path, models: int | None = None) -> "Logits":
        """Read all logits of a file, with the rows in ascending order of index. Raises what `open` raises."""
        stored = cls.open(path, models)
        order = np.argsort(stored.index, kind="stable")  # which is fast for an index of two ascending parts
        return cls(np.asarray(stored.logits[:, order]), stored.index[order], stored.y[order])


def checksums(path: str | Path) -> dict[str, tuple[int, int]]:
    """Return "NAME.npy" → checksum (CRC-32) and size in bytes of every array in a file of logits. Only the zip's
    directory is read. Raises ArtifactError if the file is missing or damaged."""
    members = read_verified(path, lambda: zipfile.ZipFile(path).infolist())
    return {member.filename: (member.CRC, member.file_size) for member in members}


def _not_finite(values: np.ndarray) -> int:
    """Return how many values are NaN or infinite."""
    return values.size - int(np.isfinite(values).sum())


def _contents(path: str | Path) -> dict[str, np.ndarray]:
    """Return all arrays of an ``.npz`` by name.

    Logits that are stored uncompressed are mapped from the file, so that a reader of some rows does not read all.
    """
    with np.load(path, allow_pickle=False) as archive, Path(path).open("rb") as file:
        arrays = {name: archive[name] for name in archive.files if name != "logits"}
        if "logits" not in archive.files:
            return arrays
        member = archive.zip.getinfo("logits.npy")
        with archive.zip.open(member) as stream:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(stream)
            header = stream.tell()
        if member.compress_type != zipfile.ZIP_STORED or fortran or dtype.hasobject or 0 in shape:
            return {**arrays, "logits": archive["logits"]}
        # A member's data follow a header of 30 bytes, a name and an extra field; the last four bytes of the header are
        # the lengths of name and extra field.
        file.seek(member.header_offset + 26)
        start = member.header_offset + 30 + sum(np.frombuffer(file.read(4), "<u2").tolist()) + header
    return {**arrays, "logits": np.memmap(path, dtype, "r", start, shape)}
