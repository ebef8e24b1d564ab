"""Margins of many models by epoch, as EasyDUB's reproduce.py writes them, with the KLOM that it prints."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.readers._model import Agreement, Model
from unlearning_audit.store.files import names_in_archive, reason

PARTS = ("retain", "forget", "val")
#: Margins are clipped to ±CLIP; histograms have BINS bins; an empty bin of the oracles counts as if it had the
#: probability EMPTY_BIN.
CLIP, BINS, EMPTY_BIN = 100.0, 20, 1e-5
#: The summaries of KLOM over samples that reproduce.py prints.
PRINTED: dict[str, Any] = {"mean": np.mean, "p95": lambda x: np.percentile(x, 95), "p05": lambda x: np.percentile(x, 5)}


def is_archive(path: Path) -> bool:
    """Return whether a file is an archive of decision margins, judged by the names of its arrays."""
    return {f"margins_{part}.npy" for part in PARTS} <= names_in_archive(path)


def archive(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of an archive of decision margins, name → array: margins_<part> float32 [epochs, models, samples]
    for each part of the data in `PARTS`, and, where the archive has it, klom_<how>_<part> float [epochs] for each
    summary (how) of `PRINTED`.

    Raises ValueError that names the file if it cannot be read, if one of these shapes has a 0, or if parts of the data
    differ in epochs or models.
    """
    try:
        with np.load(path, allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in loaded.files}
    except Exception as error:
        raise ValueError(f"{path}: this archive cannot be read ({reason(error)})") from None
    shapes = {name: arrays[name].shape for name in (f"margins_{part}" for part in PARTS)}
    for name, shape in shapes.items():
        if len(shape) != 3 or shape[:2] != next(iter(shapes.values()))[:2] or not all(shape):
            demand = "[epochs, models, samples], none of them 0, with equal epochs and models in all parts of the data"
            raise ValueError(f"{path}: {name} has shape {shape}, but must be {demand}")
    return arrays


def klom(*, margin: np.ndarray, oracle: np.ndarray) -> np.ndarray:
    """Return KLOM of each sample in nats, float64 [samples], as EasyDUB computes it (Rinberg et al. 2026): the
    Kullback–Leibler divergence KL(models ‖ oracles) between two histograms, each over many models.

    Margins are clipped to ±`CLIP`, and `BINS` equal bins span both groups of models. A bin of oracles counts as
    `EMPTY_BIN` at least. As in EasyDUB, the last bin excludes its upper edge, so the largest margin lies in no bin.

    Parameters
    ----------
    margin, oracle
        float [models, samples]: decision margins of the models, and of retrained models (oracles).
    """
    both = [np.clip(margins, -CLIP, CLIP) for margins in (margin, oracle)]
    # The smallest and the largest margin of each sample, [samples]. Where they are equal, bins get a width of 1 / BINS.
    start, stop = (np.minimum(*(margins.min(0) for margins in both)), np.maximum(*(margins.max(0) for margins in both)))
    edges = np.linspace(start, np.where(start >= stop, start + 1, stop), BINS + 1)  # [edges, samples]
    shares = []  # of models in each bin, [bins, samples]
    for margins in both:
        above = np.stack([(margins >= edge).sum(0) for edge in edges])  # how many models lie at or above each edge
        count = (above[:-1] - above[1:]).astype(np.float64)  # how many lie in each bin
        shares.append(count / np.maximum(count.sum(0), 1))
    p, q = shares
    p_or_one = np.where(p > 0, p, 1.0)  # an empty bin of the models adds 0 · log 0 = 0
    return np.asarray(np.where(p > 0, p_or_one * np.log(p_or_one / np.maximum(q, EMPTY_BIN)), 0.0).sum(0))


def agreements(arrays: dict[str, np.ndarray], oracles: Sequence[Model]) -> list[list[Agreement]]:
    """Return, for each epoch, the printed KLOM beside the KLOM computed from the decision margins of the models and of
    the ``oracles`` with the same numbers.

    A part of the data is skipped if nothing is printed for it, if an oracle is missing, or if oracles have another
    number of samples than the models.

    Parameters
    ----------
    arrays
        The arrays of an archive by name: margins_<part> float [epochs, models, samples] and klom_<how>_<part> [epochs].
    oracles
        Retrained models, each with its number and the files of its margins in ``raw``.
    """
    _, models, _ = arrays["margins_forget"].shape
    # Number of an oracle → part of the data → file of its margins.
    files_of = {oracle.raw["number"]: oracle.raw["files"] for oracle in oracles}
    by_epoch: list[list[Agreement]] = [[] for _ in arrays["margins_forget"]]
    for part in PARTS:
        files = [files_of.get(number, {}).get(part) for number in range(models)]  # None where one is missing
        if not all(files) or not any(f"klom_{how}_{part}" in arrays for how in PRINTED):
            continue
        oracle = np.stack([np.load(file, allow_pickle=False).reshape(-1) for file in files])
        margins = arrays[f"margins_{part}"]
        if oracle.shape[1] != margins.shape[2]:
            continue
        for epoch, margin in enumerate(margins):
            values = klom(margin=margin, oracle=oracle)
            for how, aggregate in PRINTED.items():
                if (printed := arrays.get(f"klom_{how}_{part}")) is not None:
                    name = f"klom_{how}_{part} of epoch {epoch + 1}"
                    formula = f"KLOM against {models} oracles"
                    by_epoch[epoch].append(Agreement(name, float(printed[epoch]), float(aggregate(values)), formula))
    return by_epoch
