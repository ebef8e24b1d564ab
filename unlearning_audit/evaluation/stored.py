"""Arrays between stages whose dtypes and shapes are checked by a table when they are read."""

from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from unlearning_audit.store.files import Arrays, Check, read_arrays


class Stored(Arrays):
    """The arrays of one file, whose dataclass says what each of them must be.

    Parameters
    ----------
    FIELDS
        Name → kinds of dtype, and the names of the axes ("..." stands for any further ones; without axes, the field is
        a single value). Axes of one name have one length. A field with a default may be missing.
    GAPS
        Fields in which NaN stands for no value.
    DIVERGES
        Whether NaN and infinite values elsewhere mean that a model diverged.
    """

    FIELDS: ClassVar[dict[str, tuple[str, str]]]
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
        """Return name → value of each field of the file ``check``.

        Parameters
        ----------
        sizes
            Axis → its length, where that is known.

        Raises
        ------
        ArtifactError
            If a field is not what ``FIELDS`` says, or if one without a default is missing.
        """
        needed = {field.name for field in fields(cls) if field.default is field.default_factory is MISSING}
        table = {name: kind for name, kind in cls.FIELDS.items() if name in needed or name in check.arrays}
        return checked(check, table, cls.GAPS, **sizes)


def checked(
    check: Check, table: Mapping[str, tuple[str, str]], gaps: Collection[str] = (), **sizes: int | None
) -> dict[str, Any]:
    """Return name → value of the fields in a file, ``check``, that ``table`` lists, as `Stored.FIELDS` does: an array,
    or a single value for a field without axes.

    Parameters
    ----------
    gaps
        Fields in which NaN is allowed.
    sizes
        Axis → its length, where that is known.

    Raises
    ------
    ArtifactError
        If a field is missing, or if its dtype, its shape or its values are not what they must be.
    """
    values: dict[str, Any] = {}
    for name, (kinds, axes) in table.items():
        named = axes.removesuffix("...").split()
        unnamed = np.ndim(check.arrays.get(name, 0)) - len(named) if axes.endswith("...") else 0
        # An axis without a known size may have any length.
        value = check.field(name, kinds, (*map(sizes.get, named), *[None] * unnamed), finite=name not in gaps)
        sizes |= zip(named, value.shape, strict=False)  # axes of the same name in later fields must be as long
        values[name] = value if axes else value.item()
    return values
