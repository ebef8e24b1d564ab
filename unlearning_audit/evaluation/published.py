"""Scores and other values per sample that result files of other people publish, in the place of logits:
``published.npz``.

One file for each population of models, also in a folder of the protocol external. Masks are bool [models, samples],
numbers float64 [columns, models, samples], NaN where a model has no value for a sample.
"""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.store.files import Arrays, Check, read_arrays

#: The file's name in the folder of a population.
FILE = "published.npz"


@dataclass(frozen=True)
class Published(Arrays):
    """Scores and other values per sample of the models of one population.

    ``forget``, ``heldout`` and ``retain`` bool [models, samples]: to be forgotten (of a retrained model: never seen),
    never seen, kept; ``test`` bool [samples]: samples of another kind. ``samples`` str [samples]: their names.
    ``attacks`` and ``readings``: names of the columns of ``scores``, higher = more like a member, and of ``values``;
    ``direction`` int [readings]: +1 if a model that remembers more has a higher value, −1 if a lower one, 0 if unknown;
    ``share`` bool [readings]: whether values lie between 0 and 1. ``comparable`` str: the columns that all populations
    of a scenario have, on the same samples. ``fair``: whether coins chose who forgets what. ``step``: of unlearning, −1
    if there is none. As JSON: ``agreements``, for each number that the files print [quantity, printed, recomputed,
    how]; ``remarks``, sentences about this population; ``aggregates``, for each aggregate [name, value, ci_low,
    ci_high, n, formula].
    """

    forget: np.ndarray
    heldout: np.ndarray
    retain: np.ndarray
    test: np.ndarray
    samples: np.ndarray
    attacks: np.ndarray
    scores: np.ndarray
    readings: np.ndarray
    values: np.ndarray
    direction: np.ndarray
    share: np.ndarray
    comparable: np.ndarray
    fair: bool = False
    step: int = -1
    agreements: str = "[]"
    remarks: str = "[]"
    aggregates: str = "[]"

    @classmethod
    def read(cls, path: str | Path) -> "Published":
        """Read and check a file. Raises ArtifactError that names the file and the field."""
        check = Check(path, read_arrays(path))
        forget = check.field("forget", "b", (None, None))
        shape = forget.shape
        masks = {name: check.field(name, "b", shape) for name in ("heldout", "retain")}
        if (forget & (masks["heldout"] | masks["retain"])).any() or (masks["heldout"] & masks["retain"]).any():
            check.fail("forget", "shares samples with heldout or retain; each sample has one role in a model")
        names = {name: check.field(name, "U", (None,)) for name in ("attacks", "readings", "comparable")}
        columns = {}
        for name, of in (("scores", "attacks"), ("values", "readings")):
            columns[name] = check.field(name, "f", (len(names[of]), *shape), finite=False)
            if np.isinf(columns[name]).any():
                check.fail(name, "has infinite values; NaN stands for samples that a model was not asked about")
        count = (len(names["readings"]),)
        direction, share = check.field("direction", "iu", count).astype(np.int64), check.field("share", "b", count)
        if not np.isin(direction, (-1, 0, 1)).all():
            check.fail("direction", "must be 1, -1, or 0 where neither is so")
        test, samples = check.field("test", "b", shape[1:]), check.field("samples", "U", shape[1:])
        fair, step = bool(check.field("fair", "b", ())), int(check.field("step", "iu", ()))
        words = {name: str(check.field(name, "U", ())) for name in ("agreements", "remarks", "aggregates")}
        for name, text in words.items():
            try:
                json.loads(text)
            except ValueError:
                check.fail(name, "is not JSON")
        more: dict[str, Any] = {**masks, **names, **columns, **words}
        return cls(forget, test=test, samples=samples, direction=direction, share=share, fair=fair, step=step, **more)

    @property
    def sentences(self) -> list[str]:
        """Return the remarks as a list."""
        return list(json.loads(self.remarks))

    def table(self) -> tuple[Data, Membership]:
        """Return the samples, known by number only, and the memberships. Forgotten samples count as trained on."""
        models, samples = self.forget.shape
        if not models or not self.forget.any(axis=1).all():
            raise ValueError("there is no forgotten sample in some model; leave it out")
        zeros, index = np.zeros(samples, np.int64), np.arange(samples)
        data = Data(np.zeros((samples, 0), np.float32), zeros, self.test.astype(np.uint8), zeros, index, 2)
        kinds = np.unique(np.packbits(self.forget, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
        membership = Membership(
            self.forget | self.retain, self.forget, self.heldout, seed=np.arange(models), split=kinds, block=kinds,
            shadow=np.zeros(models, bool),
        )  # fmt: skip
        return data, membership


def holds(path: str | Path) -> bool:
    """Return whether a file in the place of logits contains published scores; False for files that cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "readings.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
