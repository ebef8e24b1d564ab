"""Advice on files of a user's folder in a format that is not read, and on folders with an unknown name."""

from collections.abc import Iterable
from pathlib import Path

#: Suffixes of files of weights, and the line of code that converts them.
WEIGHTS = (".pt", ".pth", ".bin", ".ckpt", ".tar")
TO_MODEL = (
    "safetensors.torch.save_file(torch.load({old!r}, weights_only=True), {new!r}); if the loaded object holds the "
    "state dict under a key, such as 'state_dict', save that entry"
)

#: Suffix of a file that holds an array → the line of code that converts it.
TO_ARRAY = {
    ".npz": "numpy.save({new!r}, numpy.load({old!r})[{name!r}]), with the name that it has in the archive",
    ".csv": "numpy.save({new!r}, numpy.loadtxt({old!r}, delimiter=','))",
    ".txt": "numpy.save({new!r}, numpy.loadtxt({old!r}))",
    **dict.fromkeys(WEIGHTS, "numpy.save({new!r}, torch.load({old!r}, weights_only=True).cpu().numpy())"),
    **dict.fromkeys(
        (".pkl", ".pickle"), "save the array with numpy.save({new!r}, …), because a pickle may run code when it is read"
    ),
}


def other_format(name: str, folders: Iterable[Path], also_text: bool = True) -> str:
    """Return a sentence, with the code to convert it, if one of ``folders`` contains the array ``name`` in another
    format than .npy; "" otherwise.

    ``also_text``: whether text files count. A text may be a data set: train.csv need not be the mask.
    """
    for folder in folders:
        for suffix, line in TO_ARRAY.items():
            path = folder / f"{name}{suffix}"
            if path.is_file() and (also_text or suffix not in (".csv", ".txt")):
                advice = line.format(old=str(path), new=str(path.with_suffix(".npy")), name=name)
                return f"{path}: {name} is read from {name}.npy only; {advice}"
    return ""


def instead_of_logits(folder: Path) -> str:
    """Return a sentence on a folder without logits.npy and without readable models: what it contains instead."""
    if sentence := other_format("logits", [folder]):
        return sentence
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    weights = [folder / name for name in names if Path(name).suffix in WEIGHTS]
    if weights:
        old, new = str(weights[0]), str(weights[0].with_name(weights[0].name.partition(".")[0] + ".safetensors"))
        return (
            f"{folder}: {_listed([path.name for path in weights])} cannot be read; models are read from .safetensors "
            f"and logits from logits.npy; for each of them {TO_MODEL.format(old=old, new=new)}"
        )
    contents = f"the folder holds {_listed(names)}" if names else "the folder is empty"
    return (
        f"{folder}/logits.npy: this file is missing, and there are no models either (state dicts in .safetensors, or "
        f"folders of transformers or peft); save it with numpy.save; {contents}"
    )


def holds_arrays(folder: Path) -> bool:
    """Return whether a file in a folder could be logits or models in a format that is not read."""
    return folder.is_dir() and any(path.suffix in TO_ARRAY for path in folder.iterdir())


def _listed(names: list[str]) -> str:
    """List names, three at most: "a, b, c and 4 more"."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
