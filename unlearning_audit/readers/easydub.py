"""EasyDUB's margins (Rinberg et al. 2026): ``margins/<data>/<kind>/…/<part>/…/id_<model>_….npy``, float [samples] each,
and the archives of its ``reproduce.py``, ``ns<noise>_seed<seed>.npz``, with the margins of every epoch.

The kind ``pretrain`` is the model before unlearning, ``oracle`` one retrained without ``forget_<k>``; any other kind is
an unlearning method of that name, with the same folders. Parts are ``retain``, ``forget`` and ``val``, which no model
saw. A margin is z_y − log Σ exp z_c over the other classes, which is log(p/(1 − p)). The forget set is a list of
training sample numbers, ``forget_sets/…/forget_set_<k>.npy``. An archive does not say which forget set its models have.
It is taken from the path (``forget_2``), or else from the oracles with equal numbers of samples.
"""

import re
from collections.abc import Mapping
from functools import cache
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from unlearning_audit.readers import _arrays, _margins, _model, _words
from unlearning_audit.readers._model import FORGET, HELDOUT, NONE, RETAIN, RETRAIN, UNLEARNED, Model, Reading, Unread

_MODEL = re.compile(r"id_(\d+)(?:_epoch_(\d+))?")
_SET = re.compile(r"forget(?:_set)?_(\d+)")
PARTS = {"retain": RETAIN, "forget": FORGET, "val": HELDOUT, "test": HELDOUT}
ROLES = {"pretrain": NONE, "oracle": RETRAIN}

#: The largest number of models of a kind that are read, and of retained samples of a model, evenly spaced.
MOST_MODELS, MOST_RETAINED = 200, 2000


def files(place: Path) -> list[Path]:
    """Return the files of decision margins at or below a path: ``.npy`` files, recognised by their folders and names,
    and archives ``.npz``, recognised by their content."""
    paths = [place] if place.is_file() else [*place.rglob("id_*.npy"), *place.rglob("*.npz")]
    margins = [path for path in paths if path.suffix == ".npy" and "margins" in path.parts and _MODEL.match(path.stem)]
    return sorted(margins + [path for path in paths if path.suffix != ".npy" and _margins.is_archive(path)])


def read(paths: list[Path], options: object, root: Path) -> list[Model | Unread]:
    """Return the models whose decision margins lie in ``paths``.

    All ``.npy`` files of one kind (``pretrain``, ``oracle`` or a method), one forget set and one model number are one
    model. Only one epoch of a model is read: the epoch with files for the most parts of the data (retain, forget, val)
    or, of several such epochs, the last. An archive ``.npz`` gives one model for each epoch and model number, or an
    `Unread` if it is not valid. The ``.npy`` files depend on each other, so that one wrong file stops the reading:
    ValueError is raised for a ``.npy`` file in a wrong folder, for two files of one part of the data of a model, and
    for a model without margins of its forget set.
    """
    models = _model.read_all((path for path in paths if path.suffix == ".npz"), lambda path: _of_archive(path, root))
    singles = [path for path in paths if path.suffix == ".npy"]
    return [*models, *_of_folders(singles)] if singles else models


