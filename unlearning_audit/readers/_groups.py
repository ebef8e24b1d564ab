"""Group comparable models: those of one architecture that have to forget the same samples."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.plugins.names import LONGEST
from unlearning_audit.readers import _words
from unlearning_audit.readers._model import FORGET, NONE, RETRAIN, UNKNOWN, UNLEARNED, Model, Unread, same_file
from unlearning_audit.readers._recompute import auc

#: Two files have one forget set if they share this part of the smaller one, and this number of samples.
SHARED, LEAST = 0.5, 10
#: The reason of a role that the user named.
COMMAND = "the command"
#: Retrained models of one forget set differ by less than this in their mean AUC over all attacks.
APART = 0.25


@dataclass(eq=False)
class Group:
    """Models that are compared: ``none`` before unlearning; ``retrain``, and ``control``, retrained by another recipe
    or in other runs; ``methods``: name → unlearned models. ``words`` name the models, ``samples`` is their forget set.
    ``notes``: assumptions, in sentences."""

    name: str
    words: frozenset[str]
    samples: frozenset[str]
    none: list[Model] = field(default_factory=list)
    retrain: list[Model] = field(default_factory=list)
    control: list[Model] = field(default_factory=list)
    methods: dict[str, list[Model]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def models(self) -> list[Model]:
        """Return all models that are compared. Methods with a diverged model are left out."""
        methods = (runs for name, runs in self.methods.items() if not self.damage(name))
        return [*self.none, *self.retrain, *self.control, *(run for runs in methods for run in runs)]

    def damage(self, method: str) -> str:
        """Return a sentence that says which models of a method diverged; "" if none did."""
        models = self.methods[method]
        damaged = [model for model in models if model.damage]
        first = f"({damaged[0].file}: {damaged[0].damage})" if damaged else ""
        return f"model damaged: {len(damaged)} of {len(models)} models diverged {first}" if damaged else ""


def assign(models: Sequence[Model], retrain: Sequence[Path] = (), none: Sequence[Path] = ()) -> None:
    """Give the models in the files or folders ``retrain`` and ``none`` these roles; FILE:NAME means the model of this
    name. Raises ValueError for a path that contains no model."""
    for role, places in ((RETRAIN, retrain), (NONE, none)):
        for place in places:
            file, name = named(place)
            below = [model for model in models if model.file.resolve().is_relative_to(file.resolve())]
            if not below:
                raise ValueError(f"{place}: there is no readable result file; give one, or its folder")
            meant = [model for model in below if name in ("", model.entry, *model.entry.split("/"), model.name)]
            if not meant:
                names = ", ".join(dict.fromkeys(model.entry or model.name for model in below))
                raise ValueError(f"{file}: this file has no model {name!r}; it holds {names}")
            for model in meant:
                model.role, model.method, model.decided = role, "", COMMAND


def named(place: Path) -> tuple[Path, str]:
    """Split FILE:NAME into the file and the name of a model in it; the name is "" for a plain file or folder."""
    file, _, name = ("", "", "") if place.exists() else str(place).rpartition(":")
    return (Path(file), name) if file else (place, "")


def grouped(models: Sequence[Model], *, alone: bool = False) -> tuple[list[Group], list[Unread]]:
    """Divide models into groups, each with the retrained models that the others are compared with.

    Return the groups by name, and the models that fit none, each with the reason. Models with too few samples are among
    the latter. ``alone``: models without a retrained one form groups, too. Raises ValueError with one sentence that
    says what the user has to give, if the files leave it open.
    """
    for model in models:
        if model.role == UNKNOWN:
            model.role, model.decided = UNLEARNED, "nothing says otherwise"
    sizes = {model: len(subject(model)) for model in models}
    small = {
        model: f"{model.file}: only {size} samples are to be forgotten by one model; at least {LEAST} are needed"
        for model, size in sizes.items() if size < LEAST
    }  # fmt: skip
    unplaced = list(dict.fromkeys(Unread(model.file, sentence) for model, sentence in small.items()))
    all_models, models = models, [model for model in models if model not in small]
    if not models:
        raise ValueError(unplaced[0].sentence)
    sound = [model for model in models if not model.damage]
    if not sound:
        raise ValueError(f"{models[0].file}: {models[0].damage}; there is no other model to compare")
    _checkpoints(models)
    groups = _founded([model for model in models if model.role == RETRAIN])
    unplaced += _doubtful(groups)
    groups = _joined([group for group in groups if group.retrain], [run for run in models if run.role != RETRAIN])
    if not groups:
        if not alone and not all(model.fair for model in models):
            raise ValueError(next((why for model, why in small.items() if model.role == RETRAIN), _question(models)))
        groups = _founded([model for model in sound if model.role == NONE] or sound)
        for group in groups:
            group.retrain = []
    for model in (run for run in models if run.role == NONE):
        fitting = _of_none(model, groups, models)
        for group in fitting:
            group.none.append(model)
        if not fitting and not any(subject(model) <= group.samples for group in groups):
            sentence = f"{model.file}: no retrained model has numbers for the samples of this model before unlearning"
            unplaced.append(Unread(model.file, sentence))
    for model in (run for run in models if run.role == UNLEARNED):
        try:
            group, words = _of_unlearned(model, groups)
            group.methods.setdefault(_method(model, words), []).append(model)
        except ValueError as error:
            unplaced.append(Unread(model.file, str(error)))
    for group in groups:
        _apart_by_names(group)
    of_unlearned = {run.file for run in all_models if run.role == UNLEARNED}
    refused = next((result for result in unplaced if result.file in of_unlearned), None)
    if refused and not any(group.methods for group in groups):
        raise ValueError(refused.sentence)
    for group in groups:
        group.notes += _copies(group)
        group.notes += dict.fromkeys(note for model in group.models for note in model.notes)
        group.methods = dict(sorted(group.methods.items(), key=lambda item: (_natural(slug(item[0])), item[0])))
        _recipes(group)
        names = slugs(group.methods)
        group.methods = {names[label]: models for label, models in group.methods.items()}
        group.notes += [f"{name}: {damage}." for name in group.methods if (damage := group.damage(name))]
    _name(groups)
    return sorted(groups, key=lambda group: _natural(group.name)), unplaced


def _checkpoints(models: Sequence[Model]) -> None:
    """Mark earlier checkpoints of a run as models of the method "retrain" or "full"; the last one keeps its role.

    Runs are those of retrained models and of models before unlearning.
    """
    stepped = [model for model in models if model.role in (NONE, RETRAIN) and model.step is not None]
    last: dict[tuple[Any, ...], Model] = {}
    for model in sorted(stepped, key=lambda model: model.step or 0, reverse=True):
        run = model.role, model.words, model.recipe, model.replicate, subject(model)
        if last.setdefault(run, model).step != model.step:
            model.role, model.method = UNLEARNED, "retrain" if model.role == RETRAIN else "full"
            model.decided = "an earlier checkpoint"


def _question(models: Sequence[Model]) -> str:
    """Return a sentence that asks the user which model was retrained; for files that do not say it of any model."""
    names = list(dict.fromkeys(f"{model.file}:{model.entry}".removesuffix(":") for model in models))
    listed = ", ".join(names[1:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return (
        f"{names[0]}{f' ({listed})' if listed else ''}: no model is known to be retrained without the forget set; "
        "name one with --retrain FILE or FILE:NAME, or in a table give it the kind retrained; if there is none, "
        "--no-retrain shows what can be computed without verdicts"
    )


def _doubtful(groups: Sequence[Group]) -> list[Unread]:
    """Remove from the groups models that are called retrained but hardly can be; return them with a sentence.

    Such a model distinguishes forgotten from held-out samples far better than another retrained model does. Its name
    may be wrong because a file's name can also say with which model it is compared. Models that the user named on the
    command stay.
    """
    reads = {
        model: float(np.mean([*values.values()])) for group in groups for model in group.retrain
        if (values := aucs(model))
    }  # fmt: skip
    doubtful = []
    for group in groups:
        alike = [run for peer in groups if peer.samples == group.samples for run in peer.retrain]
        least = min((reads[model] for model in alike if model in reads), default=1.0)
        for model in list(group.retrain):
            if reads.get(model, least) > least + APART and model.decided != COMMAND:
                group.retrain.remove(model)
                sentence = (
                    f"{model.file} is called retrained, but has an AUC of {reads[model]:.2f} where another has "
                    f"{least:.2f}; say which it is: --retrain FILE, or --none FILE if it is the model before unlearning"
                )
                doubtful.append(Unread(model.file, sentence))
    return doubtful


def _copies(group: Group) -> list[str]:
    """Return sentences about files with the same scores for every sample: one of the two is a copy of the other."""
    first: dict[tuple[bytes, ...], Model] = {}
    marked = [(model, tuple(score.tobytes() for score in model.scores.values())) for model in group.models]
    twins = [(model, first.setdefault(marks, model)) for model, marks in marked if marks]
    return [
        f"{model.file} holds the same scores as {twin.file}: one is a copy of the other."
        for model, twin in twins if twin is not model
    ]  # fmt: skip


def aucs(model: Model) -> dict[str, float]:
    """Return attack → its AUC on a model, forgotten against held-out samples; {} if one side is empty."""
    if not (model.forget.any() and model.heldout.any()):
        return {}
    return {name: auc(score[model.forget], score[model.heldout]) for name, score in model.scores.items()}


def _founded(retrained: list[Model]) -> list[Group]:
    """Return a group for each set of retrained models with the same forget set and the same words in their names.

    Models whose names differ only in their folders share a group.
    """
    groups: list[Group] = []
    for model in retrained:
        words, samples = frozenset(model.words), subject(model)
        alike = (group for group in groups if group.samples == samples)
        twin = next((group for group in alike if group.words == words or _only_folders(model, group.retrain[0])), None)
        if twin is None:
            twin = Group("", words, samples)
            groups.append(twin)
        twin.words &= words
        twin.retrain.append(model)
    return groups


def _only_folders(one: Model, other: Model) -> bool:
    """Return whether the words of two models become equal without those of outer folders (`Model.above`). Both models
    must have such words."""
    own, others = (frozenset(model.words) - model.above for model in (one, other))
    return bool(one.above and other.above) and own == others


def subject(model: Model) -> frozenset[str]:
    """Return the samples that comparable models share: the forget set; or, if coins chose it for each model, all
    samples that attacks score."""
    return frozenset(model.ids) if model.fair else model.samples.get(FORGET, frozenset())


def shared(model: Model, samples: frozenset[str]) -> int:
    """Return on how many samples of a forget set (``samples``) a model has results; 0 if they are too few to compare:
    fewer than `LEAST`, or less than the share `SHARED` of the smaller set."""
    ids = subject(model)
    both = len(ids & samples)
    return both if both >= LEAST and both >= SHARED * min(len(ids), len(samples)) else 0


def _joined(groups: list[Group], others: Sequence[Model]) -> list[Group]:
    """Return the groups of retrained models, after merging some that differ only in names.

    Two groups are merged if they have one forget set, if the user named all of their retrained models on the command
    line, and if their names need not be told apart. They must be if each group has a word of its own that also occurs
    in the ``others`` (the models that are not retrained), or if they differ by a word with a size, such as 1B.
    """
    said = frozenset(word for model in others for word in model.words)
    whole: list[Group] = []
    for group in groups:
        for twin in whole:
            by_name = all(run.decided == COMMAND for run in (*group.retrain, *twin.retrain))
            apart = (group.words - twin.words) & said, (twin.words - group.words) & said
            sized = any(map(_words.sized, group.words ^ twin.words))
            if by_name and group.samples == twin.samples and not all(apart) and not sized:
                twin.words = (twin if apart[1] else group).words if any(apart) else group.words & twin.words
                twin.retrain += group.retrain
                break
        else:
            whole.append(group)
    return whole


def _apart_by_names(group: Group) -> None:
    """Split a method of a group into several if its models' names differ by more than a seed or the number of a run.

    Nothing shows then that these models are of one kind. A note of the group says so.
    """
    for label, runs in list(group.methods.items()):
        rest = {run: "_".join(word for word in run.words if word not in group.words) for run in runs}
        if len(set(rest.values())) > 1:
            del group.methods[label]
            for run in runs:
                group.methods.setdefault(f"{label}_{rest[run]}".strip("_"), []).append(run)
            group.notes.append(
                f"Models of {label} whose names differ by more than a seed or a run are separate methods; if they "
                "are one method, change that with --roles."
            )


def _fits(model: Model, group: Group, common: frozenset[str]) -> bool:
    """Return whether the words that name the group are among the words that name the model, or the other way round."""
    words, group_words = frozenset(model.words) - common, group.words - common
    return words <= group_words or group_words <= words


def _nearest(model: Model, groups: list[Group]) -> list[Group]:
    """Return the groups whose words differ least from the model's."""
    apart = [len(frozenset(model.words) ^ group.words) for group in groups]
    return [group for group, words in zip(groups, apart, strict=True) if words == min(apart)]


