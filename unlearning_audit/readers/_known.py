"""Known files without a number for each sample: what each is, and what the user should give or ask for instead."""

import re
from pathlib import Path

from unlearning_audit.readers import _tables, _texts

#: Advice if only a summary exists.
ASK = "ask its publisher for a score of every sample, or compute the scores from the models"

#: Pattern of the file's name → the sentence about it.
NAMES = (
    (r"_SUMMARY\.json(\.gz)?$", "it holds means only; the *_EVAL.json of the same run has a number for every sample"),
    (r"^aggregate_?stats?\.csv$", f"it holds one line for each model; {ASK}"),
    (r"^trainer_state\.json$", f"it is the log of a training run, step by step; {ASK}"),
    (r"^wandb-(summary|metadata)\.json$", f"it is the summary of a logged run; {ASK}"),
    (r"(^|_)logits?\.np[yz]$", "it holds logits; give arrays of numpy.save with --target, --retrain and --labels"),
    (r"\.(pkl|pickle)$", "a pickle may run code when it is read; save its arrays with numpy.save or as a table"),
    (r"\.(pt|pth|bin|ckpt|tar)$", "it holds weights or pickled arrays; save an array with numpy.save(name, x.numpy()), "
                                  "and a state dict with safetensors.torch.save_file"),
)  # fmt: skip

#: Columns of a table, all of which must be there → the sentence about it.
HEADERS = (
    (
        {"verbmem_f", "knowmem_r"},
        "it holds means, one line for each model; the folder that MUSE writes beside it has "
        "privleak/log.json of each model, with a number for every text",
    ),
    ({"fpr", "tpr"}, f"it is a curve, which has no score of single samples; {ASK}"),
    ({"attack", "auc"}, f"it holds one line for each attack; {ASK}"),
    ({"_step", "_runtime"}, f"it is the export of a logged run, step by step; {ASK}"),
    ({"epoch", "loss"}, f"it is the log of a training run, epoch by epoch; {ASK}"),
)

#: Fields of JSON, all of which must be there → the sentence about it.
FIELDS = (
    ({"results", "versions"}, "it holds the means that lm-eval prints; run it with --log_samples, which writes a line "
                              "for each sample"),
)  # fmt: skip


def sentence(path: Path) -> str:
    """Return a sentence on a file that is known to hold no values per sample, which says what to give in its place; ""
    for other files. A file is known by its name, by the columns of a text table, or by the fields of JSON. A table with
    a column "sample" may hold values per sample, whatever its other columns are."""
    for pattern, why in NAMES:
        if re.search(pattern, path.name):
            return f"{path}: {why}"
    kind = _texts.kind(path)
    if kind in (".csv", ".tsv", ".txt"):
        names = {name.lower() for name in _tables.header(path)}
        if "sample" not in names:
            return next((f"{path}: {why}" for columns, why in HEADERS if columns <= names), "")
    if kind == ".json":
        head = _texts.head(path)
        return next((f"{path}: {why}" for fields, why in FIELDS if all(f'"{name}"' in head for name in fields)), "")
    return ""


def first_sentence(path: Path) -> str:
    """Return what the first file, in the order of paths, at or below ``path`` is that is known to hold no values per
    sample, and what to give in its place; "" if there is no such file."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return next((text for file in files if (text := sentence(file))), "")
