"""Scores and other values per sample that result files of other people publish, in the place of logits:
``published.npz``.

One file for each population of models, also in a folder of the protocol external. Masks are bool [models, samples],
numbers float64 [columns, models, samples], NaN where a model has no value for a sample.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.evaluation.stored import Stored
from unlearning_audit.store.files import Check, names_in_archive

#: The file's name in the folder of a population.
FILE = "published.npz"


@dataclass(frozen=True)
class Published(Stored):
    """Scores and other values per sample of the models of one population.

    Parameters
    ----------
    forget
        bool [models, samples]: to be forgotten; for a retrained model, never seen.
    heldout
        bool [models, samples]: never seen.
    retain
        bool [models, samples]: kept.
    test
        bool [samples]: the test part, samples that are neither forgotten, held out nor retained.
    samples
        str [samples]: the names of the samples.
    attacks
        str [attacks]: the names of the attacks.
    scores
        float64 [attacks, models, samples]: the scores of attacks, higher = more like a member.
    readings
        str [readings]: the names of the other values.
    values
        float64 [readings, models, samples]: the other values.
    direction
        int [readings]: +1 if a model that remembers more has a higher value, −1 if a lower one, 0 if unknown.
    share
        bool [readings]: whether values lie between 0 and 1.
    comparable
        str: the attacks and readings that all populations of a scenario have, on the same samples.
    fair
        Whether coins chose who forgets what.
    step
        The step of unlearning, −1 if there is none.
    agreements
        As JSON, for each number that the files print: its quantity, printed, recomputed, how and agrees.
    remarks
        As JSON: sentences about this population.
    aggregates
        As JSON, for each aggregate: [name, value, ci_low, ci_high, n, formula].
    """

    GAPS = ("scores", "values")

    forget: Annotated[np.ndarray, "b models samples"]
    heldout: Annotated[np.ndarray, "b models samples"]
    retain: Annotated[np.ndarray, "b models samples"]
    test: Annotated[np.ndarray, "b samples"]
    samples: Annotated[np.ndarray, "U samples"]
    attacks: Annotated[np.ndarray, "U attacks"]
    scores: Annotated[np.ndarray, "f attacks models samples"]
    readings: Annotated[np.ndarray, "U readings"]
    values: Annotated[np.ndarray, "f readings models samples"]
    direction: Annotated[np.ndarray, "iu readings"]
    share: Annotated[np.ndarray, "b readings"]
    comparable: Annotated[np.ndarray, "U comparable"]
    fair: Annotated[bool, "b"] = False
    step: Annotated[int, "iu"] = -1
    agreements: Annotated[str, "U"] = "[]"
    remarks: Annotated[str, "U"] = "[]"
    aggregates: Annotated[str, "U"] = "[]"

    @classmethod
    def checked(cls, check: Check, **sizes: int | None) -> dict[str, Any]:
        """Return name → value of each field. Raises ArtifactError that names the file and the field."""
        values = super().checked(check, **sizes)
        forget, heldout, retain = (values[name] for name in ("forget", "heldout", "retain"))
        if (forget & (heldout | retain)).any() or (heldout & retain).any():
            check.fail("forget", "shares samples with heldout or retain; each sample has one role in a model")
        return values

    @property
    def sentences(self) -> list[str]:
        """Return the remarks as a list."""
        return list(json.loads(self.remarks))

    @property
    def data(self) -> Data:
        """Return the samples, which are known by number only. All labels are 0, because results do not say them."""
        index, zeros = np.arange(len(self.test)), np.zeros(len(self.test), np.int64)
        x = np.zeros((len(index), 0), np.float32)
        return Data(x, y=zeros, part=self.test.astype(np.uint8), y_clean=zeros, index=index, classes=2)

    @property
    def membership(self) -> Membership:
        """Return the memberships. Forgotten samples count as trained on, and models with the same forget set are one
        split and one block. Seeds are unknown: the number of each model stands in its place. Raises ValueError if a
        model has no forgotten sample, or if there is no model."""
        models = len(self.forget)
        if not models or not self.forget.any(axis=1).all():
            raise ValueError("there is no forgotten sample in some model; leave it out")
        # Forget sets are numbered: the number of each model's own, which is element [1] of what np.unique returns.
        number = np.unique(np.packbits(self.forget, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
        return Membership(
            train=self.forget | self.retain, forget=self.forget, heldout=self.heldout, seed=np.arange(models),
            split=number, block=number, shadow=np.zeros(models, bool),
        )  # fmt: skip


def is_published(path: str | Path) -> bool:
    """Return whether a file in the place of logits contains published scores; False for files that cannot be read."""
    return "readings.npy" in names_in_archive(path)
