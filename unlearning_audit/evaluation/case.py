"""Everything that attacks and metrics of one method in one scenario are computed from."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from unlearning_audit.evaluation import signals
from unlearning_audit.evaluation.answers import Answers
from unlearning_audit.evaluation.arrays import ArtifactError, Data, Membership
from unlearning_audit.evaluation.contributions import Contribution
from unlearning_audit.evaluation.features import Features
from unlearning_audit.evaluation.published import Published
from unlearning_audit.evaluation.reference import BOTH, Reference, mask_of
from unlearning_audit.evaluation.selection import Selection
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError
from unlearning_audit.stats import crossed, phi
from unlearning_audit.store import tables

#: What to do where an attack or a metric reads what no job computed.
DECLARE = "a file that reads them says so in a line NEEDS"


@dataclass
class Case:
    """Batches of one scenario, stacked along the models; files are read on first use.

    ``splits``, ``originals`` and ``unlearned`` are lists of files, one for each batch and in the same order. ``seed``
    and bootstrap ``draws`` are the study's; ``readings``: file of logits → files of what else was read of the same
    models (`Readings`); ``hidden``: file of logits → that of their last hidden layer (`Features`); ``sets``: name →
    attacks over which Q takes the maximum (paper, adaptive); ``missing``: "attack/form" → why it could not be asked;
    ``unread``: sentences about populations that cannot be read.
    """

    #: Whether a metric says in a row without number what the case lacks; other cases have all that it needs.
    partial: ClassVar[bool] = False
    #: Role → why its samples are not known.
    unknown: ClassVar[dict[str, str]] = {}
    #: Whether forgotten and held-out samples are a fair draw, where metrics ask for one.
    fair: ClassVar[bool] = True
    #: Whether models of one split stem, in their order, from the same originals whatever the method.
    partners: ClassVar[bool] = True
    #: Numbers of models that are copies of earlier ones.
    copies: ClassVar[Sequence[int]] = ()
    #: Why the audited models are no pairs of swapped splits, where metrics ask for such.
    unpaired: ClassVar[str] = ""
    #: What result files say of the audited models in the place of logits.
    published: ClassVar[Published | None] = None
    #: What has to be said of the models once.
    sentences: ClassVar[Sequence[str]] = ()

    data_file: str
    splits: list[str]
    originals: list[str]
    unlearned_files: list[str]
    _: KW_ONLY
    scores_file: str | None = None
    retrained_files: list[str] | None = None
    control_files: list[str] | None = None
    selection_file: str | None = None
    relearned_files: list[str] = field(default_factory=list)
    compared_relearned_files: list[str] | None = None
    generated_files: list[str] = field(default_factory=list)
    compared_generated_files: list[str] | None = None
    sampled_files: list[str] = field(default_factory=list)
    compared_sampled_files: list[str] | None = None
    seed: int = 0
    draws: int = crossed.DRAWS
    sets: dict[str, Collection[str]] = field(default_factory=dict)
    readings: dict[str, list[str]] = field(default_factory=dict)
    hidden: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    _read: dict[tuple[str, ...], Answers] = field(default_factory=dict, init=False, repr=False)
    _cache: dict[tuple[str, ...], np.ndarray] = field(default_factory=dict, init=False, repr=False)

    def for_verdicts(self, parts: dict[str, Contribution]) -> dict[str, Contribution]:
        """What verdicts take of a metric's contributions: by theory where samples are a fair draw, else by retrained
        models; a model that lies here twice once."""
        models = len(self.membership.seed) if self.copies else 0
        parts = {name: replace(part, partners=self.partners) for name, part in parts.items()}
        if not self.fair:
            parts = {name: replace(part, standard=part.standard.without_draw()) for name, part in parts.items()}
        # Of groups of models nobody knows which ones hold a copy.
        return {
            name: part.without(self.copies) if self.copies and len(part.unit) == models else part
            for name, part in parts.items()
        }

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

    @cached_property
    def targets(self) -> "Targets":
        """The audited models after unlearning, and who saw what."""
        member, labels = self.membership[self.target], self.labels_of(self.target)
        logits = self.answers(self.unlearned_files).of(self.target)
        return Targets(logits, labels, member.forget, member.heldout, member.retain, member.split, member.block)

    @cached_property
    def original(self) -> np.ndarray:
        """Logits of the models before unlearning, float32 [models, samples, classes]."""
        return self.answers(self.originals).logits

    @cached_property
    def unlearned(self) -> np.ndarray:
        """Logits after unlearning, float32 [models, samples, classes]. Raises NoAnswerError if there are none."""
        return self.answers(self.unlearned_files).logits

    @property
    def compared_files(self) -> list[str] | None:
        """Retrained models to compare with: those of the scenario, but for the method retrain its controls; None if the
        scenario has none."""
        of_retrain = self.retrained_files is not None and self.unlearned_files == self.retrained_files
        return (self.control_files or None) if of_retrain else self.retrained_files

    def yardsticks(self) -> tuple["Group", "Group", "Group | None"]:
        """The audited models, retrained ones of the same samples, and an independent population of these where there is
        one. Raises ValueError where there is nothing to compare with."""
        reference, independent = self.retrained_files, self.control_files
        if reference is None:
            raise ValueError("there are no retrained models to compare with; name retrain among the methods")
        if self.unlearned_files == reference:
            if independent is None:
                raise ValueError("retrain cannot be compared with itself; set controls: true")
            reference, independent = independent, None
        elif self.unlearned_files == independent:
            independent = None
        return (
            Group(self, self.unlearned_files),
            Group(self, reference),
            None if independent is None else Group(self, independent),
        )

    def sides(self) -> tuple[dict[str, "Group | None"], dict[str, "Group | None"]]:
        """The audited models and the adversary's, each as original, unlearned and retrained; None for what is not
        there. Raises ValueError where there are no shadow models."""
        if self.target.all():
            raise ValueError(f"there are no shadow models; draw them by protocol {registry.offering('target_samples')}")
        files = {"original": self.originals, "unlearned": self.unlearned_files, "retrained": self.compared_files}
        audited, shadow = (
            {name: None if paths is None else Group(self, paths, models) for name, paths in files.items()}
            for models in (self.target, ~self.target)
        )
        return audited, shadow

    def retraining(self) -> "Group | None":
        """The target models as they are without the forget set, on the same samples; None if there are none."""
        return None if not self.compared_files else Group(self, self.compared_files, self.target)

    @property
    def compared(self) -> np.ndarray | None:
        """Logits of `compared_files`, float32 [models, samples, classes], or None."""
        return None if self.compared_files is None else self.answers(self.compared_files).logits

    @cached_property
    def selection(self) -> Selection | None:
        """Verdicts by which the target samples were chosen, or None if they were not."""
        return Selection.read(self.selection_file, len(self.data.y)) if self.selection_file else None

    @cached_property
    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        """Squared gradient norms of every forget sample after unlearning, float64 [models, forget rows], and
        those of their mean gradient, float64 [models]. Raises ArtifactError if they were not read."""
        answers = self.answers(self.unlearned_files)
        if answers.squared_norms is None:
            raise ArtifactError(f"{self.unlearned_files[0]}: no gradients were read of these models; {DECLARE}")
        norms = answers.squared_norms
        if norms.shape[1] == len(self.data.y):
            norms = np.stack([of_model[mask] for of_model, mask in zip(norms, self.membership.forget, strict=True)])
        return norms, answers.mean_squared_norm

    def features(self, files: list[str]) -> Iterator[Features]:
        """The last hidden layer of the target models whose logits are in ``files``, one batch after the other. Raises
        ArtifactError where it was not read, and NoAnswerError where there are no models."""
        for path, membership in zip(files, self.batches, strict=True):
            if path not in self.hidden:
                raise ArtifactError(f"{path}: the last hidden layer of these models was not read; {DECLARE}")
            yield Features.read(self.hidden[path], int((~membership.shadow).sum()), len(self.data.y))

    def signal(self, name: str, files: list[str], models: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """One of `evaluation.reference.SIGNALS` of some ``models`` bool [models] for the samples ``rows`` int64 [rows].

        Of tokens, NaN where a model was not asked about a sample. Raises ArtifactError for what was not read of the
        models whose logits are in ``files``.
        """
        if name == "compressed":
            if self.data.compressed is None:
                raise ArtifactError(f"{self.data_file}: field 'compressed' is missing; only data of text have it")
            return np.tile(self.data.compressed[rows].astype(np.float64), (int(models.sum()), 1))
        if name == "before":
            return self.answers(self.originals).phi(self.labels_of(models)[..., rows], models, rows)
        if name == "neighbours":
            return self._neighbours(files, models, rows)
        if name == "reference_logp":
            return self._reference_logp(models, rows)
        values = getattr(self.answers(files), name)
        if name == "tokens" and values is not None:
            return self._tokens(self.answers(files), models, rows)
        if values is None or values.shape[1] != len(self.data.y):
            raise ArtifactError(f"{files[0]}: no {name} of all samples were read of these models; {DECLARE}")
        return values[models][:, rows]

    def _neighbours(self, files: list[str], models: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """log p of the neighbours of samples, or of their paraphrases where data have no neighbours."""
        kinds = [self.data.views(kind)[rows] for kind in ("neighbour", "paraphrase")]
        views = next((candidates for candidates in kinds if candidates.shape[1]), None)
        if views is None or (views < 0).all(1).any():
            raise ArtifactError(f"{self.data_file}: some samples have no neighbours; set neighbours: 4 under data")
        return views_logp(self.answers(files).of(models), views)

    def _reference_logp(self, models: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Mean log p of the label under shadow models that never saw a sample, each model itself left out."""
        shadow = np.flatnonzero(~self.target)
        unseen = ~self.membership.train[np.ix_(shadow, rows)]
        logp = signals.per_model(
            signals.label_logp,
            self.answers(self.originals).of(~self.target, rows),
            self.labels_of(~self.target)[..., rows],
        )
        of_unseen = np.where(unseen, logp, 0.0)
        same_model = np.flatnonzero(models)[:, None] == shadow  # [models, shadow models]
        with np.errstate(invalid="ignore"):
            return (of_unseen.sum(0) - same_model @ of_unseen) / (unseen.sum(0) - same_model @ unseen.astype(np.int64))

    def _tokens(self, answers: Answers, models: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Token readings of any samples, float64 [models, rows, most scored, 4]."""
        at = np.full(len(self.data.y), -1)
        at[answers.token_index] = np.arange(len(answers.token_index))
        readings = answers.tokens[models]
        by_row = np.full((len(readings), len(rows), *readings.shape[2:]), np.nan)
        present = at[rows] >= 0
        by_row[:, present] = readings[:, at[rows][present]]
        return by_row

    @cached_property
    def queried(self) -> np.ndarray:
        """The samples that attacks are asked about for some target model (`Membership.queries`), int64 [rows]."""
        return np.flatnonzero(self.membership[self.target].queries.any(0))

    def references(self, signals: tuple[str, ...]) -> Iterator[tuple[str, Reference | str]]:
        """Each form in which an attack that reads ``signals`` is asked, and the shadow models that it learns from: as
        trained and as unlearned, or both in one; or a sentence that says why they are not there."""
        shadow = self.membership[~self.target]
        forms = {
            "trained": (self.originals, shadow.train),
            "unlearned": (self.unlearned_files, shadow.forget),
            BOTH: (self.unlearned_files, shadow.forget),
        }
        for form in (BOTH,) if "before" in signals else ("trained", "unlearned"):
            files, member = forms[form]
            rows = np.flatnonzero((member | shadow.heldout).any(0))
            signal = {name: self.signal(name, files, ~self.target, rows) for name in signals}
            usable = mask_of(signal)
            reference = Reference(
                self.answers(files).of(~self.target, rows), self.labels_of(~self.target)[..., rows],
                member[:, rows] & usable, shadow.heldout[:, rows] & usable, **signal, index=rows,
            )  # fmt: skip
            yield form, reference

    def lacking(self, form: str, error: PluginError, file: str) -> str:
        """Why an attack in ``file`` that failed in this ``form`` lacks something; "" if it failed by itself."""
        return ""

    @cached_property
    def labels(self) -> np.ndarray:
        """The labels that models were trained with: int64 [samples] or [models, samples]."""
        return self.membership.trained_labels(self.data.y)

    def labels_of(self, models: np.ndarray) -> np.ndarray:
        """`labels` of some models."""
        return self.labels if self.labels.ndim == 1 else self.labels[models]

    @cached_property
    def failed_attacks(self) -> dict[str, str]:
        """Attack → why there are no scores of it."""
        return tables.read_failures(self.scores_file) if self.scores_file else {}

    @cached_property
    def scores(self) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
        """(attack, form) → score float64 and decision bool, each [target models, samples]; NaN where not asked. Of
        models after unlearning alone: retrained ones know nothing of a fair draw of sides."""
        return {key: columns for key, columns in self._every_score.items() if key[1] != BOTH}

    @cached_property
    def updates(self) -> dict[str, np.ndarray]:
        """Attack → its score in the form `BOTH`, float64 [target models, samples]; NaN where not asked."""
        return {name: score for (name, form), (score, _) in self._every_score.items() if form == BOTH}

    @cached_property
    def _every_score(self) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
        if not self.scores_file:
            return {}
        shape = (int(self.target.sum()), len(self.data.y))
        dense = {}
        for key, columns in tables.read_scores(self.scores_file).items():
            at = (columns["model"], columns["index"])
            for column, values, size in zip(("model", "index"), at, shape, strict=True):
                if len(values) and not 0 <= values.min() <= values.max() < size:
                    raise ArtifactError(
                        f"{self.scores_file}: field {column!r} has values outside 0 … {size - 1}, which the "
                        "memberships do not know; delete it and run again"
                    )
            score, decision = np.full(shape, np.nan), np.zeros(shape, bool)
            score[at], decision[at] = columns["score"], columns["decision"]
            dense[key] = score, decision
        return dense

    def once(self, name: str, files: list[str], compute: Callable[[], np.ndarray]) -> np.ndarray:
        """What ``compute`` makes of the ``files``, which is kept by its ``name`` for whoever asks again; not to be
        changed."""
        if (name, *files) not in self._cache:
            self._cache[name, *files] = compute()
        return self._cache[name, *files]

    @property
    def before_files(self) -> list[str]:
        """Files of the audited models before unlearning; [] where these are not known."""
        return self.originals

    def require_answers(self) -> None:
        """Raise NoAnswerError unless the models have logits, before and after unlearning."""
        self.answers(self.unlearned_files)
        if self.originals:
            self.answers(self.originals)

    def answers(self, files: list[str]) -> Answers:
        """Logits of all models, in their files; those with two roles are read once. Raises as `Answers`."""
        if tuple(files) not in self._read:
            readings = [self.readings.get(path, ()) for path in files]
            self._read[tuple(files)] = Answers(files, self.batches, self.data, self.data_file, readings)
        return self._read[tuple(files)]


@dataclass(frozen=True)
class Group:
    """Models in one part: ``files`` of their logits, the ``case`` that knows which samples they saw, and which of its
    ``models`` they are, bool [models] (None: all)."""

    case: Case
    files: list[str]
    models: np.ndarray | None = None

    @property
    def membership(self) -> Membership:
        """Which samples they saw."""
        return self.case.membership if self.models is None else self.case.membership[self.models]

    @property
    def answers(self) -> Answers:
        """The logits, of all models in the files."""
        return self.case.answers(self.files)

    def phi(self, rows: np.ndarray | None = None) -> np.ndarray:
        """φ of the labels that the models were taught, float64 [models, rows]; ``rows`` as in `Answers.each`."""
        labels = self.case.labels if self.models is None else self.case.labels_of(self.models)
        return self.answers.phi(labels if rows is None else labels[..., rows], self.models, rows)


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
    """File of logits → files of readings of the same models, for `Case`. A population is given by its logits, one file
    for each batch, and its readings: all batches of one signal, then all of the next."""
    files: dict[str, dict[str, None]] = {}
    for logits, readings in populations:
        for i, path in enumerate(logits):
            files.setdefault(path, {}).update(dict.fromkeys(readings[i :: len(logits)]))
    return {path: list(names) for path, names in files.items()}
