"""Sentences on files of a user's folder in a format that is not read."""

from collections.abc import Iterable
from pathlib import Path

#: Suffixes of files of weights, and of all files that may hold an array.
WEIGHTS = (".pt", ".pth", ".bin", ".ckpt", ".tar")
ARRAYS = (".npz", ".csv", ".txt", *WEIGHTS, ".pkl", ".pickle")


def other_format(name: str, folders: Iterable[Path], also_text: bool = True) -> str:
    """Return a sentence if one of ``folders`` contains the array ``name`` in another format than .npy, else "".

    Parameters
    ----------
    also_text
        Whether text files count. A text such as train.csv may be a data set, and not the array train.
    """
    paths = [folder / f"{name}{suffix}" for folder in folders for suffix in ARRAYS]
    found = [path for path in paths if path.is_file() and (also_text or path.suffix not in (".csv", ".txt"))]
    return f"{found[0]}: {name} is read from {name}.npy only; save the array with numpy.save" if found else ""


def instead_of_logits(folder: Path) -> str:
    """Return a sentence that says, of a folder without logits.npy and without readable models, what it lacks and what
    to do."""
    if sentence := other_format("logits", [folder]):
        return sentence
    weights = sorted(path.name for path in folder.iterdir() if path.suffix in WEIGHTS)
    if weights:
        return (
            f"{folder}: {weights[0]} cannot be read; models are read from .safetensors, which "
            "safetensors.torch.save_file writes, and logits from logits.npy"
        )
    return (
        f"{folder}/logits.npy: this file is missing, and there are no models either (state dicts in .safetensors, or "
        "folders of transformers or peft); save it with numpy.save"
    )


def holds_arrays(folder: Path) -> bool:
    """Return whether a file in a folder could be logits or models in a format that is not read; False without the
    folder."""
    return folder.is_dir() and any(path.suffix in ARRAYS for path in folder.iterdir())
