"""Data: one file for each source, with samples in one layout; then subsets and label noise as the study requests.

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
from unlearning_audit.evaluation.arrays import Data
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError, guard, in_library, readable, type_of
from unlearning_audit.plugins.settings import Settings as Settings
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.store import folders

#: dtype of samples → the numbers of axes that they may have: images 4, tables and tokens 2.
LAYOUTS = {"uint8": (4,), "float32": (2, 4), "int32": (2,)}


@dataclass(frozen=True, eq=False)
class Source:
    """All samples of a data set in its canonical order: first the training part, then the test part, if any.

    Raises ValueError that names a field of another type or shape.

    Parameters
    ----------
    x
        Images uint8 (0–255) or float32 (0–1) [n, channels, height, width], tables float32 [n, features], or tokens
        int32 [n, length].
    y
        int64 [n]: labels from 0 to classes − 1.
    part
        uint8 [n]: 0 train, 1 test, 2 view.
    classes
        The number of classes, at least 2.
    public
        int32 [m, length]: passages of text that a base model learns and that are never forgotten.
    compressed
        int64 [n]: bytes of each row's text after zlib.
    tokenizer
        uint8 [bytes]: the content of ``tokenizer.json``.
    parent
        int64 [n]: the row of which a view (part 2) is a variant, −1 for other rows. Models are evaluated on views and
        never trained on them.
    view
        uint8 [n]: the kind of a view, one of `evaluation.views.VIEWS`, 0 for other rows.
    group
        uint8 [n]: the set from which a row of the test part comes, if there are several, 0 for other rows.
    subject
        int64 [n]: the person to whom each sample belongs, if people are to be forgotten whole.
    rescaled
        Function of the training rows bool [n] that returns x. A source gives it if its x depends on the mean or the
        standard deviation of the training rows, because ``test_size`` may still move rows to the test part.
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
        if problem := views.problem(part, self.parent, self.view):
            raise ValueError(problem)
        # Parts are 0 and 1 and, if samples have parents, also 2 for views.
        if part.dtype != np.uint8 or part.shape != (n,) or (part > (1 if self.parent is None else 2)).any():
            raise ValueError(f"part must be uint8 ({n},) with 0 (train) or 1 (test) for each row of x")
        for name, rows, kind in (("group", self.group, "uint8"), ("subject", self.subject, "int64")):
            if rows is not None and (rows.dtype != kind or rows.shape != (n,)):
                raise ValueError(f"{name} is {rows.dtype} {rows.shape}; it must be {kind} ({n},)")
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
    """Load the samples of a data set by its source, the plug-in ``module``.

    Raises PluginError if a source returns no `Source` or, with the line, if a user's own source fails; ValueError for
    options that do not fit the data.

    Parameters
    ----------
    root
        The folder from which relative paths in ``options`` are read.
    """
    guarded = nullcontext() if in_library(module.__file__) else guard(module.__file__)
    with guarded:  # an error in a source of the library is a defect, or a ValueError that it raises on purpose
        source = registry.call("data", module, "load", options, root)
    if not isinstance(source, Source):
        expected = "load must return a Source of unlearning_audit.data"
        raise PluginError(f"{readable(module.__file__)}: {expected}, it returned {type_of(source)}")
    return source


