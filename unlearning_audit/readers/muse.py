"""MUSE's own logs (Shi et al. 2024), in a folder for each model: ``privleak/log.json``, which holds lists ``forget``,
``retain`` and ``holdout`` of records, each with the text and its value for each attack (more is less like a member),
and ``verbmem_f``, ``knowmem_f`` and ``knowmem_r``, each with a ``log.json`` of prompts, answers and their ROUGE.

``auc.json`` and ``agg.json`` beside them hold AUCs and means. The table that the tool writes holds only means.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.readers import _recompute, _texts, _words
from unlearning_audit.readers._model import FORGET, HELDOUT, RETAIN, Agreement, Model, Reading, Unread, read_all

#: The part of the data for each split in the log of attacks, and for the answers in each folder.
SPLITS = {"forget": FORGET, "holdout": HELDOUT, "retain": RETAIN}
ANSWERS = {"verbmem_f": FORGET, "knowmem_f": FORGET, "knowmem_r": RETAIN}
#: The kind of ROUGE that is read of each answer, as in the tool's own table, and the kinds whose means are compared
#: with printed ones.
READ_ROUGE, COMPARED_ROUGES = "rougeL", ("rougeL", "rougeL_recall", "rouge1", "rouge1_recall")


def files(place: Path) -> list[Path]:
    """Return the logs at or below a path, recognised by their structure."""
    return [path for path in _texts.below(place, ".json") if _is_log(path)]


def _is_log(path: Path) -> bool:
    """Return whether a file is a log of answers, recognised by its folder and the beginning of its text, or a log of
    attacks, recognised by its parts of the data. The whole file is read only if its beginning has a perplexity."""
    head = _texts.head(path)
    if path.parent.name in ANSWERS:
        return path.name == "log.json" and f'"{READ_ROUGE}"' in head
    content = _texts.read_json(path) if '"PPL' in head else None
    return isinstance(content, dict) and all(isinstance(content.get(split), list) for split in ("forget", "holdout"))


def read(paths: list[Path], options: object, root: Path) -> list[Model | Unread]:
    """Return one model for each folder, or an `Unread` with the reason why the folder cannot be read."""
    folders: dict[Path, list[Path]] = {}  # folder of a model → its logs, which lie in subfolders
    for path in paths:
        folders.setdefault(path.parent.parent, []).append(path)
    return read_all(folders, lambda folder: [_model(folder, folders[folder], root)])


def _model(folder: Path, paths: list[Path], root: Path) -> Model:
    """Read one MUSE model from its logs ``paths``, which lie in subfolders of ``folder``: scores of attacks from
    privleak, and ROUGE of answers from verbmem_f, knowmem_f and knowmem_r.

    The names of ``folder`` and of the folders between it and ``root``, the path that the user named, give the model's
    name. Raises ValueError if none of the logs is of the forget set.
    """
    root = root if folder.is_relative_to(root) else folder  # the user may name a folder of logs, or one log
    # A path directly in the model's folder, so that names of subfolders such as privleak are no words of the model.
    model = replace(_words.model_of_path(folder / paths[0].name, root), file=paths[-1])
    for path in paths:
        if path.parent.name in ANSWERS:
            _add_answers(model, path)
        else:
            _add_attacks(model, path)
    if FORGET not in model.samples:
        raise ValueError(f"{paths[0]}: this folder has no log of the forget set (privleak, verbmem_f or knowmem_f)")
    return model


def _add_answers(model: Model, path: Path) -> None:
    """Add the ROUGE-L of every answer in the log ``path`` to a model, as the reading that is named after the folder.
    Compare the mean of each kind of ROUGE with the mean printed in agg.json, if that file exists."""
    rows, name = _texts.read_json(path), path.parent.name
    ids = _texts.identities(name, (str(row["question"] if "question" in row else row["prompt"]) for row in rows))
    model.readings[name] = Reading(ANSWERS[name], ids, _column(rows, READ_ROUGE))
    printed = _printed(path.with_name("agg.json"))
    for field in COMPARED_ROUGES:
        if f"mean_{field}" in printed:
            mean = float(_column(rows, field).mean())
            model.agreements.append(Agreement(f"{name} mean_{field}", float(printed[f"mean_{field}"]), mean, "mean"))


def _add_attacks(model: Model, path: Path) -> None:
    """Add the scores of attacks in the log ``path`` to a model, on forgotten and held-out samples. Logs have larger
    values for less familiar samples, so scores have the opposite sign. The unchanged values of each part of the data,
    "retain" included, are added as readings. Recomputed AUCs are compared with the AUCs printed in auc.json, if that
    file exists."""
    log = {split: rows for split, rows in _texts.read_json(path).items() if split in SPLITS}
    ids = {split: _texts.identities(split, (str(row["text"]) for row in rows)) for split, rows in log.items()}
    attacks = [name for name in log["forget"][0] if name != "text"]  # all records have the same fields
    values = {split: {name: _column(rows, name) for name in attacks} for split, rows in log.items()}
    model.divide(ids["forget"], ids["holdout"])
    printed = _printed(path.with_name("auc.json"))
    for name in attacks:
        label = name.lower().replace("%", "").replace("/", "_").replace("-", "_")
        model.scores[label] = -np.concatenate([values["forget"][name], values["holdout"][name]])
        for split, by_attack in values.items():
            reading = Reading(SPLITS[split], ids[split], by_attack[name], direction=-1, share=False)
            model.readings[f"{split}_{label}"] = reading
        # The AUC that MUSE prints takes held-out samples for members.
        value = _recompute.auc(member=-values["holdout"][name], nonmember=-values["forget"][name])
        stated = float(printed.get(f"forget_holdout_{name}", np.nan))
        model.agreements.append(Agreement(f"forget_holdout_{name}", stated, value, "AUC of holdout over forget"))


def _printed(path: Path) -> dict[str, Any]:
    """Return the printed numbers in a JSON file by name; {} if there is no such file."""
    return _texts.read_json(path) if path.is_file() else {}


def _column(rows: list[dict[str, Any]], name: str) -> np.ndarray:
    """Return the field ``name`` of each of some records (``rows``), float64 [records], NaN where it is missing."""
    return np.array([row.get(name, np.nan) for row in rows], np.float64)
