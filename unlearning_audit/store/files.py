"""Atomic files: every write goes to a temporary name and is renamed when complete."""

import functools
import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np

#: Settings and other facts, as JSON holds them: name → value.
Json = dict[str, Any]

T = TypeVar("T")


class ArtifactError(ValueError):
    """A file is missing, damaged or not what its stage promises; the message names the file and what to do."""


class NoAnswerError(ArtifactError):
    """Some models have no logits, because their method failed or diverged: a result, and not a damaged file."""


class NotFiniteError(NoAnswerError):
    """A model's logits are NaN or infinite, because training or unlearning diverged."""


class FailedError(NoAnswerError):
    """There are no models, because a plug-in failed or the models diverged. ``part``: "method", "model" or "diverged";
    ``why``: a sentence."""

    def __init__(self, part: str, why: str) -> None:
        self.part, self.why = part, why
        super().__init__(part, why)  # another process unpickles it from both

    def __str__(self) -> str:
        return self.why


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in a folder beside ``path``; rename it to ``path`` when the block ends without an error.

    A crash, a full disk or a killed process leaves the old file (or none), never half of a new one; what a killed
    process left is removed by the next write. Permissions follow the umask. Raises ArtifactError if the file cannot be
    written.
    """
    path = Path(path)
    # In a folder, because the library safetensors writes a temporary file of its own beside its file.
    folder = path.with_name(f".{path.name}.part")
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        temporary = folder / path.name
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        _seal_of(path).unlink(missing_ok=True)  # it belongs to the old file
        temporary.replace(path)
    except Exception as error:
        # Libraries in Rust raise other exceptions, with the system's error in the text only.
        if not isinstance(error, OSError) and "os error" not in str(error):
            raise
        raise ArtifactError(unwritable(path, error)) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def unwritable(path: str | Path, error: Exception) -> str:
    """Return the sentence on a file that could not be written because of ``error``."""
    return (
        f"{path}: could not be written ({getattr(error, 'strerror', None) or error}); free space or fix the "
        "permissions and run again, finished files are kept"
    )


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def node_of(path: str | Path) -> str:
    """Return the node to which a file belongs: the name of its folder, which ends in the node's key."""
    return Path(path).absolute().parent.name


def paths_in(files: Mapping[str, str | list[str]]) -> list[str]:
    """Return all paths in ``files``, role → path or list of paths, as one list."""
    groups = ([group] if isinstance(group, str) else group for group in files.values())
    return [path for group in groups for path in group]


def sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file's content, hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def names_in_archive(path: str | Path) -> set[str]:
    """Return the names of the files in a zip archive, such as an .npz; none for a file that cannot be read as one."""
    try:
        with zipfile.ZipFile(path) as archive:
            return set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return set()


def write_arrays(path: str | Path, **arrays: np.ndarray) -> None:
    """Write named arrays to one uncompressed ``.npz``, byte for byte the same for the same arrays."""
    contiguous = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **contiguous)


def write_failure(path: str | Path, part: str, why: str) -> None:
    """Write why there are no models. `read_arrays` raises `FailedError` for such a file."""
    write_arrays(path, part=np.array(part), why=np.array(why))


def read_arrays(path: str | Path, read: Callable[[], dict[str, np.ndarray]] | None = None) -> dict[str, np.ndarray]:
    """Return name → array of all arrays in this ``.npz``; nothing is unpickled. With ``read``, return what ``read()``
    returns, which may leave the arrays in the file.

    Raises ArtifactError for a file that is missing or damaged, and FailedError for a file by `write_failure`.
    """

    def read_all() -> dict[str, np.ndarray]:
        """Read all arrays of the file at ``path`` into memory."""
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}

    arrays = read_verified(path, read or read_all)
    refuse_failure(path, arrays)
    return arrays


def refuse_failure(path: str | Path, arrays: dict[str, np.ndarray]) -> None:
    """Raise FailedError if the file at ``path`` with these ``arrays`` was written by `write_failure`, with the part and
    the reason that it holds. Otherwise do nothing."""
    if "part" in arrays and "why" in arrays:
        check = Check(path, arrays)
        raise FailedError(part=str(check.field("part", "U", ())), why=str(check.field("why", "U", ())))


