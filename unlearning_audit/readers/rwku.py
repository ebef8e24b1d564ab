"""RWKU's own logs (Jin et al. 2024): ``<run>/<target>/forget_mia.json``, which holds under ``results`` a list of values
of each attack, one for each text about the target; more is more like a member. ``retain_mia.json`` is on other texts.

Texts stand there by position alone. The tool leaves out those whose loss is NaN, so that models are compared where they
hold as many.
"""

from pathlib import Path

import numpy as np

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.readers import _texts, _words
from unlearning_audit.readers._model import FORGET, RETAIN, Agreement, Model, Reading, Unread, read_all

#: The part of the data → its file.
PARTS = {FORGET: "forget_mia.json", RETAIN: "retain_mia.json"}
#: What the file prints the mean of → which list it is of.
PRINTED = {"loss": "loss", "zlib": "zlib", "mink20": "mink++_0.2"}


class Options(Settings):
    """None: everything is in the file."""


def files(place: Path) -> list[Path]:
    """Logs at or below a path, by their names."""
    return [path for path in _texts.below(place, ".json") if path.name == PARTS[FORGET]]


def read(paths: list[Path], options: Options, root: Path) -> list[Model | Unread]:
    """One model for each target, or why it cannot be read."""
    return read_all(paths, lambda path: [_model(path, root)])


def _model(path: Path, root: Path) -> Model:
    target = path.parent.name
    hints = _words.of_path(path.parent, root)
    names = tuple(name for name in hints.names if name not in target.split("_"))
    model = Model(path, hints.role, names, hints.recipe, hints.method, hints.step, target, **hints.origin)
    for part, name in PARTS.items():
        if not (file := path.with_name(name)).is_file():
            continue
        log = _texts.read_json(file)
        lists = log.get("results") if isinstance(log, dict) else None
        if not isinstance(lists, dict) or not lists:
            raise ValueError(f"{file}: 'results' must hold a list of values for each attack")
        values = {name: np.array(column, np.float64) for name, column in lists.items()}
        ids = tuple(f"{part}:{target}/{len(values['loss'])}:{i}" for i in range(len(values["loss"])))
        for name, value in values.items():
            if value.shape != (len(ids),) or not np.isfinite(value).all():
                raise ValueError(f"{file}: results.{name} must hold {len(ids)} finite numbers, as results.loss does")
            model.readings[f"{part}_{name}"] = Reading(part, ids, value, share=False)
            if part == FORGET:
                model.scores[name] = value
        model.readings[f"{part}_probability"] = Reading(part, ids, np.exp(np.minimum(values["loss"], 0)))
        model.agreements += [
            Agreement(f"{part} {name}", float(log[name]), float(values[column].mean()), f"mean of {column}")
            for name, column in PRINTED.items() if name in log and column in values
        ]  # fmt: skip
        if part == FORGET:
            model.ids, model.forget = ids, np.ones(len(ids), bool)
            model.heldout = ~model.forget
    return model
