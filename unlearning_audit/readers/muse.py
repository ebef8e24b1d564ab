"""MUSE's own logs (Shi et al. 2024): ``privleak/log.json`` of a model, which holds lists ``forget``, ``retain`` and
``holdout`` of records, each with the text and what attacks read of it; more is less like a member.

``auc.json`` beside it holds the AUCs. The table that the tool writes holds means alone.
"""

from pathlib import Path

import numpy as np

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.readers import _recompute, _texts, _words
from unlearning_audit.readers._model import FORGET, HELDOUT, RETAIN, Agreement, Model, Reading, Unread, read_all

#: What a split of the log is here.
SPLITS = {"forget": FORGET, "holdout": HELDOUT, "retain": RETAIN}


class Options(Settings):
    """None: everything is in the file."""


def files(place: Path) -> list[Path]:
    """Logs at or below a path, recognised by their structure."""
    paths = [path for path in _texts.below(place, ".json") if '"PPL' in _texts.head(path)]
    return [path for path in paths if _is_log(_texts.read_json(path))]


def _is_log(content: object) -> bool:
    return isinstance(content, dict) and all(isinstance(content.get(split), list) for split in ("forget", "holdout"))


def read(paths: list[Path], options: Options, root: Path) -> list[Model | Unread]:
    """One model for each log, or why it cannot be read."""
    return read_all(paths, lambda path: [_model(path, root)])


def _model(path: Path, root: Path) -> Model:
    hints = _words.of_path(path, root)
    model = Model(
        path, hints.role, hints.names, hints.recipe, hints.method, hints.step, hints.task, **hints.origin
    )  # fmt: skip
    log = {split: rows for split, rows in _texts.read_json(path).items() if split in SPLITS}
    ids = {split: _texts.identities(split, (str(row["text"]) for row in rows)) for split, rows in log.items()}
    attacks = [name for name in log["forget"][0] if name != "text"]
    values = {split: {name: _column(path, split, rows, name) for name in attacks} for split, rows in log.items()}
    model.ids = ids["forget"] + ids["holdout"]
    model.forget = np.arange(len(model.ids)) < len(ids["forget"])
    model.heldout = ~model.forget
    for name in attacks:
        label = name.lower().replace("%", "").replace("/", "_").replace("-", "_")
        model.scores[label] = -np.concatenate([values["forget"][name], values["holdout"][name]])
        for split in values:
            reading = Reading(SPLITS[split], ids[split], values[split][name], -1, share=False)
            model.readings[f"{split}_{label}"] = reading
    beside = path.with_name("auc.json")
    printed = _texts.read_json(beside) if beside.is_file() else {}
    for name in attacks:
        value = _recompute.auc(member=-values["holdout"][name], nonmember=-values["forget"][name])
        stated = float(printed.get(f"forget_holdout_{name}", np.nan))
        model.agreements.append(Agreement(f"forget_holdout_{name}", stated, value, "AUC of holdout over forget"))
    return model


def _column(path: Path, split: str, rows: list[dict], name: str) -> np.ndarray:
    value = np.array([row.get(name, np.nan) for row in rows], np.float64)
    if not np.isfinite(value).all():
        raise ValueError(f"{path}: {split}: {name!r} is missing, NaN or infinite for some text; leave it out")
    return value