def _common(groups: list[Group]) -> frozenset[str]:
    """Return the words that the names of all groups share."""
    return frozenset.intersection(*(group.words for group in groups)) if len(groups) > 1 else groups[0].words


def _of_none(model: Model, groups: list[Group], models: Sequence[Model]) -> list[Group]:
    """Return the groups to which a model before unlearning belongs; [] if none fits.

    A group fits if the model has results on enough samples of its forget set, and if the words in their names agree or
    all groups have equal words. Two rules narrow the choice. First, a model may have a log for each forget set: among
    ``models``, those before unlearning with equal words and recipe. A group then takes the log that shares the most
    samples with its forget set, and of these the one with the fewest samples. Second, of several groups with one forget
    set, only those remain whose words differ least from the model's.
    """
    common, fitting = _common(groups), []
    logs = [log for log in models if log.role == NONE and (log.words, log.recipe) == (model.words, model.recipe)]
    for group in groups:
        count = shared(model, group.samples)
        if not count or not (_fits(model, group, common) or len({other.words for other in groups}) == 1):
            continue
        fits = {log: (shared(log, group.samples), -len(subject(log))) for log in logs}
        if fits[model] == max(fits.values()):
            fitting.append(group)
    # If several groups have one forget set, those with the most similar names are kept.
    return [group for group in fitting
            if group in _nearest(model, [other for other in fitting if other.samples == group.samples])]  # fmt: skip


