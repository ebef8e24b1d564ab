"""Known files without a number for each sample: what each is, and what the user should give or ask for instead."""

import re
from pathlib import Path

#: Pattern of the file's name → the sentence about it.
NAMES = (
    (r"_SUMMARY\.json(\.gz)?$", "it holds means only; the *_EVAL.json of the same run has a number for every sample"),
    (r"(^|_)logits?\.np[yz]$", "it holds logits; give arrays of numpy.save with --target, --retrain and --labels"),
    (r"\.(pkl|pickle)$", "a pickle may run code when it is read; save its arrays with numpy.save or as a table"),
    (r"\.(pt|pth|bin|ckpt|tar)$", "it holds weights or pickled arrays; save an array with numpy.save(name, x.numpy()), "
                                  "and a state dict with safetensors.torch.save_file"),
)  # fmt: skip


def sentence(path: Path) -> str:
    """Return a sentence on a file whose name says that it holds no values per sample, with what to give instead; "" for
    others."""
    return next((f"{path}: {why}" for pattern, why in NAMES if re.search(pattern, path.name)), "")


def below(place: Path) -> str:
    """Return the sentence about the first known file at or below a path; "" if there is none."""
    paths = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
    return next((text for path in paths if (text := sentence(path))), "")
