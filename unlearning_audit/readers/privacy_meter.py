"""Privacy Meter's files: ``signals/…_signals.npy``, the probabilities of every sample, and ``memberships.npy``; or the
results of its attacks, ``attack_result_….npz``.

Signals are float [samples, models], the probability of the true class; memberships bool [models, samples]. Results hold
``scores`` and ``memberships`` [samples] of one model, and the AUC that is printed. Members were drawn by coins.
"""

from pathlib import Path

import numpy as np

from unlearning_audit.readers import _arrays, _recompute, _words
from unlearning_audit.readers._model import Agreement, Model, Unread, read_all
from unlearning_audit.store.files import reason

#: Probabilities are limited to this distance from 0 and 1, the resolution of single precision.
LEAST_PROBABILITY = 1e-7


def files(place: Path) -> list[Path]:
    """Return the files of signals (probabilities of every sample) and of results at or below a path, recognised by
    their names. Privacy Meter's signals of its population data, which only the attacker uses, have another name."""
    paths = [place] if place.is_file() else [*place.rglob("*_signals.npy"), *place.rglob("attack_result_*.npz")]
    return sorted(p for p in paths if _is_signals(p) or (p.suffix == ".npz" and p.name.startswith("attack_result_")))


def _is_signals(path: Path) -> bool:
    """Return whether a file holds Privacy Meter's signals, the probabilities of every sample, judged by its name."""
    return path.name.endswith("_signals.npy")


def read(paths: list[Path], options: object, root: Path) -> list[Model | Unread]:
    """Return a model for each column of a file of signals and for each result of one model; an `Unread` for a file that
    cannot be read. Results that average over models are skipped, because the results of the single models lie beside
    them."""
    single = [path for path in paths if _is_signals(path) or "average" not in path.stem]
    return read_all(single, lambda path: _of_signals(path, root) if _is_signals(path) else [_of_result(path, root)])


def _model(path: Path, root: Path, member: np.ndarray, scores: dict[str, np.ndarray]) -> Model:
    """Return the model of a file with ``scores``, attack → float64 [samples]. ``member`` bool [samples]: the samples
    that the model was trained on, which count as those to be forgotten. They are a random draw, so the model is
    ``fair``."""
    ids = tuple(f"sample:{index}" for index in range(len(member)))
    return _words.trained_model(path, root, ids=ids, forget=member, heldout=~member, scores=scores, fair=True)


def _of_signals(path: Path, root: Path) -> list[Model]:
    """Read a model for each column of a file of signals, float [samples, models], that has memberships, with the logit
    of its signals as scores. The memberships, bool [models, samples], lie in the file's folder or in one of the two
    folders above. Raises ValueError that names the file if shapes do not fit, the memberships are missing, or signals
    are not from 0 to 1."""
    signals = _arrays.load(path, "f")
    if signals.ndim != 2:
        raise ValueError(f"{path}: has shape {list(signals.shape)}, but must be [samples, models]")
    beside = next(filter(Path.is_file, (folder / "memberships.npy" for folder in list(path.parents)[:3])), None)
    if beside is None:
        raise ValueError(f"{path}: memberships.npy is missing; the run writes it to its log_dir, above the signals")
    member = _arrays.load(beside, "b")
    if member.ndim != 2 or member.shape[1] != signals.shape[0] or member.shape[0] > signals.shape[1]:
        shapes = f"{list(member.shape)}, which does not fit {path.name}, {list(signals.shape)}"
        raise ValueError(f"{beside}: has shape {shapes}")
    if signals.min() < 0 or signals.max() > 1:
        raise ValueError(f"{path}: has values outside 0 to 1; signals are probabilities of the true class")
    # Memberships may be those of the first models only; the signals of further models are left out.
    probability = np.clip(signals.T[: len(member)].astype(np.float64), LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    logit = np.log(probability) - np.log1p(-probability)
    return [_model(path, root, of_model, {"confidence": logit[number]}) for number, of_model in enumerate(member)]


def _of_result(path: Path, root: Path) -> Model:
    """Read the model of one result, and compare its AUC with the printed one. Raises ValueError if the file cannot be
    read or does not hold finite scores of both members and others."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            scores, member, printed = (np.asarray(archive[name], float) for name in ("scores", "memberships", "auc"))
    except Exception as error:
        raise ValueError(f"{path}: this result cannot be read ({reason(error)})") from None
    member, scores = member.ravel().astype(bool), scores.ravel().astype(np.float64)
    if member.shape != scores.shape or not member.any() or member.all() or not np.isfinite(scores).all():
        raise ValueError(f"{path}: scores and memberships must be finite, equally many, and of members and others")
    model = _model(path, root, member, {"attack": scores})
    value = _recompute.auc(member=scores[member], nonmember=scores[~member])
    model.agreements.append(Agreement("auc", float(printed), value, "AUC of members against others"))
    return model
