"""Check the types and shapes of a user's arrays, without reading their values."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np

from unlearning_audit.store.files import reason

#: Name of an array → dtype kinds, as numpy calls them; dtype kinds → what to save instead of others.
KINDS = {
    **dict.fromkeys(("train", "forget", "heldout", "test"), "b"),
    **dict.fromkeys(("labels", "split", "block", "pair"), "iu"),
    **dict.fromkeys(("logits", "weight"), "f"),
}
SAVE = {
    "b": "a mask of bool; numbers 0 and 1 become one by {name}.astype(bool), a list of indices by mask[index] = True",
    "iu": "whole numbers; one-hot labels become whole numbers by labels.argmax(axis=1)",
    "f": "float16, float32 or float64",
}


def open_array(name: str, path: Path) -> np.ndarray:
    """Open an array that was saved with numpy.save, without reading its values. Raises ValueError that names the file
    if it does not hold one array, or holds Python objects, which are never unpickled."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:
        raise ValueError(f"{path}: {name} cannot be read ({reason(error)}); save it with numpy.save") from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path}: {name} is an archive of several arrays; save one array with numpy.save")
    return array


def check(files: Mapping[str, Path], size: tuple[int, int] | None = None) -> None:
    """Check the types and shapes of one population's arrays without reading their values.

    Parameters
    ----------
    files
        Name → path, as in `external.read`.
    size
        The numbers of models and samples, if checkpoints lie in the place of logits.

    Raises
    ------
    ValueError
        If an array is wrong. The message names the file, what is wrong and what to do.
    """
    # Checkpoints in the place of logits are no array.
    names = [name for name in files if name in KINDS and (name != "logits" or not size)]
    arrays = {name: open_array(name, files[name]) for name in names}
    if "logits" in arrays:
        shape = arrays["logits"].shape
        found = f"{files['logits']}: logits has shape {list(shape)}"
        if len(shape) != 3:
            hint = "; for a single model give logits[None]" if len(shape) == 2 else ""
            raise ValueError(f"{found}, but must be [models, samples, classes]{hint}")
        if not shape[0] or not shape[1] or shape[2] < 2:
            raise ValueError(f"{found}; it needs a model, a sample and two classes at least")
        size = shape[:2]
    for name, array in arrays.items():
        if array.dtype.kind not in KINDS[name]:
            expected = SAVE[KINDS[name]].format(name=name)
            raise ValueError(f"{files[name]}: {name} has dtype {array.dtype}, but must be {expected}")
        if size and name != "logits":
            _same_size(name, files, array.shape, size)


def same_classes(files: Iterable[Path]) -> None:
    """Raise ValueError unless all files of logits have as many classes as the first. The message names both files."""
    classes = {path: open_array("logits", path).shape[-1] for path in files}
    reference, expected = next(iter(classes.items()), (None, 0))
    for path, count in classes.items():
        if count != expected:
            raise ValueError(f"{path} has {count} classes, but {reference} has {expected}; all need the same classes")


def _same_size(name: str, files: Mapping[str, Path], shape: tuple[int, ...], size: tuple[int, int]) -> None:
    """Raise ValueError if an array has another number of models or samples than the logits.

    A population without a mask of its own takes the mask from another population's folder. Such a mask may have another
    number of models; `external.read` checks that its rows are all equal.

    Parameters
    ----------
    name
        The name of the array, one of `KINDS`.
    files
        Name → path.
    shape
        The shape of the array.
    size
        The numbers of models and samples.
    """
    masks, by_sample, by_model = ("train", "forget", "heldout"), size[1:], size[:1]  # [samples] and [models]
    shapes: dict[str, list[tuple[int, ...]]] = {"labels": [by_sample, size], "split": [by_model], "block": [by_model]}
    shapes |= {mask: [size, by_sample] for mask in masks}
    expected = shapes.get(name, [by_sample])
    from_elsewhere = name in masks and Path(files[name]).parent != Path(files["logits"]).parent
    if shape not in expected and not (from_elsewhere and shape[1:] == by_sample):
        refuse_shape(name, files, shape, expected)


def refuse_shape(
    name: str, files: Mapping[str, Path], shape: tuple[int, ...], expected: Sequence[tuple[int, ...]]
) -> NoReturn:
    """Raise ValueError: an array, called ``name``, "has shape [3], but must be [4] or [2, 4]".

    Labels [samples] may be right, and the logits wrong: if the axis of classes, or that of models, is as long as the
    labels, the message says to exchange this axis with that of samples.

    Parameters
    ----------
    name
        The name of the array.
    files
        Name → path.
    shape
        The shape of the array.
    expected
        The accepted shapes.
    """
    # In the place of logits there may be checkpoints, which are no array. There are no labels then.
    logits = open_array("logits", files["logits"]).shape if name == "labels" else ()
    # Length of an axis → the axes that swapaxes exchanges; of logits [models, samples, classes], 2 are the classes.
    to_exchange = {logits[2]: "1, 2", logits[0]: "0, 1"} if logits else {}
    axes = to_exchange.get(shape[0]) if len(shape) == 1 else None
    if axes:
        raise ValueError(
            f"{files['logits']}: logits has shape {list(logits)}, but must be [models, samples, classes], and there "
            f"are labels of {shape[0]} samples; give logits.swapaxes({axes})"
        )
    shapes = " or ".join(str(list(accepted)) for accepted in expected)
    raise ValueError(
        f"{files[name]}: {name} has shape {list(shape)}, but must be {shapes}; {files['logits']} says how many models "
        "and samples there are"
    )