def _of_unlearned(model: Model, groups: list[Group]) -> tuple[Group, frozenset[str]]:
    """Return the group to which an unlearned model belongs, and the words that the names of this group's models share.

    It is the group of the retrained model that the model's configuration names, if they share enough samples. Otherwise
    these rules apply in turn to the groups that share enough samples: those whose words agree with the model's, if any;
    those that share the most samples and, of these, have the fewest others; the one whose words differ least. If no
    group's words agree, a note of the group says so. Raises ValueError if no group shares samples, or if several
    remain.
    """
    common = _common(groups)
    if model.retrained_file:
        matches = [g for g in groups if any(same_file(model.retrained_file, retrained.file) for retrained in g.retrain)]
        if len(matches) == 1 and shared(model, matches[0].samples):
            return matches[0], matches[0].words
    candidates = [group for group in groups if shared(model, group.samples)]
    if not candidates:
        raise ValueError(
            f"{model.file}: no retrained model has its forget set; name equal samples alike, or name the log of one "
            "with --retrain FILE"
        )
    candidates_by_name = [group for group in candidates if _fits(model, group, common)]
    fits = candidates_by_name or candidates
    # A smaller forget set may be part of a larger one. Among groups that share equally many samples, the one with the
    # fewest others fits best.
    fit = [(shared(model, group.samples), -len(group.samples ^ subject(model))) for group in fits]
    best = _nearest(model, [group for group, of_group in zip(fits, fit, strict=True) if of_group == max(fit)])
    if len(best) != 1:
        files = " or ".join(str(group.retrain[0].file if group.retrain else group.words) for group in best[:3])
        raise ValueError(
            f"{model.file}: several retrained models fit it ({files}); give one, or name one with --retrain FILE"
        )
    if not candidates_by_name:
        best[0].notes.append(
            f"{model.file} does not say which model it belongs to; it is taken for one of {' '.join(best[0].words)}"
        )
    return best[0], best[0].words


