"""Arrays between stages whose dtypes and shapes are checked when they are read."""

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, ClassVar, Self, get_type_hints

import numpy as np

from unlearning_audit.store.files import Arrays, Check, read_arrays


class Stored(Arrays):
    """The arrays of one file, whose dataclass says what each of them must be.

    A field's type is followed by the kinds of its dtype, then the names of its axes:
    ``Annotated[np.ndarray, "f models samples"]``. "..." stands for any further axes. Without axes, the field is a
    single value. Axes of one name have one length. A field with a default may be missing.

    Parameters
    ----------
    GAPS
        Fields in which NaN stands for no value.
    DIVERGES
        Whether NaN and infinite values elsewhere mean that a model diverged.
    """

    GAPS: ClassVar[tuple[str, ...]] = ()
    DIVERGES: ClassVar[bool] = False

    @classmethod
    def read(cls, path: str | Path, **sizes: int | None) -> Self:
        """Read a file whose axes have the lengths ``sizes``, where these are known.

        Raises ArtifactError that names the file and the field, FailedError if there are no models, and NotFiniteError
        for values of a model that diverged.
        """
        return cls(**cls.checked(Check(path, read_arrays(path), may_diverge=cls.DIVERGES), **sizes))

    @classmethod
    def checked(cls, check: Check, **sizes: int | None) -> dict[str, Any]:
        """Return name → value of each field of the file ``check``: an array, or a single value for a field without
        axes. A field with a default that the file lacks is left out.

        Parameters
        ----------
        sizes
            Axis → its length, where that is known.

        Raises
        ------
        ArtifactError
            If a field without a default is missing, or if the dtype, the shape or the values of one are not what they
            must be.
        """
        values: dict[str, Any] = {}
        types = get_type_hints(cls, include_extras=True)
        for field in fields(cls):
            if field.name not in check.arrays and not field.default is field.default_factory is MISSING:
                continue
            kinds, *axes = types[field.name].__metadata__[0].split()  # Annotated[np.ndarray, "f models rows"]
            named = [axis for axis in axes if axis != "..."]
            unnamed = np.ndim(check.arrays.get(field.name, 0)) - len(named) if named != axes else 0
            shape = (*map(sizes.get, named), *[None] * unnamed)  # an axis without a known size may have any length
            value = check.field(field.name, kinds, shape, finite=field.name not in cls.GAPS)
            sizes |= zip(named, value.shape, strict=False)  # axes of the same name in later fields must be as long
            values[field.name] = value if axes else value.item()
        return values
