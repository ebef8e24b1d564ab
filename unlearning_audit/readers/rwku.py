"""RWKU's own logs (Jin et al. 2024), in a folder ``<run>/<target>``: ``forget_mia.json``, which holds under ``results``
a list of values of each attack, one for each text about the target (more is more like a member), and ``forget.json``,
which holds questions of three levels with answer and prediction. ``retain_mia.json`` and ``neighbor.json`` are about
other subjects.

The log of attacks identifies texts only by their position. The tool leaves out texts whose loss is NaN, so only models
with equally many texts are compared.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.readers import _recompute, _texts, _words
from unlearning_audit.readers._model import FORGET, RETAIN, Agreement, Model, Reading, Unread, read_all

#: Part of the data → its files of attacks and of answers.
PARTS = {FORGET: ("forget_mia.json", "forget.json"), RETAIN: ("retain_mia.json", "neighbor.json")}
#: Name of a printed mean → the list of which it is the mean.
PRINTED = {"loss": "loss", "zlib": "zlib", "mink20": "mink++_0.2"}


def files(place: Path) -> list[Path]:
    """Return the logs about the forgotten target at or below a path, recognised by their names and fields."""
    paths = [path for path in _texts.below(place, ".json") if path.name in PARTS[FORGET]]
    return [path for path in paths if any(mark in _texts.head(path) for mark in ('"mink20"', '"level_1_rouge_l_r"'))]


def read(paths: list[Path], options: object, root: Path) -> list[Model | Unread]:
    """Return one model for each target, the subject that a model had to forget; an `Unread` for a target whose logs
    cannot be read."""
    folders = {path.parent: path for path in paths}
    return read_all(folders, lambda folder: [_model(folders[folder], root)])


def _model(path: Path, root: Path) -> Model:
    """Return the model of a target's folder, in which the log ``path`` lies, with the values of all logs of attacks and
    of answers there; a log that is missing is skipped."""
    folder = path.parent
    # The names of folders below ``root`` and above the target's folder are read. If the user named the target's folder
    # itself, its parent, the folder of the run, takes the place of ``root``.
    hints = _words.model_of_path(folder, folder.parent if folder == root else root)
    words = tuple(word for word in hints.words if word not in folder.name.split("_"))  # the target is the task
    model = replace(hints, file=path, words=words, task=folder.name)
    for part, (attacks, answers) in PARTS.items():
        if (file := path.with_name(attacks)).is_file():
            _add_attacks(model, part, file)
        if (file := path.with_name(answers)).is_file():
            _add_answers(model, part, file)
    return model


def _results(file: Path, kind: type) -> tuple[dict[str, Any], Any]:
    """Read a log; return it and its ``results``. Raises ValueError if ``results`` is not of type ``kind`` or is
    empty."""
    log = _texts.read_json(file)
    results = log.get("results") if isinstance(log, dict) else None
    if not isinstance(results, kind) or not results:
        raise ValueError(f"{file}: 'results' must hold the values of each text")
    return log, results


def _add_attacks(model: Model, part: str, file: Path) -> None:
    """Add the attacks' values of one ``part`` of the data to a model as readings, and compare their means with the
    printed means. Values of forgotten samples also become the model's scores; RWKU has no held-out samples. The mean
    log-probability of a text's tokens, which RWKU calls "loss", also gives a reading of their probability."""
    log, lists = _results(file, dict)
    values = {name: np.array(column, np.float64) for name, column in lists.items()}
    count = len(values["loss"])
    ids = tuple(f"{part}:{model.task}/{count}:{i}" for i in range(count))
    for name, value in values.items():
        model.readings[f"{part}_{name}"] = Reading(part, ids, value, share=False)
        if part == FORGET:
            model.scores[name] = value
    # RWKU's "loss" is a log-probability, which rounding may lift above 0.
    model.readings[f"{part}_probability"] = Reading(part, ids, np.exp(np.minimum(values["loss"], 0)))
    model.agreements += [
        Agreement(f"{part} {name}", float(log[name]), float(values[column].mean()), f"mean of {column}")
        for name, column in PRINTED.items() if name in log and column in values
    ]  # fmt: skip
    if part == FORGET:
        model.divide(ids, ())


def _add_answers(model: Model, part: str, file: Path) -> None:
    """Add the ROUGE-L recall of every answer in a log of one ``part`` of the data to a model, as a reading for each
    level of questions, and compare the means with the printed means."""
    log, rows = _results(file, list)
    for level in sorted({str(row["level"]) for row in rows}):
        of_level = [row for row in rows if str(row["level"]) == level]
        value = np.array([_recompute.rouge_l(row["prediction"], row["answer"]) for row in of_level])
        ids = _texts.identities(f"{part}_{level}", (str(row["query"]) for row in of_level))
        model.readings[f"{part}_level_{level}"] = Reading(part, ids, value)
        printed = float(log.get(f"level_{level}_rouge_l_r", np.nan))
        mean = float(value.mean())
        model.agreements.append(Agreement(f"{part} level_{level}_rouge_l_r", printed, mean, "mean ROUGE-L recall"))
