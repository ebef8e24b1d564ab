"""EasyDUB's margins (Rinberg et al. 2026): ``margins/<data>/<kind>/…/<part>/…/id_<model>_….npy``, float [samples] each.

The kind ``pretrain`` is the model before unlearning, ``oracle`` one retrained without ``forget_<k>``; any other kind is
an unlearning method of that name, with the same folders. Parts are ``retain``, ``forget`` and ``val``, which no model
saw. A margin is z_y − log Σ exp z_c over the other classes, which is log p/(1 − p). What is forgotten lies in
``forget_sets/…/forget_set_<k>.npy``, as numbers of training samples.
"""

import re
from pathlib import Path

import numpy as np

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.readers import _arrays
from unlearning_audit.readers._model import FORGET, HELDOUT, NONE, RETAIN, RETRAIN, UNLEARNED, Model, Reading

_MODEL = re.compile(r"id_(\d+)(?:_epoch_(\d+))?")
_SET = re.compile(r"forget(?:_set)?_(\d+)")
PARTS = {"retain": RETAIN, "forget": FORGET, "val": HELDOUT, "test": HELDOUT}
ROLES = {"pretrain": NONE, "oracle": RETRAIN}


class Options(Settings):
    """``most``: so many models of a kind are read."""

    most: int = 200


def files(place: Path) -> list[Path]:
    """Margins at or below a path."""
    paths = [place] if place.is_file() else place.rglob("id_*.npy")
    return sorted(path for path in paths if "margins" in path.parts and _MODEL.match(path.stem))


def read(paths: list[Path], options: Options, root: Path) -> list[Model]:
    """A model for each kind, forget set and number. Raises ValueError that names a file."""
    margins: dict[tuple, dict[str, Path]] = {}
    for path in paths:
        inside = path.parts[path.parts.index("margins") + 1 :]
        if len(inside) < 3:
            raise ValueError(f"{path}: its folders must be margins/DATA/KIND, such as margins/cifar10/oracle/forget_1")
        kind, rest = inside[1], inside[2:-1]
        number = int(_MODEL.match(path.stem)[1])
        sets = [int(match[1]) for part in rest if (match := _SET.fullmatch(part))]
        part = next((part for part in rest if part in PARTS), "forget")
        margins.setdefault((inside[0], kind, sets[0] if sets else None, number), {})[part] = path
    numbers = sorted({key[2] for key in margins if key[2] is not None})
    if not numbers:
        raise ValueError(f"{paths[0].parent}: no folder forget_<number> says which forget set these margins are of")
    models: list[Model] = []
    counts: dict[tuple, int] = {}
    for key in sorted(margins, key=str):
        data, kind, number, _ = key
        if number is None:
            continue
        counts[data, kind, number] = counts.get((data, kind, number), 0) + 1
        if counts[data, kind, number] <= options.most:
            shared = margins.get((data, kind, None, key[3]), {})
            models.append(_model(key, {**shared, **margins[key]}))
    return models


def _model(key: tuple, paths: dict[str, Path]) -> Model:
    data, kind, number, _ = key
    first = next(iter(paths.values()))
    role = ROLES.get(kind, UNLEARNED)
    model = Model(first, role, (data,), method="" if role != UNLEARNED else kind, task=f"forget_{number}")
    values = {part: _arrays.load(path, "f").reshape(-1).astype(np.float64) for part, path in paths.items()}
    if "forget" not in values:
        raise ValueError(f"{first}: margins of forget_{number} are missing for this model")
    if "retain" in values:
        values["retain"] = _subset(values["retain"], first, number)
    names = {part: tuple(f"{PARTS[part]}:{i}" for i in range(len(value))) for part, value in values.items()}
    for part, value in values.items():
        right = 1 / (1 + np.exp(-value))
        model.readings[f"{part}_prob"] = Reading(PARTS[part], names[part], right)
    outside = next((part for part in ("val", "test") if part in values), None)
    if outside:
        model.ids = (*names["forget"], *names[outside])
        model.forget = np.arange(len(model.ids)) < len(values["forget"])
        model.heldout = ~model.forget
        model.scores = {"confidence": np.concatenate([values["forget"], values[outside]])}
    return model


def _subset(value: np.ndarray, path: Path, number: int) -> np.ndarray:
    """Margins of what is kept, without the forget set where the model before unlearning was asked about all."""
    folder = Path(*path.parts[: path.parts.index("margins")])
    place = next(iter(sorted(folder.glob(f"forget_sets/**/forget_set_{number}.npy"))), None)
    if place is None:
        return value
    index = _arrays.load(place, "iu").reshape(-1)
    return np.delete(value, index) if "pretrain" in path.parts and len(value) > index.max() else value
