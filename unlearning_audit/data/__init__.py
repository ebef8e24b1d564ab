"""Data: one file per source, read into one layout; then subsets and label noise as the study asks.

A source is a file with ``Options`` and ``load(options, root) -> Source``, found by its name (`plugins.registry`) or
given by the study. ``prepare`` applies the fields of `study.schema.DataChoice`.
"""

import hashlib
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unlearning_audit.data import _choices
from unlearning_audit.evaluation import views
from unlearning_audit.evaluation.samples import Data
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError, guard, in_library, readable, type_of
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.store import folders

LAYOUTS = {"uint8": (4,), "float32": (2, 4), "int32": (2,)}


@dataclass(frozen=True, eq=False)
class Source:
    """All samples of a data set in its canonical order: training part first, then the test part, if any.

    ``x``: images uint8 (0–255) or float32 (0–1) [n, channels, height, width], tables float32 [n, features],
    or tokens int32 [n, length]; ``y`` int64 [n] in 0 … classes − 1; ``part`` uint8 [n] (0 train, 1 test);
    ``classes`` at least 2. Text may bring more: ``public`` int32 [m, length], passages that a base model learns
    from and nobody forgets; ``compressed`` int64 [n], bytes of each row's text after zlib; ``tokenizer`` uint8
    [bytes], what ``tokenizer.json`` holds; rows of part 2, views of other rows, on which models are asked and never
    trained: ``parent`` int64 [n], the row that each is a view of, −1 for all others, and ``view`` uint8 [n], one of
    `evaluation.views.VIEWS`, 0 for all others; ``group`` uint8 [n], from which of several sets a row of
    the test part is, 0 for all others. ``subject`` int64 [n], whose sample each is, where
    people are to be forgotten whole. ``rescaled`` makes x from the training rows bool [n], where it depends on them by
    their mean or their standard deviation and ``test_size`` may yet draw a test part. Raises ValueError that names the
    field.
    """

    x: np.ndarray
    y: np.ndarray
    part: np.ndarray
    classes: int
    public: np.ndarray | None = None
    compressed: np.ndarray | None = None
    tokenizer: np.ndarray | None = None
    parent: np.ndarray | None = None
    view: np.ndarray | None = None
    group: np.ndarray | None = None
    subject: np.ndarray | None = None
    rescaled: Callable[[np.ndarray], np.ndarray] | None = None

    def __post_init__(self) -> None:
        x, y, part, n = self.x, self.y, self.part, len(self.x)
        if x.ndim not in LAYOUTS.get(x.dtype.name, ()):
            raise ValueError(
                f"x is {x.dtype} {x.shape}; it must be images [n, channels, height, width] in uint8 or "
                "float32, a table [n, features] in float32 or tokens [n, length] in int32"
            )
        if y.dtype != np.int64 or y.shape != (n,):
            raise ValueError(f"y is {y.dtype} {y.shape}; it must be int64 ({n},), one label for each row of x")
        if problem := views.wrong(part, self.parent, self.view):
            raise ValueError(problem)
        if part.dtype != np.uint8 or part.shape != (n,) or (part > (1 if self.parent is None else 2)).any():
            raise ValueError(f"part must be uint8 ({n},) with 0 (train) or 1 (test) for each row of x")
        if self.group is not None and (self.group.dtype != np.uint8 or self.group.shape != (n,)):
            raise ValueError(f"group is {self.group.dtype} {self.group.shape}; it must be uint8 ({n},)")
        if self.subject is not None and (self.subject.dtype != np.int64 or self.subject.shape != (n,)):
            raise ValueError(f"subject is {self.subject.dtype} {self.subject.shape}; it must be int64 ({n},)")
        if not (part == 0).any():
            raise ValueError("part has no 0: there is no training sample")
        if self.classes < 2 or y.min() < 0 or y.max() >= self.classes:
            raise ValueError(
                f"y has labels {y.min()} … {y.max()} and there are {self.classes} classes; labels must count "
                "from 0 to the number of classes minus one, and classes be at least 2"
            )
        if x.dtype == np.float32 and not np.isfinite(x).all():
            raise ValueError("x has values that are NaN or infinite; clean or drop those samples")


def loaded(module: registry.Module, options: Settings, root: Path) -> Source:
    """What the source in ``module`` loads. Raises PluginError, with the place, if a user's own fails."""
    with nullcontext() if in_library(module.__file__) else guard(module.__file__):
        source = module.load(options, root)
    if not isinstance(source, Source):
        expected = "load must return a Source of unlearning_audit.data"
        raise PluginError(f"{readable(module.__file__)}: {expected}, it returned {type_of(source)}")
    return source


def read_source(settings: dict[str, Any], place: dict[str, Any], root: Path) -> Source:
    """What the source that a study names loads: ``settings`` holds its name and options; ``place`` where it lies, and
    "file", if it is a user's own. Raises ValueError, and PluginError if a user's own fails."""
    options = {name: value for name, value in place.items() if name not in ("file", "where", *folders.OF_JOB)}
    source = registry.load("data", settings["source"], place.get("file"))
    return loaded(source, source.Options(**settings["options"], **options), root)


