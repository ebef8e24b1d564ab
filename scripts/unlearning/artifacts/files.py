"""Whole files or none: every write lands under a temporary name and is renamed when complete."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np


class ArtifactError(ValueError):
    """A file is not what its stage promises; the message names the file, the field and what to do."""


class NotFiniteError(ArtifactError):
    """A model's answers are NaN or infinite: whatever made it diverged."""


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` when the block ends without an error.

    A crash, a full disk or a killed process leaves the old file (or none), never half of a new one; what a
    killed process left behind under a temporary name is removed by the next. The file may be read by whom the
    umask lets, whatever the writer thinks of that. Raises ArtifactError if the system refuses.
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for stale in path.parent.glob(f".{path.name}.*.part"):
            stale.unlink(missing_ok=True)
        yield part
        part.chmod(0o666 & ~_umask())
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except Exception as error:
        # Writers in Rust tell what the system said in words only.
        if not isinstance(error, OSError) and "os error" not in str(error):
            raise
        raise ArtifactError(
            f"{path}: could not be written ({getattr(error, 'strerror', None) or error}); free space or fix the "
            "permissions and run again, finished files are kept"
        ) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _umask() -> int:
    """The permissions that this process withholds; they can only be read by setting them."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def node_of(path: str | Path) -> str:
    """The node a file belongs to: the name of its folder, which ends in the node's key."""
    return Path(path).absolute().parent.name


def same_node(path: str | Path, written_for: str | None) -> None:
    """Refuse a file that was written for another node: two artifacts that were swapped look alike inside.

    Files from elsewhere carry no node and pass. Raises ArtifactError.
    """
    if written_for is not None and written_for != node_of(path):
        raise ArtifactError(
            f"{path}: this file was made for {written_for!r}, not for {node_of(path)!r}; "
            "put it back where it came from or delete it, and run again"
        )


def sha256(path: str | Path) -> str:
    """SHA-256 of a file's content, hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def as_written(path: str | Path) -> None:
    """Refuse a text file that is not what its job wrote: the checksum is in the ``spec.json`` beside it.

    A csv does not show that its end is missing. Files without such an entry pass. Raises ArtifactError.
    """
    spec = Path(path).with_name("spec.json")
    wanted = read_json(spec).get("sha256", {}).get(Path(path).name) if spec.exists() else None
    if wanted is not None and wanted != sha256(path):
        raise ArtifactError(
            f"{path}: this file is not as it was made (its checksum in spec.json differs); put it back, "
            "or delete it and run again"
        )


def write_arrays(path: str | Path, **arrays: np.ndarray) -> None:
    """Write named arrays to one uncompressed ``.npz``, byte for byte the same for the same arrays."""
    named = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    with replacing(path) as part, part.open("wb") as file:
        np.savez(file, node=np.array(node_of(path)), **named)


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """All arrays of an ``.npz``; never unpickles. Raises ArtifactError for a missing or damaged file."""

    def read() -> dict[str, np.ndarray]:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}

    arrays = checked(path, read)
    node = arrays.pop("node", None)
    same_node(path, None if node is None else str(node))
    return arrays


def checked(path: str | Path, read: Callable):
    """Call ``read()``; turn whatever a damaged file makes it raise into one ArtifactError."""
    if not Path(path).exists():
        raise ArtifactError(f"{path}: this file does not exist; run the workflow again to build it")
    try:
        return read()
    except ArtifactError:
        raise
    except Exception as error:
        raise ArtifactError(
            f"{path}: this file is damaged or not of the expected format ({type(error).__name__}: {error}); "
            "delete it and run again"
        ) from error


def write_json(path: str | Path, value: object) -> None:
    """Write JSON with sorted keys and a final newline."""
    with replacing(path) as part:
        part.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")


def read_json(path: str | Path):
    """Read JSON. Raises ArtifactError for a missing or damaged file."""
    return checked(path, lambda: json.loads(Path(path).read_text()))


class Check:
    """Conditions on the fields of one file; each failure names the file and the field.

    ``may_diverge``: NaN and infinite numbers come from a model that diverged, and raise NotFiniteError.
    """

    def __init__(self, path: str | Path, arrays: dict[str, np.ndarray], may_diverge: bool = False) -> None:
        self.path, self.arrays, self.may_diverge = path, arrays, may_diverge

    def fail(self, field: str, problem: str) -> None:
        raise ArtifactError(f"{self.path}: field {field!r} {problem}; replace the file or delete it and run again")

    def field(self, name: str, kinds: str, shape: tuple[int | None, ...] | None = None) -> np.ndarray:
        """The array ``name`` whose dtype kind is one of ``kinds`` and whose shape fits (None = any)."""
        if name not in self.arrays:
            self.fail(name, f"is missing (the file has {', '.join(sorted(self.arrays)) or 'nothing'})")
        value = self.arrays[name]
        if value.dtype.kind not in kinds:
            self.fail(name, f"has dtype {value.dtype}, expected kind {'/'.join(kinds)}")
        if shape is not None and (
            value.ndim != len(shape)
            or any(want is not None and want != got for want, got in zip(shape, value.shape, strict=True))
        ):
            want = ", ".join("any" if size is None else str(size) for size in shape)
            self.fail(name, f"has shape {value.shape}, expected ({want})")
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            problem = f"has {int((~np.isfinite(value)).sum())} values that are NaN or infinite"
            if self.may_diverge:
                raise NotFiniteError(f"{self.path}: field {name!r} {problem}; what made it diverged")
            self.fail(name, problem)
        return value
