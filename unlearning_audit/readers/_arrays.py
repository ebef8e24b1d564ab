"""Load other people's arrays, without ever unpickling."""

from pathlib import Path

import numpy as np

from unlearning_audit.store.files import reason

KINDS = {"b": "bool", "biu": "bool or whole numbers", "iu": "whole numbers", "f": "floating-point numbers"}


def load(path: Path, kinds: str) -> np.ndarray:
    """Load an array whose dtype kind is in ``kinds``; numbers 0 and 1 are accepted as bool. Raises ValueError that
    names the file."""
    try:
        value = np.load(path, allow_pickle=False)
    except Exception as error:
        raise ValueError(f"{path}: this array cannot be read ({reason(error)})") from None
    if not isinstance(value, np.ndarray):
        raise ValueError(f"{path}: this is an archive of several arrays; give a file with one array")
    if kinds == "b" and value.dtype.kind in "iuf" and np.isin(value, (0, 1)).all():
        value = value.astype(bool)
    if value.dtype.kind not in kinds:
        raise ValueError(f"{path}: has dtype {value.dtype}, but must be {KINDS[kinds]}")
    if kinds == "f" and not np.isfinite(value).all():
        raise ValueError(f"{path}: has values that are NaN or infinite; leave these models or samples out")
    return np.asarray(value)