def prepare(
    source: Source,
    *,
    seed: int,
    size: int | float | None = None,
    per_class: int | None = None,
    test_size: int | float | None = None,
    label_noise: float = 0.0,
    label_noise_seed: int = 0,
    label_noise_kind: Literal["any", "other"] = "any",
    greyscale: bool | Literal["interleaved"] = False,
) -> Data:
    """Split, reduce and relabel ``source``, in this order; every draw is a function of its seed alone.

    ``test_size``: a number or a fraction; for a source without a test part, move so many random samples to
    one; for a source that has one, keep so many of it. ``per_class``: keep the first samples of each class of
    the training part, in canonical order. ``size``: keep random training samples (a number, or a fraction of
    those that are left); with the same ``seed`` a smaller size is a subset of a larger one.

    ``label_noise``: the share of the training labels that is randomised, met to the nearest sample. A
    randomised label is uniform over all classes (``any``: with C classes, 1/C of them stay as they were) or
    over all but the true one (``other``). The order in which samples are chosen, and their new labels, depend
    on ``label_noise_seed`` alone, so a smaller share relabels a subset. Test labels stay clean.

    ``greyscale``: ITU-R 601 luma in place of RGB, rounded as Pillow does. ``interleaved`` first reads the
    bytes of the channel-last image as if channels came first: what the published code of Becker and
    Liebig, "Evaluating machine unlearning via epistemic uncertainty" (2022), does to CIFAR-10.

    Raises ValueError that names the option.
    """
    n, part = len(source.x), source.part.copy()
    test = part == 1
    if test_size is not None:
        official_test, candidates = test.any(), test if test.any() else part < 2
        samples = int(candidates.sum())
        count = _choices.count("test_size", test_size, samples)
        if count == samples and not official_test:
            raise ValueError(f"test_size: {test_size} leaves no training sample of {samples}; make it smaller")
        test = _choices.first_in_order(candidates, generator(seed, "test_size").permutation(n), count)
        if not official_test:
            part[test] = 1
    x = source.x if source.rescaled is None or (part == source.part).all() else source.rescaled(part == 0)
    train = part == 0
    if per_class is not None:
        train = _choices.first_of_each_class(train, source.y, source.classes, per_class)
    if size is not None:
        count = _choices.count("size", size, int(train.sum()))
        train = _choices.first_in_order(train, generator(seed, "size").permutation(n), count)
    rng = generator(label_noise_seed, "label_noise")
    y = _choices.randomise(source.y, train, source.classes, label_noise, label_noise_kind, rng)
    mask = train | test
    parent = source.parent
    if parent is not None:
        mask |= (part == 2) & mask[parent]
        parent = np.where(parent >= 0, np.cumsum(mask)[parent] - 1, -1)[mask]
    index = np.flatnonzero(mask)
    x = x[index]
    if greyscale:
        x = _choices.luma(x, interleaved=greyscale == "interleaved")
    compressed, view, group, subject = (
        None if rows is None else rows[index] for rows in (source.compressed, source.view, source.group, source.subject)
    )
    return Data(
        x, y[index], part[index], source.y[index], index, source.classes, source.public, compressed, source.tokenizer,
        parent, view, group, subject,
    )  # fmt: skip


def duplicates(x: np.ndarray) -> list[np.ndarray]:
    """Groups of two or more rows of ``x`` [n, …] that are equal: same 128-bit BLAKE2b of their bytes.

    Each group is int64 row numbers in ascending order; groups are ordered by their first row.
    """
    rows = np.ascontiguousarray(x + 0 if x.dtype.kind == "f" else x).reshape(len(x), -1)  # −0 + 0 is 0
    rows_of_digest: dict[bytes, list[int]] = {}
    for i, row in enumerate(rows):
        rows_of_digest.setdefault(hashlib.blake2b(row.data, digest_size=16).digest(), []).append(i)
    return [np.array(group, dtype=np.int64) for group in rows_of_digest.values() if len(group) > 1]


def pairs_across(groups: list[np.ndarray], part: np.ndarray) -> np.ndarray:
    """Every pair (training row, test row) within the ``groups`` of ``duplicates``: int64 [pairs, 2]."""
    pairs = [(i, j) for group in groups for i in group[part[group] == 0] for j in group[part[group] == 1]]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def copies_across(groups: list[np.ndarray], of: np.ndarray, among: np.ndarray) -> int:
    """How many samples of one role have an exact copy in another, summed over models.

    ``of`` and ``among`` bool [models, samples] say who is in the two roles, ``groups`` as ``duplicates`` gives them. A
    sample is no copy of itself.
    """
    count = 0
    for group in groups:
        elsewhere = among[:, group].sum(1, keepdims=True) - among[:, group]
        count += int((of[:, group] & (elsewhere > 0)).sum())
    return count
