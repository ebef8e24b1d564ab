"""`Evaluation`: everything that attacks and metrics of one method in one scenario are computed from, for own and
imported models."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property

import numpy as np

from unlearning_audit.evaluation import likeness
from unlearning_audit.evaluation.arrays import ArtifactError, Selection
from unlearning_audit.evaluation.cohort import DECLARE, Cohort, Group, Targets
from unlearning_audit.evaluation.effects import Effect
from unlearning_audit.evaluation.published import Published
from unlearning_audit.evaluation.shadow import BOTH, Shadow, known_mask
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError, in_library
from unlearning_audit.stats import crossed
from unlearning_audit.store import tables

#: Form of an attack, which says from which shadow models it learns (`Evaluation.shadows`) → the name of these models,
#: and of the membership mask that marks members.
KNOWLEDGE = {"trained": ("shadow_original", "train"), "unlearned": ("shadow", "forget"), BOTH: ("shadow", "forget")}

#: The sentence for imported models of which only forgotten samples are known.
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
    """The audited models of one method in one scenario, and the models that they are compared with.

    Files are read on first use. Logits stay in their files until they are needed.

    Parameters
    ----------
    data_file
        The file of samples (`Data`).
    membership_files
        The files of memberships, one for each batch of models. The batches of models that were trained here also have
        the adversary's shadow models.
    originals, unlearned_files
        The files of logits before unlearning, and those after it: one for each batch, in the order of
        ``membership_files``.
    signal_files
        File of logits → files of other signals of the same models, such as their gradients.
    feature_files
        File of logits → the file of the models' last hidden layer (`Features`).
    imported
        Whether the models are imported, so that ``others`` holds all that they are compared with.
    others
        Part (original, retrain, retrain_control, shadow, shadow_original) → imported models.
    design
        How forgotten and held-out samples of imported models were drawn, as the study states it.
    scores_file
        The scores of attacks.
    retrained_files
        The logits of retrained models.
    control_files
        The logits of other retrained models, which are independent of those in ``retrained_files``.
    selection_file
        How strongly models memorise each sample (`Selection`), by which target samples were chosen.
    relearned_files
        The answers of the audited models after relearning.
    generated_files
        The texts that the audited models generate.
    sampled_files
        Several random texts of the audited models.
    compared_relearned_files, compared_generated_files, compared_sampled_files
        The same signals of the retrained models.
    seed
        The study's seed.
    draws
        The study's number of bootstrap draws.
    sets
        Name (paper, adaptive) → attacks over which Q takes the maximum.
    missing
        "attack/form" → why the attack could not be evaluated in that form.
    unread
        Sentences about populations that cannot be read.
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
        """Return the logits and memberships of the audited models after unlearning."""
        return Targets.of(self.audited)

    @cached_property
    def original(self) -> Targets | None:
        """Return the models before unlearning, or None if no such models have the samples of the audited ones. Raises
        NoAnswerError if they have no logits."""
        group = self.comparable("original")
        return Targets.of(group) if group else None

    @cached_property
    def retrained(self) -> Targets | None:
        """Return the retrained models to compare with, or None if no such models have the samples of the audited ones.
        For retraining itself, these are independently retrained models. Raises NoAnswerError if they have no logits."""
        group = self.comparable("retrain")
        return Targets.of(group) if group else None

    @property
    def audited(self) -> Group:
        """Return the audited models after unlearning: all imported models of the target, or the defender's of the
        models that were trained here."""
        return Group(self, self.unlearned_files, None if self.imported else self.target)

    @cached_property
    def unlearned(self) -> np.ndarray:
        """Return the logits after unlearning of all models, the adversary's included, float32 [models, samples,
        classes]. Raises NoAnswerError if models have no logits."""
        return self.outputs(self.unlearned_files).logits

    @cached_property
    def published(self) -> Published | None:
        """Return the published scores of the audited models, if a result file takes the place of logits; else None."""
        return self.audited.published if self.imported else None

    @property
    def sentences(self) -> list[str]:
        """Return sentences to print once about the models: the remarks of a result file, or else that no sample of
        imported models is held out; [] if there is nothing to say."""
        if self.published is not None:
            return self.published.sentences
        return [NO_HELDOUT] if self.imported and not self.membership.heldout.any() else []

    @cached_property
    def copied(self) -> np.ndarray | None:
        """Return a number for each model that copies of one model have in common, int64 [models]; None without copies.

        Models that were trained here are copies of their original, if several were unlearned from each of several
        (``Membership.copied``). An imported model is a copy of an earlier one to which it is nearly identical, as if a
        file was saved twice.
        """
        imported_logits = self.imported and self.published is None
        twins = list(likeness.twins(self.audited.sample_logits)) if imported_logits else []
        if not twins:
            return self.membership.copied
        source = np.arange(len(self.membership.seed))
        for earlier, later in twins:
            source[later] = source[earlier]
        return source

    @property
    def fair(self) -> bool:
        """Return whether forgotten and held-out samples are a random draw, which some metrics require.

        True for models that were trained here. Published scores say it themselves. Of other imported models it is true
        if all these samples are canaries, of which a coin chose the forgotten ones; if splits are swapped in pairs; or
        if the ``design`` that their owner states is one of `FAIR`, "swapped" or "random".
        """
        if not self.imported:
            return True
        if self.published is not None:
            return self.published.fair
        audited = (self.membership.forget | self.membership.heldout).any(axis=0)
        # Samples that are not canaries.
        without_coin = audited if self.membership.pair is None else audited & (self.membership.pair < 0)
        return not without_coin.any() or not self.why_unpaired or self.design in FAIR

    @property
    def why_unpaired(self) -> str:
        """Return why imported models are not pairs of swapped splits (Tu, Hu & Ma 2024, §3.3); "" if they are, and for
        models that were trained here.

        In a swapped pair, the forget set of either split is the held-out set of the other.
        """
        if not self.imported:
            return ""
        for block in np.unique(self.membership.block):
            of_block = self.membership[self.membership.block == block]
            numbers = np.unique(of_block.split)
            if len(numbers) != 2:
                return f"block {block} has {len(numbers)} splits, a swapped pair has two: see split.npy and block.npy"
            splits = [of_block[of_block.split == number] for number in numbers]
            for number, split in zip(numbers, splits, strict=True):
                # [0]: of the first model, from which no other may differ
                if (split.forget != split.forget[0]).any() or (split.heldout != split.heldout[0]).any():
                    return f"models of split {number} in block {block} differ in forget or heldout"
            first, second = splits
            if (first.forget[0] != second.heldout[0]).any() or (first.heldout[0] != second.forget[0]).any():
                return f"in block {block} the forget set of one split is not the heldout set of the other"
        return ""

    def for_verdicts(self, effects: dict[str, Effect]) -> dict[str, Effect]:
        """Return a metric's ``effects``, name → effect, as verdicts use them.

        Without a random draw of samples, retrained models replace the value that theory predicts. Imported models are
        not paired by their originals, because nobody knows which originals they come from. The mean over copies of one
        model (`copied`) counts as one model, but not in effects of groups of models.
        """
        adapted = {}
        for name, effect in effects.items():
            rule = effect.rule if self.fair else effect.rule.without_draw()
            adapted[name] = replace(effect, partners=not self.imported, rule=rule)
            # An effect without one entry per model is one of groups of models. It stays whole, because it is unknown
            # which group contains a copy.
            if self.copied is not None and len(effect.unit) == len(self.copied):
                adapted[name] = adapted[name].over_copies(self.copied)
        return adapted

    # ------------------------------------------------------------ models that the audited ones are compared with

    @property
    def compared_files(self) -> list[str] | None:
        """Return the files of the retrained models to compare with, or None without such models. If retrained models
        themselves are audited, return the files of their controls, which are retrained independently."""
        are_retrained = self.retrained_files is not None and self.unlearned_files == self.retrained_files
        return (self.control_files or None) if are_retrained else self.retrained_files

    def group(self, name: str) -> Group | None:
        """Return the models called ``name``, or None if there are none.

        The defender's are called "original", "retrain" and "retrain_control". The adversary's are called "shadow" after
        unlearning, "shadow_original" before it, and "shadow_retrain" if retrained. If retrained models are audited,
        "retrain" stands for their controls, which are retrained independently; if these are audited, for the retrained
        models. In both cases "retrain_control" stands for none. Imported models are those of this name in ``others``.
        """
        if self.imported:
            return self.others.get(name)
        are_retrained = self.unlearned_files in (self.retrained_files, self.control_files)
        files_of = {"": self.unlearned_files, "original": self.originals, "retrain": self.compared_files,
                    "retrain_control": None if are_retrained else self.control_files}  # fmt: skip
        files = files_of[name.removeprefix("shadow").removeprefix("_")]
        if not files:
            return None
        # Files of models that were trained here hold the defender's and the adversary's models.
        return Group(self, files, ~self.target if name.startswith("shadow") else self.target)

    def yardsticks(self) -> tuple[Group, Group, Group | None]:
        """Return the audited models, retrained models of the same samples, and independently retrained ones or None.

        Raises ValueError if there are no retrained models, if they have other samples, or if the models do not all
        forget the same set.
        """
        retrain, control = self.group("retrain"), self.group("retrain_control")
        if retrain is None and self.imported:
            raise ValueError("there is no retrain/ (for retrain itself: retrain_control/) with logits to compare with")
        if retrain is None and self.retrained_files is None:
            raise ValueError("there are no retrained models to compare with; name retrain among the methods")
        if retrain is None:
            raise ValueError("retrain cannot be compared with itself; set controls: true")
        forget = self.audited.membership.forget
        if (forget != forget[0]).any():  # [0]: of the first model, from which no other may differ
            raise ValueError("the models of target/ have different forget sets; the score compares models with one")
        for name, group in (("retrain", retrain), ("retrain_control", control)):
            if group and not group.same_samples(self.audited):
                raise ValueError(f"{name}/ holds other samples than target/")
            if group and (group.membership.forget != forget[0]).any():
                raise ValueError(f"the models of {name}/ have other forget sets than those of target/")
        return self.audited, retrain, control

    def defender_and_adversary(self) -> tuple[dict[str, Group | None], dict[str, Group | None]]:
        """Return two dicts: of the defender's (audited) models and of the adversary's (shadow) models.

        Both map "original", "unlearned" and "retrained" to models. Only "retrained" may be None: if there are no
        retrained models, or if the defender's do not match the audited models (`unlike`). Raises ValueError if there
        are no shadow models, if shadow models have other samples than the audited ones, or if originals, the defender's
        or the adversary's, are missing or do not match the models that were unlearned from them.
        """
        original, retrained = self.group("original"), self.group("retrain")
        shadow, shadow_original = self.group("shadow"), self.group("shadow_original")
        if not self.imported and self.target.all():
            # The metric that calls this asks of target samples alone, so its protocol has to choose these.
            raise ValueError(f"there are no shadow models; draw them by protocol {registry.offering('target_samples')}")
        problem = self.unlike("original", original) or ("" if shadow else "there is no shadow/ with logits")
        if not problem and shadow and not shadow.same_samples(self.audited):
            problem = "shadow/ holds other samples than target/"
        problem = problem or unlike("shadow_original", shadow_original, "shadow", shadow)
        if problem:
            raise ValueError(problem)
        retrained = None if self.unlike("retrain", retrained) else retrained
        audited = {"original": original, "unlearned": self.audited, "retrained": retrained}
        return audited, {"original": shadow_original, "unlearned": shadow, "retrained": self.group("shadow_retrain")}

    def comparable(self, name: str) -> Group | None:
        """Return the models called ``name`` (see `group`) if they have the same samples as the audited ones, else
        None."""
        group = self.group(name)
        return group if group and group.same_samples(self.audited) else None

    def unlike(self, name: str, group: Group | None) -> str:
        """Return why the models of ``group`` do not match the audited ones, model by model and sample by sample, or
        that there are none (None); "" if they match."""
        return unlike(name, group, "target", self.audited)

    @cached_property
    def selection(self) -> Selection | None:
        """Return how strongly models memorise each sample, by which the target samples were chosen; None if they were
        chosen without it."""
        return Selection.read(self.selection_file, samples=len(self.data.y)) if self.selection_file else None

    @cached_property
    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        """Return squared gradient norms after unlearning: of every forget sample, float64 [models, forget rows], and of
        the mean gradient, float64 [models]. Raises ArtifactError if they were not computed."""
        gradients = self.outputs(self.unlearned_files).gradients
        if gradients is None:
            raise ArtifactError(f"{self.unlearned_files[0]}: no gradients were read of these models; {DECLARE}")
        norms = gradients.squared_norms
        if norms.shape[1] == len(self.data.y):  # those of all samples were read
            norms = np.stack([of_model[mask] for of_model, mask in zip(norms, self.membership.forget, strict=True)])
        return norms, gradients.mean_squared_norm

    # ------------------------------------------------------------ what attacks read and learn from

    def signal(self, name: str, files: list[str], models: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return a signal of `unlearning_audit.signals`, float64 [chosen models, rows, …]; NaN where a model has no
        value for a sample.

        A signal with a function ``values`` is computed by that function. Any other signal is read from its own files.

        Parameters
        ----------
        name
            The name of the signal.
        files
            The files of the models' logits, to which the files of the signal belong.
        models
            bool [models]: the chosen models.
        rows
            int64 [rows]: the samples.

        Raises
        ------
        ArtifactError
            If there are no files of the signal.
        """
        if name in registry.defining("signals", "values"):
            return np.asarray(registry.load("signals", name).values(self, files, models, rows))
        values = self.outputs(files).by_sample(name, models, rows)
        if values is None:
            raise ArtifactError(f"{files[0]}: no {name} of all samples were read of these models; {DECLARE}")
        return values

    @cached_property
    def queried(self) -> np.ndarray:
        """Return the samples that attacks score for at least one target model, int64 [rows], ascending: forgotten or
        held out by it, or part of a request that was not made yet."""
        return np.flatnonzero(self.membership[self.target].queries.any(0))

    def phi_before(self) -> np.ndarray | str:
        """Return φ = log(p/(1 − p)) of the label before unlearning, of every audited model, float64 [models, samples],
        or a sentence that says why it is missing.

        Audited models with the same forget set take the originals with that forget set in turn. So a single original
        may serve several audited models.
        """
        original = self.comparable("original")
        if original is None:
            return "it compares with the models before unlearning, and there is no original/ with the same samples"
        phi, places = original.phi(), []
        served: Counter[bytes] = Counter()  # how many audited models of each forget set have an original
        for forget in self.membership.forget:
            same = np.flatnonzero((original.membership.forget == forget).all(axis=1))
            if not len(same):
                return "it compares with the models before unlearning, and those of original/ have other forget sets"
            places.append(same[served[forget.tobytes()] % len(same)])
            served[forget.tobytes()] += 1
        return phi[places]

    def shadows(self, signals: tuple[str, ...]) -> Iterator[tuple[str, Shadow | str]]:
        """Yield (form, shadow models) for each form in which an attack that reads ``signals`` is evaluated.

        The form says which shadow models the attack learns from: "trained" are those before unlearning, and "unlearned"
        those after it. "both" is the only form of attacks that also read logits before unlearning.

        If the attack cannot be evaluated on imported models, a sentence that says why replaces the shadow models: a
        signal that it reads is unknown, or there are no logits before unlearning. If imported shadow models are
        missing, `Shadow` is empty, because some attacks do not need any.
        """
        # Of imported models, no signal is known but φ before unlearning, if there are such models.
        unread = [name.replace("_", " ") for name in signals if name != "before"] if self.imported else []
        forms = (BOTH,) if "before" in signals and not unread else ("trained", "unlearned")
        why = f"it needs {' and '.join(unread)}, which is not read of models from elsewhere" if unread else ""
        if self.imported and forms == (BOTH,):
            before = self.phi_before()
            why = before if isinstance(before, str) else ""
        for form in forms:
            yield form, why or self._shadow(form, signals)

    def _shadow(self, form: str, signals: tuple[str, ...]) -> Shadow:
        """Return the shadow models from which an attack learns in one form.

        In the form "trained" an attack learns from the shadow models before unlearning, and members are the samples
        that they were trained on. In "unlearned" and "both" it learns from the shadow models after unlearning, and
        members are the samples that they forgot. Non-members are held out. Samples with an unknown signal are neither.
        `Shadow` is empty if there are no shadow models, or for "both" if imported shadow models before and after
        unlearning do not match.

        The columns are the samples that are a member or a non-member of some shadow model. If imported shadow models
        have the samples of the audited ones, and every scored sample is a member of some and a non-member of others,
        the columns are the scored samples, so that attacks can fit one model per sample.

        Parameters
        ----------
        form
            "trained", "unlearned" or "both".
        signals
            What the attack reads besides logits.
        """
        name, member_mask = KNOWLEDGE[form]
        group, original = self.group(name), self.group("shadow_original")
        if group is None or (self.imported and form == BOTH and unlike("shadow_original", original, "shadow", group)):
            no_logits, no_rows = np.zeros((0, 0, self.unlearned.shape[2]), np.float32), np.zeros((0, 0), bool)
            return Shadow(no_logits, np.zeros(0, np.int64), member=no_rows, nonmember=no_rows)
        member, nonmember = getattr(group.membership, member_mask), group.membership.heldout
        columns = np.flatnonzero((member | nonmember).any(0))
        on_both_sides = member.any(0) & nonmember.any(0)
        if self.imported and group.same_samples(self.audited) and on_both_sides[self.queried].all():
            columns = self.queried
        # Before unlearning, shadow models have originals of their own.
        values = {
            signal: original.phi(columns) if signal == "before" and original
            else self.signal(signal, group.files, ~self.target, columns)
            for signal in signals
        }  # fmt: skip
        usable = known_mask(values)
        return Shadow(
            group.logits(columns), group.labels[..., columns], member[:, columns] & usable,
            nonmember[:, columns] & usable, columns, values,
        )  # fmt: skip

    def why_insufficient(self, form: str, error: PluginError, file: str) -> str:
        """Return why imported models do not suffice for an attack that failed in this ``form``; "" if the failure is
        the attack's own, and always for models that were trained here and for the form "both".

        Only a ValueError can mean that models do not suffice. Without shadow models for this form, the answer says that
        there are none, and quotes the message of a user's attack. With shadow models, a user's attack is itself at
        fault, and for an attack of the library the answer is its message.

        Parameters
        ----------
        form
            The form in which the attack failed (`shadows`).
        error
            The failure.
        file
            The file of the attack.
        """
        if not self.imported or form not in ("trained", "unlearned") or not isinstance(error.__cause__, ValueError):
            return ""
        population, _member_mask = KNOWLEDGE[form]
        if population not in self.others:
            quoted = "" if in_library(file) else f"; {error}"
            return f"it learns from shadow models, and there is no {population}/{quoted}"
        return str(error.__cause__) if in_library(file) else ""

    @cached_property
    def failed_attacks(self) -> dict[str, str]:
        """Return a dict: attack → why it has no scores; {} without a file of scores."""
        return tables.read_failures(self.scores_file) if self.scores_file else {}

    @cached_property
    def scores(self) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
        """Return (attack, form) → score float64 and decision bool, each [target models, samples]; NaN and False where a
        sample is not scored; {} without a file of scores.

        The form "both", which also uses logits before unlearning, is left out.
        """
        return {(attack, form): columns for (attack, form), columns in self._every_score.items() if form != BOTH}

    @cached_property
    def updates(self) -> dict[str, np.ndarray]:
        """Return attack → its score in the form "both", float64 [target models, samples]; NaN where a sample is not
        scored; attacks without this form are left out."""
        return {name: score for (name, form), (score, _) in self._every_score.items() if form == BOTH}

    @cached_property
    def _every_score(self) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
        """Read the scores of all attacks: (attack, form) → score float64 and decision bool, each [target models,
        samples]; NaN and False where a sample is not scored; {} without a file of scores."""
        if not self.scores_file:
            return {}
        shape = (int(self.target.sum()), len(self.data.y))
        scores = {}
        for key, columns in tables.read_scores(self.scores_file).items():
            place = (columns["model"], columns["index"])
            score, decision = np.full(shape, np.nan), np.zeros(shape, bool)
            score[place], decision[place] = columns["score"], columns["decision"]
            scores[key] = score, decision
        return scores

    def cached(self, name: str, files: list[str], compute: Callable[[], np.ndarray]) -> np.ndarray:
        """Return ``compute()``, which is called only once for each ``name`` and ``files``. The array must not be
        changed."""
        if (name, *files) not in self._cache:
            self._cache[name, *files] = compute()
        return self._cache[name, *files]

    def require_logits(self) -> None:
        """Raise NoAnswerError unless the models have logits, before and after unlearning."""
        self.outputs(self.unlearned_files)  # opening the files raises the error
        if self.originals:
            self.outputs(self.originals)


#: Designs in which forgotten and held-out samples are a random draw.
FAIR = ("swapped", "random")


def unlike(name: str, group: Group | None, other: str, other_group: Group | None) -> str:
    """Return why the models of ``group``, called ``name``, do not match those of ``other_group``, called ``other``,
    model by model and sample by sample, or that a group is missing (None); "" if the two match."""
    if group is None or other_group is None:
        return f"there is no {name}/ with logits"
    if not group.same_samples(other_group):
        return f"{name}/ holds other samples than {other}/"
    mask = group.differing_mask(other_group)
    return f"the models of {name}/ are not those of {other}/ in the same order: their {mask} differs" if mask else ""
