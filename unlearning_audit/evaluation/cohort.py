"""Models that are one draw: who saw which samples, and what the files of their logits say."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property

import numpy as np

from unlearning_audit.evaluation import likeness
from unlearning_audit.evaluation.answers import Answers
from unlearning_audit.evaluation.arrays import ArtifactError, Data, Membership
from unlearning_audit.evaluation.features import Features
from unlearning_audit.evaluation.published import Published, holds
from unlearning_audit.stats import phi

#: What to do where an attack or a metric reads what no job computed.
DECLARE = "a file that reads them says so in a line NEEDS"


@dataclass
class Cohort:
    """Batches of models, stacked along the models; files are read on first use.

    ``splits``: the memberships, one file for each batch. ``readings``: file of logits → files of what else was read of
    the same models (`evaluation.readings`); ``hidden``: file of logits → that of their last hidden layer (`Features`).
    """

    data_file: str
    splits: list[str]
    _: KW_ONLY
    readings: dict[str, list[str]] = field(default_factory=dict)
    hidden: dict[str, str] = field(default_factory=dict)
    _read: dict[tuple[str, ...], Answers] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def data(self) -> Data:
        """The samples."""
        return Data.read(self.data_file)

    @cached_property
    def batches(self) -> list[Membership]:
        """Memberships of each batch."""
        return [Membership.read(path, len(self.data.y)) for path in self.splits]

    @cached_property
    def membership(self) -> Membership:
        """Memberships of all batches."""
        return Membership.concatenate(self.batches)

    @cached_property
    def target(self) -> np.ndarray:
        """bool [models]: the defender's models, as opposed to the adversary's shadow models."""
        return ~self.membership.shadow

    def features(self, files: list[str]) -> Iterator[Features]:
        """The last hidden layer of the target models whose logits are in ``files``, one batch after the other. Raises
        ArtifactError where it was not read, and NoAnswerError where there are no models."""
        for path, membership in zip(files, self.batches, strict=True):
            if path not in self.hidden:
                raise ArtifactError(f"{path}: the last hidden layer of these models was not read; {DECLARE}")
            yield Features.read(self.hidden[path], int((~membership.shadow).sum()), len(self.data.y))

    @cached_property
    def labels(self) -> np.ndarray:
        """The labels that models were trained with: int64 [samples] or [models, samples]."""
        return self.membership.trained_labels(self.data.y)

    def labels_of(self, models: np.ndarray) -> np.ndarray:
        """`labels` of some models."""
        return self.labels if self.labels.ndim == 1 else self.labels[models]

    def answers(self, files: list[str]) -> Answers:
        """Logits of all models, in their files; those with two roles are read once. Raises as `Answers`."""
        if tuple(files) not in self._read:
            readings = [self.readings.get(path, ()) for path in files]
            self._read[tuple(files)] = Answers(files, self.batches, self.data, self.data_file, readings)
        return self._read[tuple(files)]


@dataclass(frozen=True)
class Group:
    """Models in one part: ``files`` of their logits, the ``cohort`` that knows which samples they saw, and which of its
    ``models`` they are, bool [models] (None: all)."""

    cohort: Cohort
    files: list[str]
    models: np.ndarray | None = None

    @property
    def membership(self) -> Membership:
        """Which samples they saw."""
        return self.cohort.membership if self.models is None else self.cohort.membership[self.models]

    @property
    def labels(self) -> np.ndarray:
        """The labels that they were taught: int64 [samples] or [models, samples]."""
        return self.cohort.labels if self.models is None else self.cohort.labels_of(self.models)

    @property
    def answers(self) -> Answers:
        """The logits, of all models in the files."""
        return self.cohort.answers(self.files)

    @property
    def published(self) -> Published | None:
        """What result files say of them, where there are no logits; else None."""
        return Published.read(self.files[0]) if holds(self.files[0]) else None

    def logits(self, rows: np.ndarray | None = None) -> np.ndarray:
        """float32 [models, rows, classes]; ``rows`` as in `Answers.by_model`."""
        return self.answers.of(self.models, rows)

    @property
    def sample_logits(self) -> np.ndarray:
        """Logits on a few samples, by which models are told apart: float32 [models, some, classes]. No others are read
        for them."""
        return self.logits(likeness.evenly(np.arange(len(self.cohort.data.y))))

    def phi(self, rows: np.ndarray | None = None) -> np.ndarray:
        """φ of the labels that the models were taught, float64 [models, rows]; ``rows`` as in `Answers.by_model`."""
        return self.answers.phi(self.labels if rows is None else self.labels[..., rows], self.models, rows)

    def same_samples(self, other: "Group") -> bool:
        """Whether their samples are those of the other group, as far as numbers and labels tell."""
        return self.cohort is other.cohort or np.array_equal(self.cohort.data.y, other.cohort.data.y)

    def differs(self, other: "Group") -> str:
        """The first of the masks in which the other group's models are not these, in the same order; else ""."""
        if self.cohort is other.cohort:
            return ""
        masks = ((name, getattr(self.membership, name), getattr(other.membership, name)) for name in MASKS)
        return next((name for name, own, others in masks if not np.array_equal(own, others)), "")


#: What says which samples models saw, and were asked to forget.
MASKS = ("train", "forget", "heldout")


@dataclass(frozen=True)
class Targets:
    """The audited models: what they answer, and who saw what.

    ``logits`` float32 [models, samples, classes] after unlearning; ``labels`` int64 [samples] or [models, samples], as
    models were taught; ``forget``, ``heldout`` and ``retain`` bool [models, samples]; ``split`` and ``block`` int64
    [models]: models of one block share samples, those of one split in it were asked to forget the same.
    """

    logits: np.ndarray
    labels: np.ndarray
    forget: np.ndarray
    heldout: np.ndarray
    retain: np.ndarray
    split: np.ndarray
    block: np.ndarray

    @cached_property
    def phi(self) -> np.ndarray:
        """φ = log p/(1 − p) of the label, float64 [models, samples]."""
        return phi(logits=self.logits, y=self.labels)


def views_logp(logits: np.ndarray, views: np.ndarray) -> np.ndarray:
    """log p, the mean over scored tokens, of rows ``views`` int64 [samples, k], −1 where there is none.

    ``logits`` [models, rows, 2] of language models, (φ, 0) → float64 [models, samples, k], NaN where there is none.
    """
    two = logits.astype(np.float64)
    logp = -np.logaddexp(0.0, two[..., 1] - two[..., 0])
    return np.where(views >= 0, logp[:, views], np.nan)


def by_logits(*populations: tuple[Sequence[str], Sequence[str]]) -> dict[str, list[str]]:
    """File of logits → files of readings of the same models, for a `Cohort`. A population is given by its logits, one
    file for each batch, and its readings: all batches of one signal, then all of the next."""
    files: dict[str, dict[str, None]] = {}
    for logits, readings in populations:
        for i, path in enumerate(logits):
            files.setdefault(path, {}).update(dict.fromkeys(readings[i :: len(logits)]))
    return {path: list(names) for path, names in files.items()}
