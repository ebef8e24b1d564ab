"""Load other people's arrays, without ever unpickling."""

from pathlib import Path

import numpy as np

from unlearning_audit.evaluation import headers

#: Kinds of dtype, as numpy calls them → words for messages.
KINDS = {"b": "bool", "biu": "bool or whole numbers", "iu": "whole numbers", "f": "floating-point numbers"}


def load(path: Path, kinds: str) -> np.ndarray:
    """Load an array whose dtype has one of the ``kinds``, a key of `KINDS` such as "biu". If ``kinds`` is "b", an array
    of numbers 0 and 1 becomes bool. Raises ValueError that names the file if it holds no array that can be read, for an
    array of another kind and, if ``kinds`` is "f", for NaN and infinity."""
    value = np.array(headers.open_array("this array", path))
    if kinds == "b" and value.dtype.kind in "iuf" and np.isin(value, (0, 1)).all():
        value = value.astype(bool)
    if value.dtype.kind not in kinds:
        raise ValueError(f"{path}: has dtype {value.dtype}, but must be {KINDS[kinds]}")
    if kinds == "f" and not np.isfinite(value).all():
        raise ValueError(f"{path}: has values that are NaN or infinite; leave these models or samples out")
    return np.asarray(value)