def _of_folders(paths: list[Path]) -> list[Model]:
    """Read the models from single files of decision margins, ``margins/<data>/<kind>/…/id_<model>_….npy``; at most
    `MOST_MODELS` models of each data set, architecture, kind and forget set, each at one epoch.

    A file belongs to a model by its data, architecture, kind, forget set and number. Files outside of a folder
    ``forget_<k>`` belong to the models of all forget sets. Raises ValueError if a folder is missing in a path, if two
    files are of the same part of a model, or if no path names a forget set.
    """
    # (words of the name, kind, number of the forget set or None, number of the model) → epoch → part → file.
    margins: dict[tuple[Any, ...], dict[int, dict[str, Path]]] = {}
    for path in paths:
        folders = path.parts[path.parts.index("margins") + 1 : -1]
        if len(folders) < 2:
            raise ValueError(f"{path}: its folders must be margins/DATA/KIND, such as margins/cifar10/oracle/forget_1")
        data, kind, *inner = folders
        number, epoch = (int(digits or 0) for digits in _MODEL.findall(path.stem)[0])  # without an epoch, 0
        sets = [int(match[1]) for folder in inner if (match := _SET.fullmatch(folder))]
        part = next((folder for folder in inner if folder in PARTS), "forget")
        architecture = [folder for folder in inner if folder not in PARTS and not _SET.fullmatch(folder)]
        of_model = (data, *architecture), kind, next(iter(sets), None), number  # None: it is of all forget sets
        before = margins.setdefault(of_model, {}).setdefault(epoch, {}).setdefault(part, path)
        if before is not path:
            raise ValueError(f"{path}: {before} belongs to the same model and part")
    # The models that have a forget set, by words, kind and forget set (`key[:3]`), then by number (`key[3]`).
    keys = sorted((key for key in margins if key[2] is not None), key=lambda key: (*map(str, key[:3]), key[3]))
    if not keys:
        raise ValueError(f"{paths[0].parent}: no folder forget_<number> says to which forget set these margins belong")
    models: list[Model] = []
    for _, keys_of_set in groupby(keys, key=lambda key: key[:3]):
        for key in islice(keys_of_set, MOST_MODELS):
            # Files of the same model that belong to all forget sets, such as those of retained samples.
            of_all_sets = margins.get((*key[:2], None, key[3]), {})
            epochs = {epoch: of_all_sets.get(epoch, {}) | files for epoch, files in margins[key].items()}
            fullest = max(epochs, key=lambda epoch: (len(epochs[epoch]), epoch))  # of several the last
            models.append(_of_files(epochs[fullest], *key))
    return models


def _of_files(paths: dict[str, Path], words: tuple[str, ...], kind: str, forget_set: int, number: int) -> Model:
    """Read one model from its files of decision margins.

    Parameters
    ----------
    paths
        Part of the data → file of margins.
    words
        The words that name the model: data and architecture.
    kind
        The folder "pretrain" or "oracle", or the name of a method.
    forget_set, number
        The numbers of the model's forget set and of the model itself.

    Raises
    ------
    ValueError
        If the margins of the forget set are missing, or if a file cannot be read or holds NaN or infinity.
    """
    file = next(iter(paths.values()))
    role = ROLES.get(kind, UNLEARNED)
    model = Model(file, role, words, method="" if role != UNLEARNED else kind, task=f"forget_{forget_set}")
    values = {part: _arrays.load(path, "f").reshape(-1).astype(np.float64) for part, path in paths.items()}
    if "forget" not in values:
        raise ValueError(f"{file}: margins of forget_{forget_set} are missing for this model")
    if "retain" in values:
        values["retain"] = _without_forget_set(values["retain"], file, forget_set)
    model.raw = {"number": number, "files": paths, "counts": {part: len(value) for part, value in values.items()}}
    _fill(model, values)
    return model


def _of_archive(path: Path, root: Path) -> list[Model]:
    """Read the models of an archive of decision margins: one for each epoch and each of the first `MOST_MODELS` models.

    The method is named after the folders below ``root``, the folder that the user named, and after the file, without
    words for a seed or a run: "ns1" of ``ns1_seed3.npz``, "ga_lr1e-5" of ``ga/lr1e-5_run2.npz``. Folders of forget sets
    do not count. The method is "" if no word remains. The forget set is
    named by the innermost folder that names one; it may be unknown. Names of samples begin with the forget set, so the
    models have neither samples nor scores yet. ``raw`` holds what is needed to add them once the forget set is known:
    "epoch", counted from 0; "values", part of the data → margins; and "counts", part of the data → number of margins.
    Raises ValueError that names the file if it cannot be read or holds no margins.
    """
    arrays = _margins.archive(path)
    folders = tuple(name for name in path.parent.relative_to(root).parts if not _SET.fullmatch(name))
    method = _words.without_replicate("_".join((*_words.model_of_names(folders).words, path.stem)))
    sets = [int(match[1]) for folder in path.parents if (match := _SET.fullmatch(folder.name))]  # innermost first
    task, models = f"forget_{sets[0]}" if sets else "", []
    epochs, count, _ = arrays["margins_forget"].shape
    for epoch, number in np.ndindex(epochs, min(count, MOST_MODELS)):
        model = Model(path, UNLEARNED, method=method, step=epoch + 1, task=task)
        values = {part: arrays[f"margins_{part}"][epoch, number].astype(np.float64) for part in _margins.PARTS}
        model.raw = {"epoch": epoch, "values": values, "counts": {part: len(value) for part, value in values.items()}}
        models.append(model)
    return models