def read_source(settings: dict[str, Any], place: dict[str, Any], root: Path) -> Source:
    """Load the source that a study names.

    Raises ValueError, and PluginError if a user's own source fails.

    Parameters
    ----------
    settings
        The source's name, as "source", and its "options".
    place
        Further options, which say where the source lies, and "file", the path of a user's own source.
    root
        The folder from which paths are read.
    """
    # ``place`` also says things of the job that are no options of the source.
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
    """Split, reduce, relabel and convert to grey the samples of ``source``, in this order, each only if it is asked
    for. Every draw is a function of its seed alone. Views of samples that are left out are left out too.

    Parameters
    ----------
    source
        The samples of the data set.
    seed
        The seed of ``test_size`` and ``size``.
    size
        Number of random training samples to keep, or a fraction of the training samples that ``test_size`` and
        ``per_class`` leave. With the same ``seed``, a smaller size is a subset of a larger one.
    per_class
        Number of training samples of each class to keep: the first ones in canonical order.
    test_size
        Number of random samples of the test part, or a fraction. If the source has a test part, only these samples of
        it are kept. If it has none, they are taken from the training part and become the test part.
    label_noise
        The share of the training labels that is randomised, met to the nearest sample. Test labels stay clean.
    label_noise_seed
        The seed of the order in which samples are relabelled, and of their new labels. So a smaller share relabels a
        subset.
    label_noise_kind
        "any": a new label is uniform over all C classes, so that about 1/C of the new labels equal the old ones.
        "other": a new label is uniform over all classes except the true one.
    greyscale
        Replace RGB by ITU-R 601 luma, rounded as Pillow does. "interleaved" first reads the bytes of the channel-last
        image as if channels came first, as the published code of Becker and Liebig, "Evaluating machine unlearning via
        epistemic uncertainty" (2022), does with CIFAR-10.

    Returns
    -------
    Data
        The samples that are left.

    Raises
    ------
    ValueError
        An option does not fit the source; the message names it.
    """
    n, part = len(source.x), source.part.copy()
    test = part == 1
    if test_size is not None:
        official_test = test.any()
        candidates = test if official_test else part < 2  # rows from which the test part is drawn; 2 are views
        samples = int(candidates.sum())
        count = _choices.count("test_size", test_size, samples)
        if count == samples and not official_test:
            raise ValueError(f"test_size: {test_size} leaves no training sample of {samples}; make it smaller")
        test = _choices.first_in_order(candidates, generator(seed, "test_size").permutation(n), count)
        if not official_test:
            part[test] = 1
    # If rows have moved to the test part, x is standardised anew by those that are left for training.
    moved = (part != source.part).any()
    x = source.rescaled(part == 0) if moved and source.rescaled is not None else source.x
    train = part == 0
    if per_class is not None:
        train = _choices.first_of_each_class(train, source.y, source.classes, per_class)
    if size is not None:
        count = _choices.count("size", size, int(train.sum()))
        train = _choices.first_in_order(train, generator(seed, "size").permutation(n), count)
    rng = generator(label_noise_seed, "label_noise")
    y = _choices.randomise(source.y, train, source.classes, label_noise, label_noise_kind, rng)
    kept = train | test
    parent = source.parent
    if parent is not None:  # views stay with their parents; the new number of a row is how many before it are kept
        kept |= (part == 2) & kept[parent]
        parent = np.where(parent >= 0, np.cumsum(kept)[parent] - 1, -1)[kept]
    index = np.flatnonzero(kept)
    x = x[index]
    if greyscale:
        x = _choices.luma(x, interleaved=greyscale == "interleaved")
    may_be_missing = {name: getattr(source, name) for name in ("compressed", "view", "group", "subject")}
    return Data(
        x, y[index], part[index], y_clean=source.y[index], index=index, classes=source.classes, public=source.public,
        tokenizer=source.tokenizer, parent=parent,
        **{name: None if rows is None else rows[index] for name, rows in may_be_missing.items()},
    )  # fmt: skip


def duplicates(x: np.ndarray) -> list[np.ndarray]:
    """Return groups of two or more equal rows of ``x`` [n, …], by a 128-bit BLAKE2b of their bytes.

    Each group is int64 row numbers in ascending order; groups are ordered by their first row.
    """
    # −0 + 0 is 0, which has other bytes than −0.
    rows = np.ascontiguousarray(x + 0 if x.dtype.kind == "f" else x).reshape(len(x), -1)
    rows_of_digest: dict[bytes, list[int]] = {}
    for i, row in enumerate(rows):
        rows_of_digest.setdefault(hashlib.blake2b(row.data, digest_size=16).digest(), []).append(i)
    return [np.array(group, dtype=np.int64) for group in rows_of_digest.values() if len(group) > 1]


def pairs_across(groups: list[np.ndarray], part: np.ndarray) -> np.ndarray:
    """Return every pair (training row, test row) of equal rows: int64 [pairs, 2]. ``groups``: groups of equal rows,
    from `duplicates`; ``part`` [n]: 0 for training and 1 for test rows; other rows are left out."""
    pairs = [(train, test) for group in groups for train in group[part[group] == 0] for test in group[part[group] == 1]]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)  # [0, 2] if there are no pairs


def copies_across(groups: list[np.ndarray], of: np.ndarray, among: np.ndarray) -> int:
    """Count the samples of one role that have an exact copy in another role, summed over models.

    A sample is not a copy of itself.

    Parameters
    ----------
    groups
        Row numbers of equal samples, from `duplicates`.
    of, among
        bool [models, samples]: the samples in the one role, which are counted, and in the other.
    """
    count = 0
    for group in groups:
        others = among[:, group].sum(1, keepdims=True) - among[:, group]  # copies besides the sample itself
        count += int((of[:, group] & (others > 0)).sum())
    return count
