"""Folders of LiRA (Carlini et al. 2022): for each model ``keep.npy``, which samples it was trained on, beside its
answers to all of them.

``keep.npy`` is bool [samples]; answers are ``logits/*.npy`` or ``logits.npy``, float [samples, …, classes] with axes of
augmentations between, or ``scores/*.npy``, float [samples, augmentations], log p/(1 − p) of the true class. Of several
epochs the last is read. Labels, int [samples], are ``y_train.npy``, ``labels.npy`` or ``y.npy`` in the same folder or
one above. One folder may also hold all models: then ``keep.npy`` and ``logits.npy`` have an axis of models in front.
Who was kept was drawn by coins, so forgotten (kept) and held-out samples are a fair draw.
"""

from pathlib import Path

import numpy as np

from unlearning_audit import stats
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.readers import _arrays, _words
from unlearning_audit.readers._model import NONE, UNKNOWN, Model

LABELS = ("y_train.npy", "labels.npy", "y.npy")
#: So few models in or out of training give no densities.
LEAST = 3


class Options(Settings):
    """None: everything is in the folders."""


def files(place: Path) -> list[Path]:
    """``keep.npy`` of every model at or below a path."""
    folder = place if place.is_dir() else place.parent
    keep_files = [place] if place.name == "keep.npy" else []
    return sorted(folder.rglob("keep.npy")) if place.is_dir() else keep_files


def read(paths: list[Path], options: Options, root: Path) -> list[Model]:
    """One model for each ``keep.npy``, or for each of its rows; with enough of them the likelihood-ratio attack, in
    which a model is never its own reference. Raises ValueError that names a file."""
    models, keeps, margins = [], [], []
    for path in paths:
        keep, phi = _answers(path)
        hints = _words.of_path(path, root)
        for row in range(len(keep)):
            keeps.append(keep[row])
            margins.append(phi[row])
            role = NONE if hints.role == UNKNOWN else hints.role
            models.append(Model(path, role, (), hints.recipe, hints.method, hints.step, hints.task, fair=True))
    if len({len(keep) for keep in keeps}) > 1:
        raise ValueError(
            f"{paths[0].parent.parent}: these models have other numbers of samples; give folders of equal ones"
        )
    ratio = _likelihood_ratios(np.array(margins), np.array(keeps))
    for number, model in enumerate(models):
        model.ids = tuple(f"sample:{index}" for index in range(len(keeps[number])))
        model.forget, model.heldout = keeps[number], ~keeps[number]
        model.scores = {"confidence": margins[number]} | ({} if ratio is None else {"lira": ratio[number]})
    return models


def _answers(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """keep bool [models, samples] and phi float64 [models, samples], the mean over augmentations."""
    keep = _arrays.load(path, "b")
    keep = keep[None] if keep.ndim == 1 else keep
    if keep.ndim != 2 or not keep.size:
        raise ValueError(f"{path}: has shape {list(keep.shape)}, but must be [samples] or [models, samples]")
    models, samples = keep.shape
    folder = path.parent
    scores = sorted(folder.glob("scores/*.npy"))
    if scores:
        value = _arrays.load(scores[-1], "f")
        by_model = value if models > 1 else value[None]
        if by_model.ndim < 2 or len(by_model) != models or by_model.shape[1] > samples:
            raise ValueError(
                f"{scores[-1]}: has shape {list(value.shape)}, which does not fit keep.npy, {list(keep.shape)}"
            )
        phi = by_model.reshape(*by_model.shape[:2], -1).mean(axis=2)
        return keep[:, : phi.shape[1]], phi.astype(np.float64)
    logits = [*sorted(folder.glob("logits/*.npy"))[-1:], *folder.glob("logits.npy")]
    if not logits:
        raise ValueError(f"{folder}: keep.npy lies here, but neither logits nor scores of the model")
    value = _arrays.load(logits[0], "f")
    value = value if models > 1 or (value.shape[0] == 1 and value.ndim > 2) else value[None]
    if value.ndim < 3 or len(value) != models or value.shape[1] > samples:
        raise ValueError(f"{logits[0]}: has shape {list(value.shape)}, which does not fit keep.npy, {list(keep.shape)}")
    y = _labels(folder)[: value.shape[1]]
    if len(y) < value.shape[1] or y.min() < 0 or y.max() >= value.shape[-1]:
        raise ValueError(
            f"{logits[0]}: has {value.shape[1]} samples and {value.shape[-1]} classes, which the labels beside it do "
            f"not fit: {len(y)}, from {y.min()} to {y.max()}"
        )
    flat = value.reshape(*value.shape[:2], -1, value.shape[-1])
    answers = [
        np.mean([stats.phi(logits=logit[:, a].astype(np.float64), y=y) for a in range(logit.shape[1])], axis=0)
        for logit in flat
    ]
    return keep[:, : value.shape[1]], np.array(answers)


def _labels(folder: Path) -> np.ndarray:
    for place in (folder, folder.parent, folder.parent.parent):
        for name in LABELS:
            if (place / name).is_file():
                return _arrays.load(place / name, "iu").reshape(-1).astype(np.int64)
    raise ValueError(f"{folder}: there are logits, but no labels; save {LABELS[0]} there or in the folder above")


def _likelihood_ratios(phi: np.ndarray, keep: np.ndarray) -> np.ndarray | None:
    """log of N(phi | in) / N(phi | out) float64 [models, samples], from all other models; means by sample, spreads
    pooled over samples. None where some sample has too few models on a side."""
    inside, outside = keep.sum(axis=0), (~keep).sum(axis=0)
    if len(phi) < 2 * LEAST or min(inside.min(), outside.min()) <= LEAST:
        return None
    density = {}
    for side, mask, count in (("in", keep, inside), ("out", ~keep, outside)):
        total = np.where(mask, phi, 0.0).sum(axis=0)
        excluded = count - mask
        mean = (total - np.where(mask, phi, 0.0)) / excluded
        spread = np.sqrt(np.where(mask, (phi - total / count) ** 2, 0.0).sum() / (count - 1).sum())
        density[side] = -0.5 * ((phi - mean) / spread) ** 2 * (excluded / (excluded + 1)) - np.log(spread)
    return density["in"] - density["out"]
