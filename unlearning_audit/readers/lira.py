"""Folders of LiRA (Carlini et al. 2022): for each model ``keep.npy``, the samples it was trained on, beside its logits
or scores on all samples.

``keep.npy`` is bool [samples], or numbers of samples. Logits are ``logits/*.npy`` or ``logits.npy``, float [samples, …,
classes] with axes of augmentations between; scores are ``scores/*.npy``, float [samples, augmentations], log(p/(1 − p))
of the true class. Of several epochs the last is read. Labels, int [samples], are ``y_train.npy``, ``labels.npy`` or
``y.npy`` in the same folder or in one of the two above it. One folder may also contain all models: then ``keep.npy``
and ``logits.npy`` have an axis of models before that of samples. Coins decided who was kept, so forgotten (kept) and
held-out samples are a random draw.
"""

from pathlib import Path

import numpy as np

from unlearning_audit import stats
from unlearning_audit.readers import _arrays, _words
from unlearning_audit.readers._model import Model

LABELS = ("y_train.npy", "labels.npy", "y.npy")
#: If this many models, or fewer, saw a sample, or did not see it, densities are not estimated.
TOO_FEW = 3


def files(place: Path) -> list[Path]:
    """Return the files called ``keep.npy`` at or below a path, by which this format is recognised."""
    paths = place.rglob("keep.npy") if place.is_dir() else [place]
    return sorted(path for path in paths if path.name == "keep.npy")


def read(paths: list[Path], options: object, root: Path) -> list[Model]:
    """Return one model for each ``keep.npy`` or, if it has several rows, for each row. The samples that the model was
    trained on count as those to be forgotten. The score "confidence" of a sample is φ = log(p/(1 − p)), p being the
    probability of its true class.

    If more than `TOO_FEW` models saw each sample and more than `TOO_FEW` did not, each model also gets the scores
    "lira" of the likelihood-ratio attack, whose reference models are all other models. Raises ValueError that names a
    file or folder.
    """
    models, keeps, phis = [], [], []  # one entry for each model
    for path in paths:
        keep, phi = _keep_and_phi(path)
        keeps += list(keep)
        phis += list(phi)
        models += [_words.trained_model(path, root, fair=True) for _ in keep]
    if len({len(keep) for keep in keeps}) > 1:
        above, advice = paths[0].parent.parent, "give folders with equal numbers"
        raise ValueError(f"{above}: these models have different numbers of samples; {advice}")
    ratio = _likelihood_ratios(np.array(phis), np.array(keeps))
    for number, model in enumerate(models):
        model.ids = tuple(f"sample:{index}" for index in range(len(keeps[number])))
        model.forget, model.heldout = keeps[number], ~keeps[number]
        model.scores = {"confidence": phis[number]} | ({} if ratio is None else {"lira": ratio[number]})
    return models


