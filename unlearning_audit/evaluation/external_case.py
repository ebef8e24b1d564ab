"""A case made of a user's own logits: several populations, each with its own memberships, all but target/ optional."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from unlearning_audit.evaluation import likeness
from unlearning_audit.evaluation.case import Case, Group, by_logits
from unlearning_audit.evaluation.logits import StoredLogits
from unlearning_audit.evaluation.published import Published, holds
from unlearning_audit.evaluation.reference import BOTH, Reference
from unlearning_audit.plugins.guard import PluginError, in_library
from unlearning_audit.store.files import FailedError

#: form → (population of shadow models, the membership mask that marks members).
KNOWLEDGE = {"trained": ("shadow_original", "train"), "unlearned": ("shadow", "forget")}

#: What is said where only forgotten samples are known.
NO_HELDOUT = (
    "No sample is held out: models are compared with retrained ones on the forgotten samples, and attacks, Q and all "
    "that needs samples which no model saw are left out"
)


@dataclass
class ExternalCase(Case):
    """``files``: population → its data.npz, membership.npz and logits.npz; "target" are the audited models.
    ``design``: how forgotten and held-out samples were drawn, as a study says.
    """

    partial: ClassVar[bool] = True
    unknown: ClassVar[dict[str, str]] = {
        "retain": "what models keep is unknown without train.npy",
        "heldout": "the models have seen every sample",
        "test": "no sample is marked in test.npy",
    }
    #: Nobody says which of several imported models stem from the same original.
    partners: ClassVar[bool] = False

    files: dict[str, list[str]] = field(default_factory=dict)
    design: str = ""

    @classmethod
    def of(cls, names: list[str], files: list[str], scores_file: str | None = None) -> "ExternalCase":
        """From the names of the populations and their three files each, in the same order."""
        grouped = {name: list(files[3 * i : 3 * i + 3]) for i, name in enumerate(names)}
        data, membership, logits = grouped["target"]
        return cls(data, [membership], [], [logits], scores_file=scores_file, files=grouped)

    @cached_property
    def populations(self) -> dict[str, "ExternalCase"]:
        """The other populations, each as a case of its own."""
        return {name: ExternalCase.of(["target"], files) for name, files in self.files.items() if name != "target"}

    @cached_property
    def published(self) -> Published | None:
        """What result files say of the audited models, where there are no logits; else None."""
        (path,) = self.unlearned_files
        return Published.read(path) if holds(path) else None

    @property
    def sentences(self) -> list[str]:
        """What result files say beside numbers; or that no sample is held out."""
        if self.published is not None:
            return self.published.sentences
        return [] if self.membership.heldout.any() else [NO_HELDOUT]

    @property
    def before_files(self) -> list[str]:
        """As `Case.before_files`: those of original/."""
        return self.files.get("original", [])[2:]

    @cached_property
    def copies(self) -> list[int]:
        """Numbers of models that hardly differ from an earlier one, as where a file was saved twice."""
        return [] if self.published is not None else sorted({copy for _, copy in likeness.twins(self.sample_logits)})

    @cached_property
    def sample_logits(self) -> np.ndarray:
        """Logits of the audited models on a few samples, by which models are told apart: float32 [models, some,
        classes]. No others are read for them."""
        return self.answers(self.unlearned_files).of(rows=likeness.evenly(np.arange(len(self.data.y))))

    @property
    def fair(self) -> bool:
        """Whether forgotten and held-out samples are a fair draw: by coins, by swapping, or as the owner says."""
        if self.published is not None:
            return self.published.fair
        return not self.without_coin.any() or not self.unpaired or self.design in ("swapped", "random")

    @property
    def without_coin(self) -> np.ndarray:
        """Which forgotten and held-out samples are of no pair of canaries, bool [samples]."""
        member = self.membership
        sides = (member.forget | member.heldout).any(axis=0)
        return sides if member.pair is None else sides & (member.pair < 0)

    @property
    def unpaired(self) -> str:
        """Why the audited models are not pairs of swapped splits; "" if they are (Tu, Hu & Ma 2024, §3.3)."""
        member = self.membership
        for block in np.unique(member.block):
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

    def group(self, name: str) -> Group | None:
        """The models of another population; None if there is none."""
        population = self.populations.get(name)
        return None if population is None else Group(population, population.unlearned_files)

    def yardsticks(self) -> tuple[Group, Group, Group | None]:
        """As `Case.yardsticks`: retrain/ and retrain_control/, if these and all audited models forget one set."""
        retrain, control, forget = self.group("retrain"), self.group("retrain_control"), self.membership.forget
        if retrain is None:
            raise ValueError("there is no retrain/ (for retrain itself: retrain_control/) with logits to compare with")
        if (forget != forget[0]).any():
            raise ValueError("the models of target/ have different forget sets; the score compares models with one")
        for name, population in (("retrain", retrain), ("retrain_control", control)):
            if population and not self.same_samples(name):
                raise ValueError(f"{name}/ holds other samples than target/")
            if population and (population.membership.forget != forget[0]).any():
                raise ValueError(f"the models of {name}/ have other forget sets than those of target/")
        return Group(self, self.unlearned_files), retrain, control

    def sides(self) -> tuple[dict[str, Group | None], dict[str, Group | None]]:
        """As `Case.sides`: target/ with original/ and, if it fits, retrain/; the adversary's models are shadow/ with
        shadow_original/."""
        original, shadow, trained, retrained = map(
            self.populations.get, ("original", "shadow", "shadow_original", "retrain")
        )
        why = self.unlike("original", original) or ("" if shadow else "there is no shadow/ with logits")
        if not why and not self.same_samples("shadow"):
            why = "shadow/ holds other samples than target/"
        if why := why or shadow.unlike("shadow_original", trained, "shadow"):
            raise ValueError(why)
        retraining = None if self.unlike("retrain", retrained) else self.group("retrain")
        audited = {
            "original": self.group("original"), "unlearned": Group(self, self.unlearned_files), "retrained": retraining,
        }  # fmt: skip
        return audited, {
            "original": self.group("shadow_original"), "unlearned": self.group("shadow"), "retrained": None,
        }  # fmt: skip

    def retraining(self) -> Group | None:
        """As `Case.retraining`: retrain/, whatever its models forgot."""
        return self.group("retrain") if "retrain" in self.populations and self.same_samples("retrain") else None

    def unlike(self, name: str, population: "ExternalCase | None", reference: str = "target") -> str:
        """Why population ``name`` cannot be compared with this one, model by model and sample by sample; else ""."""
        if population is None:
            return f"there is no {name}/ with logits"
        if not np.array_equal(population.data.y, self.data.y):
            return f"{name}/ holds other samples than {reference}/"
        for mask in ("train", "forget", "heldout"):
            if not np.array_equal(getattr(population.membership, mask), getattr(self.membership, mask)):
                return f"the models of {name}/ are not those of {reference}/ in the same order: their {mask} differs"
        return ""

    def before(self) -> np.ndarray | str:
        """φ before unlearning of every audited model, float64 [models, samples]; else why there is none.

        Models that were asked to forget the same take the originals of that in turn, so that a single original is that
        of one audited model and of all retrained ones.
        """
        original = self.populations.get("original")
        if original is None or not self.same_samples("original"):
            return "it compares with the models before unlearning, and there is no original/ with the same samples"
        phi = original.answers(original.unlearned_files).phi(original.labels)
        places, last_numbers = [], {}
        for forget in self.membership.forget:
            same = np.flatnonzero((original.membership.forget == forget).all(axis=1))
            if not len(same):
                return "it compares with the models before unlearning, and those of original/ have other forget sets"
            number = last_numbers[forget.tobytes()] = last_numbers.get(forget.tobytes(), -1) + 1
            places.append(same[number % len(same)])
        return phi[places]

    def signal(self, name: str, files: list[str], models: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """As `Case.signal`, with `before` of these models."""
        return self.before()[models][:, rows] if name == "before" else super().signal(name, files, models, rows)

    def references(self, signals: tuple[str, ...]) -> Iterator[tuple[str, Reference | str]]:
        """As `Case.references`. Where there are no shadow models, the reference is empty, because an attack that uses
        none needs none."""
        nobody = Reference(
            np.zeros((0, 0, self.unlearned.shape[2]), np.float32), np.zeros(0, np.int64), *np.zeros((2, 0, 0), bool)
        )
        if signals == ("before",):
            before = self.before()
            yield BOTH, before if isinstance(before, str) else self._reference_of_both() or nobody
            return
        beyond = " and ".join(signal.replace("_", " ") for signal in signals if signal != "before")
        for form, (population, mask) in KNOWLEDGE.items():
            if beyond:
                yield form, f"it needs {beyond}, which is not read of models from elsewhere"
            else:
                yield form, self._reference(population, mask) if population in self.populations else nobody

    def lacking(self, form: str, error: PluginError, file: str) -> str:
        """As `Case.lacking`: the shadow models, or what an attack of the library says that they lack. What a user's
        attack says of its own is told with it; any other error than ValueError is a failure."""
        if form not in KNOWLEDGE or not isinstance(error.__cause__, ValueError):
            return ""
        population, _ = KNOWLEDGE[form]
        users_text = "" if in_library(file) else str(error)
        if population not in self.populations:
            return "; ".join(filter(None, [f"it learns from shadow models, and there is no {population}/", users_text]))
        return "" if users_text else str(error.__cause__)

    def _reference(self, name: str, mask: str) -> Reference:
        """A population of shadow models. Where they were in and out for each of the samples that attacks are asked
        about, these alone are its columns, so that there is a model per sample."""
        population = self.populations[name]
        member, nonmember = getattr(population.membership, mask), population.membership.heldout
        columns = np.flatnonzero((member | nonmember).any(0))
        if self.same_samples(name) and (member.any(0) & nonmember.any(0))[self.queried].all():
            columns = self.queried
        sides = member[:, columns], nonmember[:, columns]
        return Reference(population.unlearned[:, columns], population.labels[..., columns], *sides, index=columns)

    def _reference_of_both(self) -> Reference | None:
        """Shadow models after unlearning with φ before it; None where one of the two is not there."""
        shadow, trained = self.populations.get("shadow"), self.populations.get("shadow_original")
        if shadow is None or shadow.unlike("shadow_original", trained, "shadow"):
            return None
        reference, before = self._reference("shadow", "forget"), trained.answers(trained.unlearned_files)
        return replace(reference, before=before.phi(trained.labels)[:, reference.index])

    def same_samples(self, name: str) -> bool:
        """Whether the samples of a population are those of the target, as far as numbers and labels tell."""
        return np.array_equal(self.populations[name].data.y, self.data.y)


def usable(names: list[str], files: list[str]) -> tuple[list[str], list[str], list[str]]:
    """The populations that can be read, besides the audited one: their names and three files each; and sentences about
    the others."""
    readable, paths, sentences = [], [], []
    for number, name in enumerate(names):
        triple = files[3 * number : 3 * number + 3]
        try:
            if name != "target" and not holds(triple[2]):
                StoredLogits.open(triple[2])
        except FailedError as error:
            sentences.append(f"{error}; nothing is compared with it")
            continue
        readable.append(name)
        paths += triple
    return readable, paths, list(dict.fromkeys(sentences))


#: Inputs of a job that a case has one file of, and that it has lists of.
SINGLE = ("scores", "selection")
SEVERAL = ("retrained", "control", "relearned", "compared_relearned", "generated", "compared_generated", "sampled",
           "compared_sampled")  # fmt: skip


def case_of(settings: dict, **files: str | list[str]) -> Case:
    """The case of a job by its ``settings`` and its input ``files``, as `workflow.nodes.ROLES` names these."""
    if "populations" in files:
        names, paths, unread = usable(settings["populations"], list(files["populations"]))
        case: Case = ExternalCase.of(names, paths, *files.get("scores", ()))
        case.design, case.unread = settings.get("design", ""), unread
    else:
        logits = {"original": files["originals"], "unlearned": files["unlearned"]}
        logits |= {name: files.get(name, []) for name in ("retrained", "control")}
        readings, hidden = (
            [(paths, files.get(f"{name}_{kind}", [])) for name, paths in logits.items()]
            for kind in ("readings", "features")
        )
        case = Case(
            *(files[name] for name in ("data", "splits", "originals", "unlearned")), readings=by_logits(*readings),
            hidden={path: part for paths, parts in hidden for path, part in zip(paths, parts, strict=False)},
            **{f"{name}_file": files[name][0] for name in SINGLE if name in files},
            **{f"{name}_files": files[name] for name in SEVERAL if name in files},
        )  # fmt: skip
    case.seed, case.draws = settings.get("seed", case.seed), settings.get("bootstrap", case.draws)
    case.sets = {name: settings.get(f"{name}_set", ()) for name in ("paper", "adaptive")}
    return case
