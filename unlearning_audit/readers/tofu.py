"""TOFU's own aggregated logs (Maini et al. 2024): one JSON with an entry for each evaluated split, and in it lists by
index, such as ``avg_gt_loss``, ``average_perturb_loss``, ``truth_ratio`` and ``rougeL_recall``.

Splits are recognised by name (``forget``, ``real_author``, ``real_world``; the plain one is retained data), samples by
the text of their true answer, or by number if the log has no texts.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import hmean

from unlearning_audit.readers import _recompute, _texts, _words
from unlearning_audit.readers._model import FORGET, OTHER, RETAIN, Agreement, Model, Reading, Unread, read_all

#: Word in the name of a split → prefix of its values, as in the newer format of the same benchmark.
PREFIX = {"forget": "forget", "retain": "retain", "real_author": "ra", "real_world": "wf"}
#: The lists of a split that are read where they are there.
LISTS = ("average_perturb_loss", "normalized_gt_loss", "gt_loss", "num_token_gt", "rougeL_recall",
         "avg_paraphrased_loss", "truth_ratio")  # fmt: skip


def files(place: Path) -> list[Path]:
    """Return the aggregated logs at or below a path, recognised by their structure. Raises ValueError if the path
    itself is the log of a single split, which lacks losses of paraphrased answers."""
    candidates = [path for path in _texts.below(place, ".json") if '"avg_gt_loss"' in _texts.head(path)]
    aggregated = [path for path in candidates if _splits(_texts.read_json(path))]
    if place.is_file() and candidates and not aggregated:
        lacking = '"avg_paraphrased_loss"'
        raise ValueError(f"{place}: this is the log of one split, without {lacking}; give the aggregated log")
    return aggregated


def read(paths: list[Path], options: object, root: Path) -> list[Model | Unread]:
    """Return one model for each log; an `Unread` for a log that cannot be read."""
    return read_all(paths, lambda path: [_model(path, root)])


def _splits(log: object) -> dict[str, dict[str, Any]]:
    """Return name → entry of TOFU's splits (parts of the data) in a log: the entries that have losses of the true
    answers; {} if no entry has."""
    entries = log.items() if isinstance(log, dict) else ()
    return {name: entry for name, entry in entries if isinstance(entry, dict) and "avg_gt_loss" in entry}


def _model(path: Path, root: Path) -> Model:
    """Read the model of a log: the values of every split, and model utility, the harmonic mean of nine means, if the
    log has all nine. Raises ValueError if no split is of the forget set."""
    model = _words.model_of_run(path, root)
    means: dict[str, float] = {}
    splits = _splits(_texts.read_json(path))
    for split, entry in splits.items():
        # The word of the split, a key of `PREFIX`. A split without such a word in its name is of retained samples.
        word = next((word for word in ("forget", "real_author", "real_world") if word in split), "retain")
        part = {"forget": FORGET, "retain": RETAIN}.get(word, OTHER)
        means |= _add_split(model, entry, part, PREFIX[word], f"{path}: {split}")
    if not model.samples.get(FORGET):
        found = ", ".join(splits)
        raise ValueError(f"{path}: this log has no split of the forget set, whose name contains forget; found {found}")
    names = [f"{prefix}_{name}" for prefix in ("retain", "ra", "wf") for name in ("Prob", "ROUGE", "Truth_Ratio")]
    if all(name in means for name in names):
        utility = float(hmean([means[name] for name in names]))
        model.raw["aggregates"] = {"model_utility": utility}
        model.agreements.append(Agreement("model_utility", math.nan, utility, "harmonic mean of nine means"))
    return model


def _add_split(model: Model, entry: dict[str, Any], part: str, prefix: str, where: str) -> dict[str, float]:
    """Add probability, ROUGE and truth ratio of the samples of one split (part of the data) to a model; return their
    means, name → mean.

    A quantity is left out if lists are missing from which it is computed. Lists of the log that can be recomputed are
    compared with the result.

    Parameters
    ----------
    entry
        The split's lists, name → index of the sample → value.
    part
        Forget, retain or other.
    prefix
        The word before the names of samples and quantities, such as "ra".
    where
        The file and split, for messages.
    """
    indices = list(entry["avg_gt_loss"])
    rows = entry.get("generated_text")
    ids = tuple(f"{prefix}:{index}" for index in indices)  # without texts, samples are known by number
    # A row is [question, the model's answer, the true answer].
    if isinstance(rows, dict) and all(isinstance(rows.get(index), list) for index in indices):
        ids = _texts.identities(prefix, (str(rows[index][-1]) for index in indices))
    present = [name for name in (*LISTS, "avg_gt_loss") if name in entry]
    lists = {name: _column(entry, name, indices, where) for name in present}
    # The mean losses by token of the true answer [samples], and of wrong answers [samples, answers].
    loss, loss_wrong = lists["avg_gt_loss"][:, 0], lists.get("average_perturb_loss")
    probability = np.exp(-loss)
    if prefix in ("ra", "wf") and loss_wrong is not None:  # among the true and the wrong answers, as TOFU defines it
        probability = probability / (probability + np.exp(-loss_wrong).sum(axis=1))
        _compare_list(model, lists, f"{prefix} normalized_gt_loss", -np.log(probability))
    if "gt_loss" in lists and "num_token_gt" in lists:
        by_token = lists["gt_loss"][:, 0] / lists["num_token_gt"][:, 0]
        _compare_means(model, f"{prefix} avg_gt_loss", loss, by_token, "gt_loss by token")
    values = {"Prob": (probability, 1)}  # quantity → values, and their direction (`Reading`)
    if "rougeL_recall" in lists:
        values["ROUGE"] = lists["rougeL_recall"][:, 0], 1
    if loss_wrong is not None and "avg_paraphrased_loss" in lists:
        # The truth ratio: probability of wrong over right answers; near 1 if a model knows neither.
        right_over_wrong = np.exp(loss_wrong.mean(axis=1) - lists["avg_paraphrased_loss"][:, 0])
        wrong_over_right = 1 / right_over_wrong
        _compare_list(model, lists, f"{prefix} truth_ratio", wrong_over_right, right_over_wrong)
        if part == FORGET:
            model.raw["forget_truth_ratio"] = wrong_over_right
            values["Truth_Ratio"] = np.minimum(wrong_over_right, right_over_wrong), 0  # small also for a damaged model
        else:
            values["Truth_Ratio"] = np.maximum(0.0, 1 - wrong_over_right), 1
    for quantity, (value, direction) in values.items():
        model.readings[f"{prefix}_{quantity}"] = Reading(part, ids, value, direction)
    return {f"{prefix}_{quantity}": float(value.mean()) for quantity, (value, _) in values.items()}


def _column(entry: dict[str, Any], name: str, indices: list[str], where: str) -> np.ndarray:
    """Return the list ``name`` of a split, float64 [samples, answers], for the samples ``indices``; a list of single
    values has one answer. Raises ValueError that names the list and ``where`` it stands, a file and a split."""
    try:
        rows = [entry[name][index] for index in indices]
        return np.array([row if isinstance(row, list) else [row] for row in rows], np.float64)
    except (KeyError, TypeError, ValueError):
        problem = "is missing, or has no number for some samples, or unequal numbers of answers"
        raise ValueError(f"{where}: {name!r} {problem}") from None


def _compare_list(model: Model, lists: dict[str, np.ndarray], quantity: str, *recomputed: np.ndarray) -> None:
    """Add to a model how the mean of a list of the log agrees with the mean of the closest of ``recomputed``, the
    results of all formulas that are in use. Nothing is added if the log lacks the list.

    Parameters
    ----------
    lists
        Name → the list in the log, float64 [samples, answers]. The list that is compared has one answer per sample.
    quantity
        The prefix of the split and the name of the list, such as "forget truth_ratio".
    """
    _, name = quantity.split()
    if (printed := lists.get(name)) is not None:
        closest = min(recomputed, key=lambda value: float(np.abs(printed[:, 0] - value).max()))
        _compare_means(model, quantity, printed[:, 0], closest, "from the losses of each sample")


def _compare_means(model: Model, quantity: str, printed: np.ndarray, recomputed: np.ndarray, how: str) -> None:
    """Add to a model the agreement of two lists in their means over samples. Single values may differ, because each was
    computed in single precision."""
    model.agreements.append(Agreement(f"mean {quantity}", float(printed.mean()), float(recomputed.mean()), how))


def across(model: Model, retrained: Model) -> list[Agreement]:
    """Compute TOFU's forget quality from the truth ratios of a model and of a retrained model; return [] if one of the
    two has none. The printed number is NaN, because the aggregated logs do not print it."""
    return _recompute.forget_quality(math.nan, model, retrained, "Kolmogorov–Smirnov test on truth ratios")