def _keep_and_phi(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return which samples each model was trained on, bool [models, samples], and φ = log(p/(1 − p)) of the true class
    of each sample, float64 [models, samples], the mean over augmentations.

    ``path``: keep.npy, beside which lie scores, which are φ itself, or logits with labels; scores are preferred.
    Samples of keep.npy for which there are neither scores nor logits are left out. Raises ValueError that names a file
    or folder.
    """
    folder = path.parent
    scores = sorted(folder.glob("scores/*.npy"))[-1:]  # the last epoch
    logits = [*sorted(folder.glob("logits/*.npy"))[-1:], *folder.glob("logits.npy")]
    if not scores and not logits:
        raise ValueError(f"{folder}: keep.npy is here, but neither logits nor scores of the model")
    file, *_ = scores or logits
    keep, value = _with_models(path, file, least_axes=2 if scores else 3)
    samples = value.shape[1]
    if scores:
        phi = value.reshape(*value.shape[:2], -1).mean(axis=2)
        return keep[:, :samples], phi.astype(np.float64)
    y = _labels(folder)[:samples]  # there may be labels of more samples
    if len(y) < samples or y.min() < 0 or y.max() >= value.shape[-1]:
        labels = f"{len(y)} labels from {y.min()} to {y.max()}"
        raise ValueError(f"{file}: has {samples} samples and {value.shape[-1]} classes, but there are {labels}")
    # [models, augmentations, samples, classes]
    views = np.moveaxis(value.reshape(*value.shape[:2], -1, value.shape[-1]), 2, 1)
    phi = [np.mean([stats.phi(logits=view.astype(np.float64), y=y) for view in of_model], axis=0) for of_model in views]
    return keep[:, :samples], np.array(phi)


def _with_models(path: Path, file: Path, least_axes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return keep, bool [models, samples] (which samples each model was trained on), and logits or scores, float
    [models, samples, …] with at least ``least_axes`` dimensions.

    Files of one model may lack the first dimension, models, which is then added. keep may have more samples at the end
    than the logits or scores.

    Parameters
    ----------
    path
        keep.npy.
    file
        The file of the logits or scores.

    Raises
    ------
    ValueError
        If the shapes do not fit; the message names a file.
    """
    value = _arrays.load(file, "f")
    keep = _keep_mask(path, value)
    shapes = list(keep.shape), list(value.shape)
    if keep.ndim == 1:
        keep = keep[None]
        value = value if len(value) == 1 else value[None]  # with one entry, the first axis is that of models already
    if keep.ndim != 2 or value.ndim < least_axes or len(value) != len(keep) or not 0 < value.shape[1] <= keep.shape[1]:
        expected = "[samples], or [models, samples] with an axis of models before that of samples in the answers"
        raise ValueError(f"{file}: has shape {shapes[1]}, and keep.npy {shapes[0]}, which must be {expected}")
    return keep, value


def _keep_mask(path: Path, value: np.ndarray) -> np.ndarray:
    """Read keep.npy, the file ``path``, as a mask, bool [samples] or [models, samples].

    Numbers that are all 0 or 1 are a mask, too. If the file holds the numbers of the samples that one model was trained
    on, they become a mask over all samples. The number of all samples is then taken from ``value``, the logits or
    scores: it is the larger of its first two dimensions, one of which may be models. Raises ValueError for other
    content.
    """
    try:
        return _arrays.load(path, "b")
    except ValueError:
        index = _arrays.load(path, "biu")
    samples = max(value.shape[:2])
    if index.ndim != 1 or index.dtype.kind == "b" or index.min() < 0 or index.max() >= samples:
        raise ValueError(f"{path}: must be bool, or numbers of samples from 0 to {samples - 1}")
    keep = np.zeros(samples, bool)
    keep[index] = True
    return keep


def _labels(folder: Path) -> np.ndarray:
    """Return the labels, int64 [samples], from the nearest file of labels in the folder or the two folders above it.
    Raises ValueError if there is no such file."""
    paths = (near / name for near in (folder, folder.parent, folder.parent.parent) for name in LABELS)
    if file := next(filter(Path.is_file, paths), None):
        return _arrays.load(file, "iu").reshape(-1).astype(np.int64)
    raise ValueError(f"{folder}: there are logits, but no labels; save {LABELS[0]} there or in the folder above")


def _likelihood_ratios(phi: np.ndarray, keep: np.ndarray) -> np.ndarray | None:
    """Return the log likelihood ratio log N(φ | in) / N(φ | out) of each model and sample, float64 [models, samples]:
    N is the normal density of φ over the other models that saw the sample (in), or over those that did not (out)
    (Carlini et al. 2022). Its mean is that of the sample, its spread is pooled over all samples.

    None if, for some sample, at most `TOO_FEW` models saw it, or at most `TOO_FEW` did not.

    Parameters
    ----------
    phi
        float64 [models, samples]: φ.
    keep
        bool [models, samples]: which models saw which samples.
    """
    count_in, count_out = keep.sum(axis=0), (~keep).sum(axis=0)
    if len(phi) < 2 * TOO_FEW or min(count_in.min(), count_out.min()) <= TOO_FEW:
        return None
    log_density = []
    for mask, count in ((keep, count_in), (~keep, count_out)):
        total = np.where(mask, phi, 0.0).sum(axis=0)
        others = count - mask  # how many models remain without the one that is scored
        mean = (total - np.where(mask, phi, 0.0)) / others
        spread = np.sqrt(np.where(mask, (phi - total / count) ** 2, 0.0).sum() / (count - 1).sum())
        # The variance of a model's distance from the mean of n others is larger by the factor (n + 1) / n.
        # The logarithm of this factor is a part of the density and is left out: n depends on whether the model itself
        # saw the sample, so that the score would tell it.
        log_density.append(-0.5 * ((phi - mean) / spread) ** 2 * (others / (others + 1)) - np.log(spread))
    return np.asarray(np.subtract(*log_density))  # in minus out