def _fill(model: Model, values: Mapping[str, np.ndarray]) -> None:
    """Set a model's readings and, if there are held-out samples, its scores.

    A reading is the probability of the label on one part of the data, with at most `MOST_RETAINED` retained samples.
    The scores "confidence" are the decision margins of forgotten and held-out samples. ``values``: part of the data →
    decision margins, float64 [samples].
    """
    for part, value in values.items():
        numbers = tuple(range(len(value)))
        if part == "retain" and len(value) > MOST_RETAINED:
            numbers = tuple(np.linspace(0, len(value) - 1, MOST_RETAINED).astype(int).tolist())
        probability = expit(value[list(numbers)])  # a margin is the logit of the probability
        model.readings[f"{part}_prob"] = Reading(PARTS[part], _names(part, model.task, numbers), probability)
    heldout = next((part for part in ("val", "test") if part in values), None)
    if heldout:
        model.divide(model.readings["forget_prob"].ids, model.readings[f"{heldout}_prob"].ids)
        model.scores = {"confidence": np.concatenate([values["forget"], values[heldout]])}


@cache
def _names(part: str, task: str, numbers: tuple[int, ...]) -> tuple[str, ...]:
    """Return the names of the samples ``numbers`` of a part of the data. Names of held-out samples are the same for all
    models. Names of all other samples begin with the forget set ``task``, because for another forget set, equal numbers
    mean other samples."""
    prefix = PARTS[part] if PARTS[part] == HELDOUT else f"{task or 'forget'}:{part}"
    return tuple(f"{prefix}:{number}" for number in numbers)


def joined(models: list[Model]) -> list[Unread]:
    """Complete the models of archives: find the forget set of each archive, set the models' scores and readings, and
    compare the KLOM that the archive prints with the KLOM of its decision margins.

    If the path of an archive names no forget set, the archive has the forget set whose oracles (retrained models) have
    the same number of samples in every part of the data. Its models get the words of these oracles. ``models`` is
    changed in place. The models of an archive that fits several forget sets are removed, and the archive is returned as
    unread. The models of an archive that fits no forget set have no task, and their KLOM is not compared.
    """
    oracles: dict[str, list[Model]] = {}  # forget set → its oracles, from single files
    for model in models:
        if model.role == RETRAIN and "number" in model.raw:
            oracles.setdefault(model.task, []).append(model)
    unread = []
    for path in dict.fromkeys(model.file for model in models if "epoch" in model.raw):
        first, *_ = of_archive = [model for model in models if model.file == path]
        counts = {task: oracle.raw["counts"] for task, (oracle, *_) in oracles.items()}
        tasks = [first.task] if first.task else [task for task in counts if counts[task] == first.raw["counts"]]
        task = next(iter(tasks), "")
        if len(tasks) > 1:
            sentence = (
                f"fits {', '.join(tasks)}; put this file into a folder named after its forget set, such as {task}"
            )
            unread.append(Unread(path, f"{path}: {sentence}"))
            models[:] = [model for model in models if model.file != path]
            continue
        for model in of_archive:
            model.task = task
            _fill(model, model.raw.pop("values"))
        if task in oracles:
            by_epoch = _margins.agreements(_margins.archive(path), oracles[task])
            for model in of_archive:
                model.words = oracles[task][0].words  # all oracles of a forget set have the same
                # All models of an epoch share its printed numbers; the first of them takes these, and [] is left.
                model.agreements, by_epoch[model.raw["epoch"]] = by_epoch[model.raw["epoch"]], []
    return unread


def _without_forget_set(value: np.ndarray, path: Path, number: int) -> np.ndarray:
    """Return the decision margins ``value`` of retained samples, without the samples of forget set ``number`` if they
    are among them.

    They are if ``path`` is of a model before unlearning, which has margins of all training samples, and if there are
    more margins than the largest number in the forget set. Without a file of the forget set, and for any other model,
    the margins are returned unchanged.
    """
    folder = Path(*path.parts[: path.parts.index("margins")])
    file = next(iter(sorted(folder.glob(f"forget_sets/**/forget_set_{number}.npy"))), None)
    if file is None:
        return value
    index = _arrays.load(file, "iu").reshape(-1)
    of_all_samples = "pretrain" in path.parts and len(value) > index.max()
    return np.delete(value, index) if of_all_samples else value
