"""Populations of models: which samples they saw, and their logits."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property

import numpy as np

from unlearning_audit.evaluation import likeness
from unlearning_audit.evaluation.arrays import ArtifactError, Data, Membership
from unlearning_audit.evaluation.outputs import Outputs
from unlearning_audit.evaluation.published import Published, is_published
from unlearning_audit.evaluation.signal_files import Features
from unlearning_audit.stats import phi

#: What to do if an attack or a metric reads a signal that no job computed.
DECLARE = "a file that reads them says so in a line NEEDS"


@dataclass
class Cohort:
    """Batches of models, stacked along the models; files are read on first use.

    Parameters
    ----------
    data_file
        The file of samples (`Data`).
    membership_files
        The memberships, one file for each batch.
    signal_files
        File of logits → files of other signals of the same models.
    feature_files
        File of logits → the file of their last hidden layer (`Features`).
    """

    data_file: str
    membership_files: list[str]
    _: KW_ONLY
    signal_files: dict[str, list[str]] = field(default_factory=dict)
    feature_files: dict[str, str] = field(default_factory=dict)
    _read: dict[tuple[str, ...], Outputs] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def data(self) -> Data:
        """Return the samples."""
        return Data.read(self.data_file)

    @cached_property
    def batches(self) -> list[Membership]:
        """Return the memberships of each batch."""
        return [Membership.read(path, samples=len(self.data.y)) for path in self.membership_files]

    @cached_property
    def membership(self) -> Membership:
        """Return the memberships of all batches, joined."""
        return Membership.concatenate(self.batches)

    @cached_property
    def target(self) -> np.ndarray:
        """Return which models are the defender's, bool [models]; all other models are the adversary's shadow models."""
        return ~self.membership.shadow

    def features(self, files: list[str]) -> Iterator[Features]:
        """Yield the last hidden layer of the target models whose logits are in ``files``, one batch after the other.
        Raises ArtifactError if it was not computed, and NoAnswerError where there are no models."""
        for path, membership in zip(files, self.batches, strict=True):
            if path not in self.feature_files:
                raise ArtifactError(f"{path}: the last hidden layer of these models was not read; {DECLARE}")
            yield Features.read(self.feature_files[path], models=int((~membership.shadow).sum()))

    @cached_property
    def labels(self) -> np.ndarray:
        """Return the labels that models were trained with: int64 [samples] or [models, samples]."""
        return self.membership.trained_labels(self.data.y)

    def labels_of(self, models: np.ndarray) -> np.ndarray:
        """Return the labels that some ``models`` bool [models] were trained with: int64 [samples] or [chosen models,
        samples]."""
        return self.labels if self.labels.ndim == 1 else self.labels[models]

    def outputs(self, files: list[str]) -> Outputs:
        """Return the logits of all models in ``files``, one file for each batch. The object is cached for each list of
        files.

        Raises ArtifactError if the files do not fit the data, and NoAnswerError where there are no logits.
        """
        if tuple(files) not in self._read:
            signals = [self.signal_files.get(path, []) for path in files]
            self._read[tuple(files)] = Outputs(files, self.batches, self.data, self.data_file, signals)
        return self._read[tuple(files)]


@dataclass(frozen=True)
class Group:
    """Models that play one part in an evaluation, such as the retrained ones.

    Parameters
    ----------
    cohort
        The cohort with their memberships.
    files
        The files of their logits.
    models
        bool [models]: which models of the cohort they are; None: all.
    """

    cohort: Cohort
    files: list[str]
    models: np.ndarray | None = None

    @property
    def membership(self) -> Membership:
        """Return which samples these models saw."""
        return self.cohort.membership if self.models is None else self.cohort.membership[self.models]

    @property
    def labels(self) -> np.ndarray:
        """Return the labels that these models were trained with: int64 [samples] or [models, samples]."""
        return self.cohort.labels if self.models is None else self.cohort.labels_of(self.models)

    @property
    def outputs(self) -> Outputs:
        """Return the logits of all models in the files, including models that are not in the group. Raises what
        `Cohort.outputs` raises."""
        return self.cohort.outputs(self.files)

    @property
    def published(self) -> Published | None:
        """Return the published scores of these models, if a result file takes the place of logits; else None."""
        return Published.read(self.files[0]) if is_published(self.files[0]) else None

    def logits(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the logits of these models, float32 [models, rows, classes]. ``rows`` bool [samples] or int64 [rows];
        None: all. The array is cached: do not change it. Raises what `Cohort.outputs` raises."""
        return self.outputs.stacked(self.models, rows)

    @property
    def sample_logits(self) -> np.ndarray:
        """Return the logits on up to `likeness.SAMPLES` evenly spaced samples, float32 [models, rows, classes]. These
        samples suffice to tell models apart, and no other samples are read from the files."""
        return self.logits(likeness.evenly(np.arange(len(self.cohort.data.y))))

    def phi(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Return φ = log(p/(1 − p)) of the labels that the models were trained with, float64 [models, rows].

        ``rows`` bool [samples] or int64 [rows]; None: all.
        """
        return self.outputs.phi(self.labels if rows is None else self.labels[..., rows], self.models, rows)

    def same_samples(self, other: "Group") -> bool:
        """Return whether both groups have the same samples. Groups of one cohort have; groups of two cohorts are taken
        to have them if they have the same labels in the same order."""
        return self.cohort is other.cohort or np.array_equal(self.cohort.data.y, other.cohort.data.y)

    def differing_mask(self, other: "Group") -> str:
        """Return the name of the first mask (train, forget or heldout) in which the two groups differ; "" if they do
        not. The first model of one group is compared with the first of the other, and so on; other numbers of models or
        samples differ. Groups of one cohort are not compared, whatever their models: the result is ""."""
        if self.cohort is other.cohort:
            return ""
        masks = ((name, getattr(self.membership, name), getattr(other.membership, name)) for name in MASKS)
        return next((name for name, own, others in masks if not np.array_equal(own, others)), "")


#: The masks that define what models saw, and what they had to forget.
MASKS = ("train", "forget", "heldout")


@dataclass(frozen=True)
class Targets:
    """Models of the defender, such as the audited ones after unlearning: their logits and memberships.

    Parameters
    ----------
    logits
        float32 [models, samples, classes].
    labels
        int64 [samples] or [models, samples]: as models were trained.
    forget, heldout, retain
        bool [models, samples].
    split, block
        int64 [models]: models of one block share samples, and models of one split in a block forget the same ones.
    """

    logits: np.ndarray
    labels: np.ndarray
    forget: np.ndarray
    heldout: np.ndarray
    retain: np.ndarray
    split: np.ndarray
    block: np.ndarray

    @classmethod
    def of(cls, group: Group) -> "Targets":
        """Return the logits and memberships of a group of models."""
        roles = group.membership
        return cls(group.logits(), group.labels, roles.forget, roles.heldout, roles.retain, roles.split, roles.block)

    @cached_property
    def phi(self) -> np.ndarray:
        """Return φ = log(p/(1 − p)) of the label, float64 [models, samples]."""
        return phi(logits=self.logits, y=self.labels)


def views_logp(logits: np.ndarray, views: np.ndarray) -> np.ndarray:
    """Return log p (the mean over scored tokens) of each sample's views, which are variants of it such as paraphrases:
    float64 [models, samples, k], NaN where there is no view.

    Parameters
    ----------
    logits
        [models, rows, 2]: the logits of language models, (φ, 0) with φ = log(p/(1 − p)).
    views
        int64 [samples, k]: the rows of each sample's views, −1 where there is none.
    """
    wide = logits.astype(np.float64)
    logp = -np.logaddexp(0.0, wide[..., 1] - wide[..., 0])
    return np.where(views >= 0, logp[:, views], np.nan)


def by_logits(*populations: tuple[Sequence[str], Sequence[str]]) -> dict[str, list[str]]:
    """Return file of logits → the files of other signals of the same models: the ``signal_files`` of a `Cohort`.

    Parameters
    ----------
    populations
        For each population, its files of logits, one for each batch, and its files of signals: those of all batches for
        one signal, then those of all batches for the next.
    """
    files: dict[str, dict[str, None]] = {}  # a dict keeps the order, and populations may share files
    for logits, signals in populations:
        for batch, path in enumerate(logits):
            # Every len(logits)-th file is this batch's, one for each signal.
            files.setdefault(path, {}).update(dict.fromkeys(signals[batch :: len(logits)]))
    return {path: list(names) for path, names in files.items()}