def read_verified(path: str | Path, read: Callable[[], T]) -> T:
    """Verify the checksum of the file at ``path``, and return what ``read()`` returns, which reads this file. Raises
    ArtifactError if the checksum is wrong or ``read`` fails."""
    verify(path)
    return read_or_explain(path, read)


def reason(error: Exception) -> str:
    """Return why a library could not read a file: the text of the ``error``, or, in place of NumPy's advice to unpickle
    files that are trusted, that the file holds pickled objects."""
    if "pickle" in str(error) or "Python objects" in str(error):
        return "it holds pickled objects, which may run code when they are read"
    return str(error)


def write_text(path: str | Path, text: str) -> None:
    """Write text in UTF-8."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: object) -> None:
    """Write JSON with sorted keys and a final newline."""
    write_text(path, _as_json(value))


def read_json(path: str | Path) -> Any:
    """Read JSON; a ``spec.json`` is checked against the checksum in it, any other file as `verify` does. Raises
    ArtifactError for a missing or damaged file."""
    if Path(path).name == "spec.json":  # spec_of verifies it
        return read_or_explain(path, lambda: spec_of(path))
    return read_verified(path, lambda: json.loads(Path(path).read_text()))


# ---------------------------------------------------------------- checksums


def checksum(path: str | Path) -> str:
    """Return the BLAKE2b of a file's content with 20 bytes, hexadecimal. It is faster than SHA-256."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=20)).hexdigest()


def seal(path: str | Path) -> None:
    """Write the checksum of a file that is not in a ``spec.json`` beside it, as ``.NAME.blake2b``."""
    write_text(_seal_of(path), checksum(path))


def sealed(path: str | Path) -> bool:
    """Return whether `seal` has written the checksum of a file, as ``.NAME.blake2b`` beside it."""
    return _seal_of(path).exists()


def verify(path: str | Path) -> None:
    """Raise ArtifactError if a file differs from what its job wrote. The checksum is in the ``spec.json`` beside the
    file or, if there is none, in its seal.

    A file without a checksum there passes: only its reader can check it.
    """
    path, expected = Path(path), None
    record = path.with_name("spec.json")
    if record.exists():
        expected = spec_of(path).get("checksums", {}).get(path.name)
    else:
        record = _seal_of(path)
        if record.exists():
            expected = read_or_explain(record, record.read_bytes).decode("latin-1")
    if expected is not None and expected != read_or_explain(path, lambda: _checksum(path, _stamp(path))):
        raise ArtifactError(
            f"{path}: this file is not as it was made (its checksum in {record.name} differs); put it back, or delete "
            "it and run again"
        )


@functools.lru_cache(1024)
def _checksum(path: Path, stamp: tuple[int, ...]) -> str:
    """Return the checksum of a file, cached for the process; ``stamp`` changes when the file does."""
    return checksum(path)