def _method(model: Model, words: frozenset[str]) -> str:
    """Return the name of a method in a study, from its own name, its settings and its step."""
    names = [model.method] if model.method else [word for word in model.words if word not in words]
    label = "_".join([*names, *model.recipe]) or "unlearned"
    return label if model.step is None else f"{label}_step{model.step}"


def slug(text: str, most: int = LONGEST) -> str:
    """Return a name as studies allow it: lower-case letters, digits and underscores, at most ``most`` characters."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:most].strip("_") or "model"


def slugs(names: Iterable[str], most: int = LONGEST) -> dict[str, str]:
    """Return name → slug, all of them different. Names that are slugs already are unchanged."""
    short: dict[str, str] = {}
    for name in sorted(dict.fromkeys(names), key=lambda name: name != slug(name, most)):
        label, number = slug(name, most), 1
        while label in short.values():
            number += 1
            label = f"{slug(name, most - len(f'_{number}'))}_{number}"
        short[name] = label
    return short


def _recipes(group: Group) -> None:
    """Divide the retrained models of a group into retrained ones and their control, in place.

    With several recipes (settings in names), those of the second are the control, and those of further ones methods.
    With one recipe and at least four models, half of them are the control. Models before unlearning of further recipes
    become methods, too.
    """
    kinds = _apart_by_words(run.recipe for run in group.retrain)
    if len(kinds) > 1:
        first, second, *more = kinds
        labels = {kind: " ".join(words) or "no setting" for kind, words in kinds.items()}
        names = f"{labels[first]} is called retrain, {labels[second]} retrain_control"
        group.notes.append(f"Models were retrained by two recipes: {names}.")
        for kind in more:
            group.methods[f"retrain_{labels[kind]}"] = [run for run in group.retrain if run.recipe == kind]
        group.control = [run for run in group.retrain if run.recipe == second]
        group.retrain = [run for run in group.retrain if run.recipe == first]
    elif (half := len(group.retrain) // 2) >= 2:
        group.retrain, group.control = group.retrain[:-half], group.retrain[-half:]
        for run in group.control:
            run.decided = run.decided or "half of the retrained models"
    recipe_of = {run: (*[word for word in run.words if word not in group.words], *run.recipe) for run in group.none}
    recipes = _apart_by_words(recipe_of.values())
    if len(recipes) > 1:
        reference = group.retrain[0].recipe if group.retrain else ()
        first = reference if reference in recipes else next(iter(recipes))
        for recipe, words in recipes.items():
            if recipe != first:
                of_recipe = [run for run in group.none if recipe_of[run] == recipe]
                group.methods[f"none_{'_'.join(words)}"] = of_recipe
        group.none = [run for run in group.none if recipe_of[run] == first]


def _apart_by_words(recipes: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], list[str]]:
    """Return each recipe, in natural order, → its words that not all recipes have."""
    kinds = sorted(set(recipes), key=lambda recipe: _natural(" ".join(recipe)))
    return {kind: [word for word in kind if not all(word in other for other in kinds)] for kind in kinds}


def _name(groups: list[Group]) -> None:
    """Set the name of every group: words that tell its models from those of other groups, and the task or number of
    samples.

    Groups of one forget set get a note on the words by which they differ. Equal names get a number.
    """
    common = _common(groups) if len(groups) > 1 else frozenset()
    for group in groups:
        words = [word for word in group.models[0].words if word in group.words and word not in common]
        tasks = [model.task for model in group.models if model.task]
        same = [model for model in groups if model.words == group.words]
        exact = [model.task for model in group.models if model.task and subject(model) == group.samples]
        task = (exact or (tasks if len(same) == 1 else []) or [f"{len(group.samples)}_samples"])[0]
        group.name = slug("_".join([*words, task]))
    for group in groups:
        apart = [word for peer in groups if peer.samples == group.samples for word in group.words ^ peer.words]
        if apart and not any(map(_words.sized, apart)):
            group.notes.append(
                f"Models of one forget set are separate scenarios, because their names differ: {', '.join(apart)}. "
                "If they are more models of one kind, give them one scenario with --roles."
            )
    names = [group.name for group in groups]
    for number, group in enumerate(groups):
        if names.count(group.name) > 1:
            group.name = f"{group.name[:36]}_{number + 1}"


def _natural(text: str) -> list[tuple[int, float | str]]:
    """Return a sorting key that orders numbers in texts by value."""
    return [
        (0, float(part)) if re.fullmatch(r"\d+([.]\d+)?", part) else (1, part)
        for part in re.split(r"(\d+(?:[.]\d+)?)", text)
        if part
    ]
