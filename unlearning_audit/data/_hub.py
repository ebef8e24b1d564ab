"""Read data sets row by row: from the hub, or from a folder that the library datasets saved or can load."""

import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Files that show that ``save_to_disk`` wrote a folder.
SAVED = ("dataset_dict.json", "state.json")


def rows(
    root: Path, repository: str, subset: str | None, revision: str | None, split: str, columns: list[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one ``split`` of a data set, column → value each, after checking that it has the ``columns``.

    It is read from the folder ``root / repository`` (from the folder ``subset`` in it, if there is one), or streamed
    from the hub's data set of that name, in its version ``revision``. Raises ValueError that names the data set, its
    splits or its columns.
    """
    dataset = opened(root, repository, subset, revision, split)
    missing = [name for name in columns or [] if name not in (dataset.column_names or [])]
    if missing:
        existing = ", ".join(dataset.column_names or ["unknown ones"])
        raise ValueError(f"{repository}: there is no column {missing[0]!r}; it has {existing}")
    try:
        yield from dataset
    except Exception as error:  # any error of the library, the network or the disk
        raise ValueError(f"{repository}: split {split!r} cannot be read ({error})") from error


def opened(root: Path, repository: str, subset: str | None, revision: str | None, split: str) -> Any:
    """Return one ``split`` of a data set, as the package ``datasets`` opens it.

    It lies in the folder ``root / repository`` (in the folder ``subset`` in it, if there is one), or on the hub, under
    this name and in its version ``revision``. A data set that is saved without splits counts as the split "train".

    A folder may be written by ``save_to_disk``, or have a layout that ``load_dataset`` knows, such as train.csv,
    data/train-*.parquet, or pictures in train/CLASS/. Raises ValueError if the data set cannot be opened or has no such
    split.
    """
    import datasets

    folder = root / repository
    if subset is not None and (folder / subset).is_dir():
        folder = folder / subset
    try:
        if not folder.is_dir():
            return datasets.load_dataset(repository, subset, revision=revision, split=split, streaming=True)
        if any((folder / name).exists() for name in SAVED):
            whole = datasets.load_from_disk(str(folder))
        else:
            whole = datasets.load_dataset(str(folder), cache_dir=_temporary_folder().name)
    except Exception as error:  # any error of the library, the network or the disk
        where = "cannot be read" if folder.is_dir() else "is neither a folder nor a data set that can be downloaded"
        raise ValueError(f"{repository} {where} ({type(error).__name__}: {error})") from error
    if not isinstance(whole, datasets.DatasetDict):
        if split != "train":
            raise ValueError(f"{repository} is a data set without splits; write train: train, and no field test")
        return whole
    if split not in whole:
        raise ValueError(f"{repository} has no split {split!r}; it has {', '.join(whole)}")
    return whole[split]


@functools.cache
def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return the folder in which files that are converted from a user's folder are kept: one for the process, which is
    deleted at its end."""
    return tempfile.TemporaryDirectory(prefix="unlearning-datasets-")