def _stamp(path: Path) -> tuple[int, ...]:
    """Return size, times and inode of a file, which change when the file is replaced or written."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def write_spec(path: str | Path, value: dict[str, Any]) -> None:
    """Write a ``spec.json``: JSON values, and the checksum of their text."""
    write_json(path, {**value, "checksum": _checksum_of(_as_json(value))})


def spec_of(path: str | Path) -> dict[str, Any]:
    """Read the ``spec.json`` beside a file; ``{}`` if there is none. Raises ArtifactError if the spec is unreadable,
    differs from what was written (it holds the checksum of its own text) or was written for another node."""
    path = Path(path).with_name("spec.json")
    if not path.exists():
        return {}
    text = read_or_explain(path, lambda: path.read_text(encoding="utf-8"))
    value: dict[str, Any] = read_or_explain(path, lambda: json.loads(text))
    unsigned = {key: item for key, item in value.items() if key != "checksum"} if isinstance(value, dict) else {}
    # A spec without a checksum equals ``unsigned``, and is refused too.
    if unsigned == value or text != _as_json({**unsigned, "checksum": _checksum_of(_as_json(unsigned))}):
        raise ArtifactError(f"{path}: this file is not as it was made; put it back, or delete it and run again")
    made_for = value.get("node", node_of(path))
    if made_for != node_of(path):
        raise ArtifactError(
            f"{path}: this file was made for {made_for!r}, not for {node_of(path)!r}; "
            "put it back where it came from or delete it, and run again"
        )
    return value


def read_or_explain(path: str | Path, read: Callable[[], T]) -> T:
    """Return what ``read()`` returns, which reads the file at ``path``. Raises ArtifactError, with the reason and what
    to do, if the file is missing or ``read`` raises any exception."""
    if not Path(path).exists():
        raise ArtifactError(f"{path}: this file does not exist; run the workflow again to build it")
    try:
        return read()
    except ArtifactError:
        raise
    except Exception as error:
        raise ArtifactError(
            f"{path}: this file is damaged or not of the expected format ({type(error).__name__}: {reason(error)}); "
            "delete it and run again"
        ) from error


def _seal_of(path: str | Path) -> Path:
    """Return the path of a file's seal, which holds the file's checksum."""
    return Path(path).with_name(f".{Path(path).name}.blake2b")


def _as_json(value: object) -> str:
    """Return the text of a JSON file: with sorted keys and a final newline."""
    return json.dumps(value, indent=1, sort_keys=True) + "\n"


def _checksum_of(text: str) -> str:
    """Return the BLAKE2b of a text with 20 bytes, hexadecimal."""
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


# ---------------------------------------------------------------- fields


class Check:
    """Checks of the fields of one file; each failure names the file and the field.

    ``may_diverge``: whether NaN and infinite numbers come from a model that diverged. Then they raise NotFiniteError.
    """

    def __init__(self, path: str | Path, arrays: dict[str, np.ndarray], may_diverge: bool = False) -> None:
        self.path, self.arrays, self.may_diverge = path, arrays, may_diverge

    def fail(self, field: str, problem: str) -> NoReturn:
        """Raise ArtifactError for a ``field`` with a ``problem``."""
        raise ArtifactError(f"{self.path}: field {field!r} {problem}; replace the file or delete it and run again")

    def field(
        self, name: str, kinds: str, shape: tuple[int | None, ...] | None = None, finite: bool = True
    ) -> np.ndarray:
        """Return the array ``name``. Raises ArtifactError unless the kind of its dtype (NumPy's letter, such as "f") is
        among ``kinds``, its shape fits ``shape`` (None: any shape; None for one axis: any size) and, with ``finite``,
        its values are finite."""
        if name not in self.arrays:
            self.fail(name, f"is missing (the file has {', '.join(sorted(self.arrays)) or 'nothing'})")
        value = self.arrays[name]
        if value.dtype.kind not in kinds:
            self.fail(name, f"has dtype {value.dtype}, expected kind {'/'.join(kinds)}")
        wanted = value.shape if shape is None else shape
        fits = [want is None or want == size for want, size in zip(wanted, value.shape, strict=False)]
        if len(wanted) != value.ndim or not all(fits):
            expected = ", ".join("any" if size is None else str(size) for size in wanted)
            self.fail(name, f"has shape {value.shape}, expected ({expected})")
        if finite and value.dtype.kind == "f" and not np.isfinite(value).all():
            problem = f"has {int((~np.isfinite(value)).sum())} values that are NaN or infinite"
            if self.may_diverge:
                raise NotFiniteError(f"{self.path}: field {name!r} {problem}; what made it diverged")
            self.fail(name, problem)
        return value


@dataclass(frozen=True)
class Arrays:
    """A dataclass whose fields are the arrays of one ``.npz``, or None where there is no such array.

    Parameters
    ----------
    SHARED
        Fields that are the same for all models. The first axis of all others is that of the models.
    """

    SHARED: ClassVar[tuple[str, ...]] = ()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return name → array for all fields that are not None."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def write(self, path: str | Path) -> None:
        """Write all fields that are not None, atomically."""
        write_arrays(path, **self.arrays())

    @classmethod
    def concatenate(cls, parts: list[Self]) -> Self:
        """Stack the models of several batches in their order.

        Raises ValueError if the batches disagree on shared fields, or on which fields are None.
        """
        stacked = {}
        for field in fields(cls):
            first, *rest = (getattr(part, field.name) for part in parts)
            shared = first is None or field.name in cls.SHARED
            # A shared field, or one that is None, must be equal in all batches; any other must be there in all.
            if not all(np.array_equal(value, first) if shared else value is not None for value in rest):
                raise ValueError(f"batches of one population disagree on {field.name}; draw them by the same protocol")
            stacked[field.name] = first if shared else np.concatenate([first, *rest])
        return cls(**stacked)
