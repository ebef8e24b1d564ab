"""Arrays: an ``.npz`` file of the user's own with x, y and part."""

import zipfile
from pathlib import Path

import numpy as np
from pydantic import Field

from unlearning_audit.artifacts.files import reason
from unlearning_audit.data import Source
from unlearning_audit.plugins.settings import Settings

#: Nothing is downloaded.
AT_HAND = True


class Options(Settings):
    """``path``: the file, relative to the working directory; ``classes``: their number, if not the highest
    label plus one; of tokens at least two."""

    path: str
    classes: int | None = Field(None, ge=2)


def load(options: Options, root: Path) -> Source:
    """``x`` uint8 or float32 [n, channels, height, width], float32 [n, features] or int32 [n, length];
    ``y`` integers [n] from 0; ``part`` [n], 0 or false for train, 1 or true for test; if they are of people,
    ``subject`` integers [n], whose each is. Nothing is unpickled.

    Raises ValueError that names the file and the field.
    """
    path = Path(root) / options.path
    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [name for name in ("x", "y", "part") if name not in archive]
            if missing:
                raise ValueError(f"it lacks {' and '.join(missing)} (it has {', '.join(archive)})")
            x, y, part = archive["x"], archive["y"], archive["part"]
            subject = archive.get("subject")
        if y.dtype.kind not in "iu" or y.size == 0:
            raise ValueError(f"y is {y.dtype} {y.shape}; it must hold whole numbers, one for each row of x")
        if part.dtype.kind not in "iub" or not np.isin(part, (0, 1)).all():
            raise ValueError("part must hold 0 (train) or 1 (test) for each row of x")
        if subject is not None and subject.dtype.kind not in "iu":
            raise ValueError(f"subject is {subject.dtype} {subject.shape}; it must hold whole numbers")
        least = 2 if x.dtype == np.int32 else 0  # texts have labels 0: two classes are how they enter
        classes = max(least, int(y.max()) + 1) if options.classes is None else options.classes
        subject = None if subject is None else subject.astype(np.int64)
        return Source(np.ascontiguousarray(x), y.astype(np.int64), part.astype(np.uint8), classes, subject=subject)
    except (OSError, ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: {reason(error)}; save it with numpy.savez(file, x=…, y=…, part=…)") from error
