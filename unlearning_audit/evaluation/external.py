"""Read a user's own logits and memberships: check every file, and infer missing ones where possible.

The files of one population of models, each an array saved with ``numpy.save``:

``logits`` float16, float32 or float64 [models, samples, classes], before softmax. ``labels`` int [samples], or [models,
samples] if models were trained with labels of their own. ``train`` and ``forget`` bool [models, samples]: the samples
that a model was trained on, and those of them that it has to forget.

All other files are optional. ``heldout`` bool [models, samples]: never seen, though drawn from the same candidates.
``test`` bool [samples]: the official test part. ``weight`` float [samples]: the sensitivity distribution. ``pair`` int
[samples]: two samples with one number, from 0 on, are canaries; a fair coin put one of them into forget and the other
into heldout. -1 for all other samples. ``split`` and ``block`` int [models]: in a swapped pair, that is two splits of
one block, the forget set of one is the heldout set of the other.

A file on models may also be [samples], the same for all of them.

A missing file is inferred:

* ``heldout``: the canaries that a model was not trained on. Without canaries: what another model of the population was
  trained on and this one was not, or, if that leaves some model without samples, all that each was not trained on.
* ``train``: only forgotten samples are known to have been seen, so that numbers on retained samples are missing. If all
  samples are to be forgotten, ``heldout`` may be missing as well, and models are compared on the forgotten samples.
* ``split`` and ``block``: models with equal memberships are one split; two splits are a pair if they are swapped.
* in retrain/, ``train`` may contain the forget set or not: retrained models have not seen it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.evaluation import headers, no_logits
from unlearning_audit.evaluation.arrays import Data, Logits, Membership, pairs_problem
from unlearning_audit.evaluation.published import Published
from unlearning_audit.store.files import FailedError

#: Populations that never saw the forget set.
RETRAINED = ("retrain", "retrain_control")

#: Logits above the first value lose digits in 32 bits; values above the second cannot be logits.
LARGE, HUGE = 1e4, 1e30

#: A model diverged if more than this share of its samples have values that are NaN or infinite.
DIVERGED = 0.5


def read(files: Mapping[str, str | Path], population: str) -> tuple[Data, Membership, Logits | Published]:
    """Read the files of one population of models; return its data, its memberships and its logits.

    If ``files`` has ``published``, a file of scores and readings of other people's results, only this file is read, and
    `Published` takes the place of logits. The data's ``x`` is float32 [samples, 0], because samples are known by number
    only.

    Parameters
    ----------
    files
        ``logits``, ``labels``, ``train`` and so on (see the module's docstring) → path.
    population
        The name of the population, such as "target" or "retrain".

    Raises
    ------
    ValueError
        If a file is wrong. The message names the file, what is wrong and what to do.
    """
    if "published" in files:
        published = Published.read(files["published"])
        return published.data, published.membership, published
    source = _Source(files)
    headers.check(source.files)
    logits = _logits(source)
    y, trained_labels = _labels(source, *logits.shape)  # the latter: of each model; None if all trained with y
    samples = logits.shape[1]
    test = source.load("test") if "test" in files else np.zeros(samples, bool)
    membership = _membership(source, population, logits.shape[:2], test, trained_labels)
    x, index = np.zeros((samples, 0), np.float32), np.arange(samples)
    data = Data(x, y=y, part=test.astype(np.uint8), y_clean=y, index=index, classes=logits.shape[2])
    return data, membership, Logits(logits, index, y)


def memberships(files: Mapping[str, str | Path], population: str, data: Data, models: int) -> Membership:
    """Read the memberships of models whose samples are known already.

    Parameters
    ----------
    files
        ``train``, ``forget`` and so on (see the module's docstring), without logits and labels → path. The samples in
        ``test`` are added to the test part of ``data``.
    population
        The name of the population, such as "target" or "retrain".
    data
        The samples.
    models
        How many models there are.

    Raises
    ------
    ValueError
        If a file is wrong. The message names the file, what is wrong and what to do.
    """
    source, shape = _Source(files), (models, len(data.y))
    headers.check(source.files, shape)
    test = (data.part == 1) | (source.load("test") if "test" in source else False)
    return _membership(source, population, shape, test, labels=None)


def _membership(
    source: "_Source", population: str, shape: tuple[int, int], test: np.ndarray, labels: np.ndarray | None
) -> Membership:
    """Read and check the masks, splits, weights and canaries of one population of models; return them. Seeds are
    unknown: the number of each model stands in its place. Pairs that do not fit retrained models are left out.

    Parameters
    ----------
    population
        The name of the population, such as "target" or "retrain".
    shape
        The numbers of models and samples.
    test
        bool [samples]: the test part.
    labels
        int64 [models, samples]: the labels that models were trained with; None if they are the same for all models.
    """
    masks = _masks(source, *shape, test, population)
    split, block = _splits_and_blocks(source, masks)
    weight = source.load("weight").astype(np.float64) if "weight" in source else None
    if weight is not None and ((weight < 0).any() or not np.isfinite(weight).all() or weight.sum() == 0):
        source.fail("weight", "must be finite, at least 0 and not all 0")
    pair = source.load("pair").astype(np.int64) if "pair" in source else None
    if pair is not None and (problem := pairs_problem(pair, masks["forget"], masks["heldout"])):
        if population not in RETRAINED:
            source.fail("pair", problem)
        pair = None  # the coins of retrained models are others
    return Membership(
        **masks, seed=np.arange(shape[0]), split=split, block=block, shadow=np.zeros(shape[0], bool), weight=weight,
        labels=labels, pair=pair,
    )  # fmt: skip


class _Source:
    """The arrays of a population by name. Each is loaded once, and each failure names the file."""

    def __init__(self, files: Mapping[str, str | Path]) -> None:
        self.files = {name: Path(path) for name, path in files.items()}

    def __contains__(self, name: str) -> bool:
        return name in self.files

    def fail(self, name: str, problem: str) -> None:
        """Raise ValueError with what is wrong with an array, after the path of its file."""
        raise ValueError(f"{self.files[name]}: {name} {problem}")

    def load(self, name: str) -> np.ndarray:
        """Load an array as it was saved. Never unpickles."""
        return np.array(headers.open_array(name, self.files[name]))

    def mask(self, name: str, models: int, samples: int) -> np.ndarray:
        """Load a mask, bool [models, samples]. A mask [samples] counts for all models.

        A mask that was lent by another population may have another number of models, if all of its rows are equal.
        """
        value = self.load(name)
        if value.ndim == 2 and len(value) and len(value) != models:
            if not (value == value[:1]).all():
                headers.refuse_shape(name, self.files, value.shape, [(models, samples), (samples,)])
            value = value[:1]
        return np.broadcast_to(value, (models, samples)).copy()


# ---------------------------------------------------------------- the fields


def _logits(source: _Source) -> np.ndarray:
    """Load logits as float32 [models, samples, classes].

    Raises FailedError if models diverged: more than the share `DIVERGED` of their samples is not finite. Raises
    ValueError for other values that are not finite, and for probabilities or losses in place of logits.
    """
    value = source.load("logits")
    if value.dtype == np.float64 and LARGE < np.abs(value).max() < HUGE:
        value = value - value.max(axis=-1, keepdims=True)  # softmax ignores the shift, and no digit is lost
    with np.errstate(over="ignore"):
        value = value.astype(np.float32)
    infinite = ~np.isfinite(value).all(axis=2)
    if (diverged := infinite.mean(axis=1) > DIVERGED).any():
        models, samples = int(diverged.sum()), int(infinite[diverged].any(axis=0).sum())
        sentence = (
            f"{source.files['logits']}: logits: model damaged: {models} of {len(infinite)} models diverged, with NaN "
            f"or infinite values of {samples} of {infinite.shape[1]} samples"
        )
        raise FailedError("diverged", sentence)
    if infinite.any():
        numbers = np.flatnonzero(infinite.any(axis=0))
        listed = f"{len(numbers)} samples ({', '.join(map(str, numbers[:5]))})"
        source.fail("logits", f"has values that are NaN or infinite for {listed}; leave these out of all arrays")
    if instead := no_logits.problem(value):
        source.fail("logits", instead)
    return value


def _labels(source: _Source, models: int, samples: int, classes: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Load the labels of the data, int64 [samples], and those that each model was trained with, int64 [models,
    samples]. If all models were trained with the same labels, these are the labels of the data, and the second is None.

    ``models``, ``samples`` and ``classes`` are the numbers of them in the logits.
    """
    value = source.load("labels").astype(np.int64)
    if value.min() < 0 or value.max() >= classes:
        span = f"from {value.min()} to {value.max()}"
        source.fail("labels", f"has values {span}, but must be 0 to {classes - 1}, the classes of the logits")
    by_model = np.broadcast_to(value, (models, samples))
    if (by_model == by_model[:1]).all():
        return by_model[0], None
    # The label that most models were trained with, the smallest in a tie.
    return np.argmax([(value == label).sum(axis=0) for label in range(classes)], axis=0), value


def _masks(source: _Source, models: int, samples: int, test: np.ndarray, population: str) -> dict[str, Any]:
    """Load or infer "train", "forget" and "heldout", name → bool [models, samples]; check that a model was trained on
    what it has to forget, and on no test or held-out sample.

    The mask "train" of a retrained model may contain all of its forget set or nothing of it, but not a part. The whole
    set is added to it here, because a forget set is a part of train in all memberships.

    Parameters
    ----------
    models, samples
        The numbers of models and of samples.
    test
        bool [samples]: the test part.
    population
        The name of the population whose masks these are.

    Raises
    ------
    ValueError
        If a mask is wrong. The message names the file.
    """
    masks = {name: source.mask(name, models, samples) for name in ("train", "forget", "heldout") if name in source}
    forget = masks.get("forget", np.zeros((models, samples), bool))
    if "forget" in masks and not forget.any(axis=1).all():
        source.fail("forget", f"is empty for model {forget.any(axis=1).argmin()}; leave it out of all arrays")
    train = masks.get("train", forget)
    outside = forget & ~train  # forgotten by a model that was not trained on it
    if population in RETRAINED:
        partly = outside.any(axis=1) & (forget & train).any(axis=1)
        if partly.any():
            where = f"{source.files.get('train')} for model {partly.argmax()}"
            source.fail("forget", f"lies partly in {where}; a retrained model has seen none of it")
        train = train | forget
    elif outside.any():
        where = f"{int(outside.sum())} entries outside {source.files.get('train')}"
        source.fail("forget", f"has {where}; only what a model was trained on can be forgotten")
    if "train" in masks and not train.any(axis=1).all():
        source.fail("train", f"is empty for model {train.any(axis=1).argmin()}; leave it out of all arrays")
    if (train & test).any():
        where = f"{int((train & test).sum())} entries in {source.files['test']}"
        source.fail("train" if "train" in masks else "forget", f"has {where}; no model sees test samples")
    return {"train": train, "forget": forget, "heldout": _heldout(source, train, masks.get("heldout"))}


def _heldout(source: _Source, train: np.ndarray, given: np.ndarray | None) -> np.ndarray:
    """Return the samples that each model never saw, bool [models, samples]: the mask ``given``, which is checked
    against ``train``, or else an inferred one.

    Inferred held-out samples of a model are the canaries that it was not trained on. Without canaries, they are the
    samples that only other models were trained on. If this leaves some model without samples, they are, for every
    model, all samples that it was not trained on, test samples included.
    """
    if given is not None:
        if (given & train).any():
            where = f"{int((given & train).sum())} entries in {source.files.get('train') or source.files.get('forget')}"
            source.fail("heldout", f"has {where}; a model has not seen these")
        return given
    if "pair" in source:
        return ~train & (source.load("pair") >= 0)
    of_others = ~train & train.any(axis=0)
    return of_others if of_others.any(axis=1).all() else ~train


def _splits_and_blocks(source: _Source, masks: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the split and block of each model, int64 [models] each: from files, or inferred from the memberships,
    ``masks``.

    If splits are inferred, models with the same forgotten and held-out samples share a split. If every split has a
    counterpart that swaps its forgotten and held-out samples, the two are a block. If some split has no counterpart,
    there is one block.
    """
    zeros = np.zeros(len(masks["forget"]), np.int64)
    columns = {name: source.load(name).astype(np.int64) for name in ("split", "block") if name in source}
    if "split" in columns:
        return columns["split"], columns.get("block", zeros)
    if "block" in columns:
        source.fail("block", "has no meaning without split; give split or leave block out")
    both = zip(masks["forget"], masks["heldout"], strict=True)
    # Each model's forgotten and held-out samples, as bytes, which can be keys of a dict.
    sets = [(forget.tobytes(), heldout.tobytes()) for forget, heldout in both]
    splits = list(dict.fromkeys(sets))
    if not all((heldout, forget) in splits for forget, heldout in splits):  # a split has no counterpart
        return np.array([splits.index(of_model) for of_model in sets]), zeros
    blocks = list(dict.fromkeys(map(frozenset, splits)))
    second = [splits.index((forget, heldout)) > splits.index((heldout, forget)) for forget, heldout in sets]
    return np.array(second, np.int64), np.array([blocks.index(frozenset(of_model)) for of_model in sets])
