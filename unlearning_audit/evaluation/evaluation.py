"""Everything that attacks and metrics of one method in one scenario are computed from, whoever made the models."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property

import numpy as np

from unlearning_audit.evaluation import likeness
from unlearning_audit.evaluation.arrays import ArtifactError
from unlearning_audit.evaluation.cohort import DECLARE, Cohort, Group, Targets
from unlearning_audit.evaluation.contributions import Contribution
from unlearning_audit.evaluation.published import Published
from unlearning_audit.evaluation.reference import BOTH, Reference, mask_of
from unlearning_audit.evaluation.selection import Selection
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError, in_library
from unlearning_audit.stats import crossed
from unlearning_audit.store import tables

#: Form of an attack → the part of its shadow models, and the membership mask that marks members.
KNOWLEDGE = {"trained": ("shadow_original", "train"), "unlearned": ("shadow", "forget"), BOTH: ("shadow", "forget")}

#: What is said where only forgotten samples are known.
NO_HELDOUT = (
    "No sample is held out: models are compared with retrained ones on the forgotten samples, and attacks, Q and all "
    "that needs samples which no model saw are left out"
)

#: Role → why its samples may not be known of imported models.
UNKNOWN = {
    "retain": "what models keep is unknown without train.npy",
    "heldout": "the models have seen every sample",
    "test": "no sample is marked in test.npy",
}


@dataclass
class Evaluation(Cohort):
    """The audited models, and those that they are compared with; files are read on first use.

    ``splits``, ``originals`` and ``unlearned_files`` are lists of files, one for each batch and in the same order.
    ``imported``: whether the models came from elsewhere; then ``others`` holds all that are compared with them, by the
    part they play (original, retrain, retrain_control, shadow, shadow_original), and ``design`` says how forgotten and
    held-out samples were drawn, as a study puts it. ``seed`` and bootstrap ``draws`` are the study's; ``sets``: name →
    attacks over which Q takes the maximum (paper, adaptive); ``missing``: "attack/form" → why it could not be asked;
    ``unread``: sentences about populations that cannot be read.
    """

    originals: list[str]
    unlearned_files: list[str]
    _: KW_ONLY
    imported: bool = False
    others: dict[str, Group] = field(default_factory=dict)
    design: str = ""
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
    missing: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    _cache: dict[tuple[str, ...], np.ndarray] = field(default_factory=dict, init=False, repr=False)

    # ------------------------------------------------------------ the audited models

    @cached_property
    def targets(self) -> Targets:
        """The audited models after unlearning, and who saw what."""
        member, labels = self.membership[self.target], self.labels_of(self.target)
        logits = self.answers(self.unlearned_files).of(self.target)
        return Targets(logits, labels, member.forget, member.heldout, member.retain, member.split, member.block)

    @property
    def audited(self) -> Group:
        """The audited models after unlearning; of models that were trained here, the defender's."""
        return Group(self, self.unlearned_files, None if self.imported else self.target)

    @cached_property
    def original(self) -> np.ndarray:
        """Logits of the models before unlearning, float32 [models, samples, classes]."""
        return self.answers(self.originals).logits

    @cached_property
    def unlearned(self) -> np.ndarray:
        """Logits after unlearning, float32 [models, samples, classes]. Raises NoAnswerError if there are none."""
        return self.answers(self.unlearned_files).logits

    @cached_property
    def published(self) -> Published | None:
        """What result files say of the audited models, where there are no logits; else None."""
        return self.audited.published if self.imported else None

    @property
    def sentences(self) -> list[str]:
        """What has to be said of the models once: what result files say beside numbers, or that no sample is held
        out."""
        if self.published is not None:
            return self.published.sentences
        return [NO_HELDOUT] if self.imported and not self.membership.heldout.any() else []

    @cached_property
    def copies(self) -> list[int]:
        """Numbers of imported models that hardly differ from an earlier one, as where a file was saved twice."""
        if not self.imported or self.published is not None:
            return []
        return sorted({copy for _, copy in likeness.twins(self.audited.sample_logits)})

    @property
    def fair(self) -> bool:
        """Whether forgotten and held-out samples are a fair draw, where metrics ask for one: by coins, by swapping, or
        as the owner of imported models says."""
        if not self.imported:
            return True
        if self.published is not None:
            return self.published.fair
        sides, pair = (self.membership.forget | self.membership.heldout).any(axis=0), self.membership.pair
        without_coin = sides if pair is None else sides & (pair < 0)
        return not without_coin.any() or not self.unpaired or self.design in FAIR

    @property
    def unpaired(self) -> str:
        """Why imported models are not pairs of swapped splits; "" if they are (Tu, Hu & Ma 2024, §3.3)."""
        member = self.membership
        for block in np.unique(member.block) if self.imported else ():
            pair = member[member.block == block]
            numbers = np.unique(pair.split)
            if len(numbers) != 2:
                return f"block {block} has {len(numbers)} splits, a swapped pair has two: see split.npy and block.npy"
            sides = [pair[pair.split == number] for number in numbers]
            for number, side in zip(numbers, sides, strict=True):
                if (side.forget != side.forget[0]).any() or (side.heldout != side.heldout[0]).any():
                    return f"models of split {number} in block {block} differ in forget or heldout"
            (f, t), (f_other, t_other) = ((side.forget[0], side.heldout[0]) for side in sides)
            if not (np.array_equal(f, t_other) and np.array_equal(t, f_other)):
                return f"in block {block} the forget set of one split is not the heldout set of the other"
        return ""

    def for_verdicts(self, parts: dict[str, Contribution]) -> dict[str, Contribution]:
        """What verdicts take of a metric's contributions: by theory where samples are a fair draw, else by retrained
        models; a model that lies here twice once. Nobody says which of several imported models stem from the same
        original."""
        models = len(self.membership.seed) if self.copies else 0
        parts = {name: replace(part, partners=not self.imported) for name, part in parts.items()}
        if not self.fair:
            parts = {name: replace(part, standard=part.standard.without_draw()) for name, part in parts.items()}
        # Of groups of models nobody knows which ones hold a copy.
        return {
            name: part.without(self.copies) if self.copies and len(part.unit) == models else part
            for name, part in parts.items()
        }

    # ------------------------------------------------------------ models that are compared with them

    @property
    def compared_files(self) -> list[str] | None:
        """Retrained models to compare with: those of the scenario, but for the method retrain its controls; None if the
        scenario has none."""
        of_retrain = self.retrained_files is not None and self.unlearned_files == self.retrained_files
        return (self.control_files or None) if of_retrain else self.retrained_files

    def group(self, name: str) -> Group | None:
        """The models in a part, as ``others`` names them; None if there are none. What the audited models are compared
        with as retrained ones are for retraining itself its controls."""
        if self.imported:
            return self.others.get(name)
        known = (self.retrained_files, self.control_files)
        files = {
            "original": self.originals, "retrain": self.compared_files, "shadow": self.unlearned_files,
            "retrain_control": None if self.unlearned_files in known else self.control_files,
            "shadow_original": self.originals, "shadow_retrain": self.compared_files,
        }[name]  # fmt: skip
        if not files:
            return None
        return Group(self, files, ~self.target if name.startswith("shadow") else self.target)

    def yardsticks(self) -> tuple[Group, Group, Group | None]:
        """The audited models, retrained ones of the same samples, and an independent population of these where there is
        one. Raises ValueError where there is nothing to compare with, or models do not all forget one set."""
        retrain, control = self.group("retrain"), self.group("retrain_control")
        if retrain is None:
            raise ValueError(self._no_retrained())
        forget = self.audited.membership.forget
        if (forget != forget[0]).any():
            raise ValueError("the models of target/ have different forget sets; the score compares models with one")
        for name, group in (("retrain", retrain), ("retrain_control", control)):
            if group and not group.same_samples(self.audited):
                raise ValueError(f"{name}/ holds other samples than target/")
            if group and (group.membership.forget != forget[0]).any():
                raise ValueError(f"the models of {name}/ have other forget sets than those of target/")
        return self.audited, retrain, control

    def _no_retrained(self) -> str:
        if self.imported:
            return "there is no retrain/ (for retrain itself: retrain_control/) with logits to compare with"
        if self.retrained_files is None:
            return "there are no retrained models to compare with; name retrain among the methods"
        return "retrain cannot be compared with itself; set controls: true"

    def sides(self) -> tuple[dict[str, Group | None], dict[str, Group | None]]:
        """The audited models and the adversary's, each as original, unlearned and retrained; None for what is not
        there. Raises ValueError where there are no shadow models, or groups are not of the same models."""
        original, shadow, retrained = map(self.group, ("original", "shadow", "retrain"))
        if not self.imported and self.target.all():
            raise ValueError(f"there are no shadow models; draw them by protocol {registry.offering('target_samples')}")
        why = self.unlike("original", original) or ("" if shadow else "there is no shadow/ with logits")
        if not why and shadow and not shadow.same_samples(self.audited):
            why = "shadow/ holds other samples than target/"
        trained = self.group("shadow_original")
        if why := why or unlike("shadow_original", trained, "shadow", shadow):
            raise ValueError(why)
        audited = {
            "original": original, "unlearned": self.audited,
            "retrained": None if self.unlike("retrain", retrained) else retrained,
        }  # fmt: skip
        return audited, {"original": trained, "unlearned": shadow, "retrained": self.group("shadow_retrain")}

    def retraining(self) -> Group | None:
        """The audited models as they are without the forget set, on the same samples, whatever imported ones forgot;
        None if there are none."""
        retrain = self.group("retrain")
        return retrain if retrain and retrain.same_samples(self.audited) else None

    def unlike(self, name: str, group: Group | None) -> str:
        """Why the models of ``group`` are not the audited ones in another part; else ""."""
        return unlike(name, group, "target", self.audited)

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
        gradients = self.answers(self.unlearned_files).gradients
        if gradients is None:
            raise ArtifactError(f"{self.unlearned_files[0]}: no gradients were read of these models; {DECLARE}")
        norms = gradients.squared_norms
        if norms.shape[1] == len(self.data.y):
            norms = np.stack([of_model[mask] for of_model, mask in zip(norms, self.membership.forget, strict=True)])
        return norms, gradients.mean_squared_norm

    # ------------------------------------------------------------ what attacks read and learn from

    def signal(self, name: str, files: list[str], models: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """A signal of `unlearning_audit.signals`, of some ``models`` bool [models] for the samples ``rows`` int64
        [rows]: float64 [models, rows, …], NaN where a model was not asked about a sample. Raises ArtifactError for what
        was not read of the models whose logits are in ``files``."""
        if registry.defines("signals", name, None, "values"):
            return registry.load("signals", name).values(self, files, models, rows)
        values = self.answers(files).by_sample(name, models, rows)
        if values is None:
            raise ArtifactError(f"{files[0]}: no {name} of all samples were read of these models; {DECLARE}")
        return values

    @cached_property
    def queried(self) -> np.ndarray:
        """The samples that attacks are asked about for some target model (`Membership.queries`), int64 [rows]."""
        return np.flatnonzero(self.membership[self.target].queries.any(0))

    def before(self) -> np.ndarray | str:
        """φ before unlearning of every audited model, float64 [models, samples]; else why there is none.

        Models that were asked to forget the same take the originals of that in turn, so that a single original is that
        of one audited model and of all retrained ones.
        """
        original = self.group("original")
        if original is None or not original.same_samples(self.audited):
            return "it compares with the models before unlearning, and there is no original/ with the same samples"
        phi, places, last_numbers = original.phi(), [], {}
        for forget in self.membership.forget:
            same = np.flatnonzero((original.membership.forget == forget).all(axis=1))
            if not len(same):
                return "it compares with the models before unlearning, and those of original/ have other forget sets"
            number = last_numbers[forget.tobytes()] = last_numbers.get(forget.tobytes(), -1) + 1
            places.append(same[number % len(same)])
        return phi[places]

    def references(self, signals: tuple[str, ...]) -> Iterator[tuple[str, Reference | str]]:
        """Each form in which an attack that reads ``signals`` is asked, and the shadow models that it learns from: as
        trained and as unlearned, or both in one; or a sentence that says why they are not there. Where imported models
        have no shadow models, the reference is empty, because an attack that uses none needs none."""
        beyond = [name.replace("_", " ") for name in signals if name != "before"] if self.imported else []
        for form in (BOTH,) if "before" in signals and not beyond else ("trained", "unlearned"):
            before = self.before() if form == BOTH and self.imported else ""
            if beyond:
                yield form, f"it needs {' and '.join(beyond)}, which is not read of models from elsewhere"
            else:
                yield form, before if isinstance(before, str) and before else self._reference(form, signals)

    def _reference(self, form: str, signals: tuple[str, ...]) -> Reference:
        """Shadow models. Where imported ones were in and out for each of the samples that attacks are asked about,
        these alone are its columns, so that there is a model per sample."""
        name, mask = KNOWLEDGE[form]
        group, trained = self.group(name), self.group("shadow_original")
        if group is None or (self.imported and form == BOTH and unlike("shadow_original", trained, "shadow", group)):
            nobody = np.zeros((0, 0, self.unlearned.shape[2]), np.float32)
            return Reference(nobody, np.zeros(0, np.int64), *np.zeros((2, 0, 0), bool))
        member, nonmember = getattr(group.membership, mask), group.membership.heldout
        columns = np.flatnonzero((member | nonmember).any(0))
        both = member.any(0) & nonmember.any(0)
        if self.imported and group.same_samples(self.audited) and both[self.queried].all():
            columns = self.queried
        signal = {
            name: trained.phi(columns) if name == "before" and trained
            else self.signal(name, group.files, ~self.target, columns)
            for name in signals
        }  # fmt: skip
        usable = mask_of(signal)
        return Reference(
            group.logits(columns), group.labels[..., columns], member[:, columns] & usable,
            nonmember[:, columns] & usable, columns, signal,
        )  # fmt: skip

    def lacking(self, form: str, error: PluginError, file: str) -> str:
        """Why an attack in ``file`` that failed in this ``form`` lacks something: shadow models, where models are
        imported, or what an attack of the library says that these lack. What a user's attack says of its own is told
        with it; any other error than ValueError is a failure of its own, ""."""
        if not self.imported or form not in ("trained", "unlearned") or not isinstance(error.__cause__, ValueError):
            return ""
        population, _ = KNOWLEDGE[form]
        users_text = "" if in_library(file) else str(error)
        if population not in self.others:
            return "; ".join(filter(None, [f"it learns from shadow models, and there is no {population}/", users_text]))
        return "" if users_text else str(error.__cause__)

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
        original = self.group("original")
        return original.files if original else []

    def require_answers(self) -> None:
        """Raise NoAnswerError unless the models have logits, before and after unlearning."""
        self.answers(self.unlearned_files)
        if self.originals:
            self.answers(self.originals)


#: Designs by which forgotten and held-out samples are a fair draw.
FAIR = ("swapped", "random")


def unlike(name: str, group: Group | None, reference: str, of: Group | None) -> str:
    """Why the models ``name`` cannot be compared with those of ``reference``, model by model and sample by sample; else
    ""."""
    if group is None or of is None:
        return f"there is no {name}/ with logits"
    if not group.same_samples(of):
        return f"{name}/ holds other samples than {reference}/"
    if mask := group.differs(of):
        return f"the models of {name}/ are not those of {reference}/ in the same order: their {mask} differs"
    return ""
