"""Arrays: an ``.npz`` file of the user's own with x, y and part."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pydantic import Field

from unlearning_audit.data import LAYOUTS, Settings, Source
from unlearning_audit.store.files import reason

#: The source needs no download.
AT_HAND = True


class Options(Settings):
    """``path``: the file, relative to the working directory; ``classes``: their number, by default the highest label
    plus one, and at least two for tokens."""

    path: str
    classes: int | None = Field(None, ge=2)


def load(options: Options, root: Path) -> Source:
    """Read the file; nothing is unpickled.

    ``x`` is uint8 or float32 [n, channels, height, width], float32 [n, features] or int32 [n, length]. ``y`` holds
    integers [n] from 0. ``part`` [n] is 0 or false for train, 1 or true for test. ``subject``, if given, holds integers
    [n]: the person to whom each sample belongs. Raises ValueError that names the file and the field.
    """
    return _source(options, root, lambda archive: archive["x"])


def problem(options: Options, root: Path) -> tuple[str, str] | None:
    """Check the file quickly, without reading the values of ``x``, so that a wrong study is refused before any job
    runs.

    Return the name of a wrong option and a sentence, or None if nothing is wrong.
    """
    try:
        _source(options, root, _outline)  # raises ValueError for a wrong file
    except ValueError as error:
        return "path", str(error)
    return None


def _source(options: Options, root: Path, x_of: Callable[[np.lib.npyio.NpzFile], np.ndarray]) -> Source:
    """Return the samples of a file as a `Source`, with arrays of the types that it needs. ``x_of`` maps the open
    archive to ``x``. Errors become ValueError that names the file."""
    path = Path(root) / options.path
    try:
        with np.load(path, allow_pickle=False) as archive:
            y, part, subject = _labels(archive)
            x = x_of(archive)
        least = 2 if x.dtype == np.int32 else 0  # texts have only the label 0, but a Source needs two classes
        classes = options.classes or max(least, int(y.max()) + 1)
        subject = None if subject is None else subject.astype(np.int64)
        return Source(np.ascontiguousarray(x), y.astype(np.int64), part.astype(np.uint8), classes, subject=subject)
    except (OSError, ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: {reason(error)}; save it with numpy.savez(file, x=…, y=…, part=…)") from error


def _labels(archive: np.lib.npyio.NpzFile) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Read ``y`` [n], the labels, ``part`` [n], 0 or 1, and ``subject`` [n], the people, or None; each in the type in
    which it was saved. Raises ValueError for a wrong type; `Source` checks the shapes."""
    missing = [name for name in ("x", "y", "part") if name not in archive]
    if missing:
        raise ValueError(f"it lacks {' and '.join(missing)} (it has {', '.join(archive)})")
    y, part, subject = archive["y"], archive["part"], archive.get("subject")
    if y.dtype.kind not in "iu" or y.ndim != 1 or y.size == 0:
        raise ValueError(f"y is {y.dtype} {y.shape}; it must hold whole numbers, one for each row of x")
    if part.dtype.kind not in "iub" or not np.isin(part, (0, 1)).all():
        raise ValueError("part must hold 0 (train) or 1 (test) for each row of x")
    if subject is not None and subject.dtype.kind not in "iu":
        raise ValueError(f"subject is {subject.dtype} {subject.shape}; it must hold whole numbers")
    return y, part, subject


def _outline(archive: np.lib.npyio.NpzFile) -> np.ndarray:
    """Return an empty array with the dtype, the number of rows and the number of axes of ``x``, from the header of its
    file in the archive, so that no values are read. If these axes are not supported, it has the shape of ``x``, which a
    message then names."""
    with archive.zip.open("x.npy") as file:  # type: ignore[union-attr] # it is open
        (version, _minor), npy = np.lib.format.read_magic(file), np.lib.format
        read_header = npy.read_array_header_1_0 if version == 1 else npy.read_array_header_2_0  # also of version 3
        shape, _, dtype = read_header(file)
    if dtype.hasobject:
        return archive["x"]  # NumPy raises an error
    fits = len(shape) in LAYOUTS.get(dtype.name, ())
    # As many rows and axes, but of length 0, so that it takes no memory.
    return np.empty((shape[0], *[0] * (len(shape) - 1)) if fits else shape, dtype)
