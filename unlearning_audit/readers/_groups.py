"""Group comparable models: those of one architecture that have to forget the same samples."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unlearning_audit.plugins.names import LONGEST
from unlearning_audit.readers import _words
from unlearning_audit.readers._model import FORGET, NONE, RETRAIN, UNKNOWN, UNLEARNED, Model, Unread, same_file
from unlearning_audit.readers._recompute import auc

#: Two forget sets count as one if they share at least this part of the smaller set, and at least as many samples.
LEAST_SHARE, LEAST_COUNT = 0.5, 10
#: The reason of a role that the user named.
COMMAND = "the command"
#: Why a model fits no group, and what to do.
NOT_RETRAINED = "no retrained model of this name has its forget set; name equal samples alike, or give --retrain FILE"


@dataclass(eq=False)
class Group:
    """Models that are compared: ``none`` before unlearning; ``retrain``, retrained; ``control``, retrained by another
    recipe or in other runs.

    Parameters
    ----------
    words
        Words that name the models.
    samples
        The samples that the models have to share: their forget set, or all samples if it is a random draw.
    methods
        Name → unlearned models.
    notes
        Assumptions, in sentences.
    """

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
        """Return a clause that says how many models of a method diverged, with an example; "" if none did."""
        models = self.methods[method]
        damaged = [f"({model.file}: {model.damage})" for model in models if model.damage]
        example = next(iter(damaged), "")
        return f"model damaged: {len(damaged)} of {len(models)} models diverged {example}" if damaged else ""


def assign(models: Sequence[Model], retrain: Sequence[Path] = (), none: Sequence[Path] = ()) -> None:
    """Give models the role "retrain" or "none", as the user named their files or folders in ``retrain`` and ``none``.
    FILE:NAME means only the model of this name in a file. Raises ValueError for a path or a name without a model.

    If the user names models before unlearning, no name of a file makes another model one: a model that only its name
    gave this role is of unknown role, and its method is called by the word of its name.

    All models that the user names as retrained count as one kind. Words in their names that no other model has are
    therefore dropped, unless such a word tells a size such as 1B.
    """
    for model in models if none else ():
        word, by_name, _ = model.decided.rpartition(_words.BY_NAME)
        if by_name and model.role == NONE:
            model.role, model.method, model.decided = UNKNOWN, model.method or word.strip("'"), ""
    for role, paths in ((RETRAIN, retrain), (NONE, none)):
        for path in paths:
            file, name = split_name(path)
            below = [model for model in models if model.file.resolve().is_relative_to(file.resolve())]
            if not below:
                raise ValueError(f"{path}: there is no readable result file; give one, or its folder")
            meant = [model for model in below if name in ("", model.entry, *model.entry.split("/"), model.name)]
            if not meant:
                names = ", ".join(dict.fromkeys(model.entry or model.name for model in below))
                raise ValueError(f"{file}: this file has no model {name!r}; it holds {names}")
            for model in meant:
                model.role, model.method, model.decided = role, "", COMMAND
    retrained = [model for model in models if (model.role, model.decided) == (RETRAIN, COMMAND)]
    words_of_others = {word for model in models if model not in retrained for word in model.words}
    for model in retrained:
        model.words = tuple(word for word in model.words if word in words_of_others or _words.is_sized(word))


def split_name(path: Path) -> tuple[Path, str]:
    """Split FILE:NAME into the file and the name of a model in it; the name is "" for a plain file or folder."""
    file, _, name = str(path).rpartition(":")
    # The name of an existing file may contain a colon itself.
    return (path, "") if path.exists() or not file else (Path(file), name)


def grouped(models: Sequence[Model], *, alone: bool = False) -> tuple[list[Group], list[Unread]]:
    """Divide models into groups. A group has retrained models, and the models that are compared with them.

    Return the groups, sorted by name, and an `Unread` with the reason for each model that fits no group or has fewer
    than `LEAST_COUNT` samples to forget (if a random draw chose these, fewer samples in all). A model of unknown role
    counts as unlearned. If no model was retrained, groups are made of the models before unlearning or, without such
    models, of all models. This is allowed if the user wants it (``alone``), or if the forgotten samples of all models
    are a random draw (`Model.fair`).

    Raises
    ------
    ValueError
        If there is nothing to compare, or if the files do not say something that the user then has to say.
    """
    for model in models:
        if model.role == UNKNOWN:
            model.role, model.decided = UNLEARNED, "nothing says otherwise"
    small = {
        model: f"{model.file}: only {size} samples are to be forgotten by one model; at least {LEAST_COUNT} are needed"
        for model in models if (size := len(must_share(model))) < LEAST_COUNT
    }  # fmt: skip
    large = [model for model in models if model not in small]
    if not large:
        raise ValueError(next(iter(small.values())))
    sound = [model for model in large if not model.damage]
    if not sound:
        raise ValueError(f"{large[0].file}: {large[0].damage}; there is no other model to compare")
    _mark_checkpoints(large)
    groups = _founded([model for model in large if model.role == RETRAIN])
    if not groups:
        if not alone and not all(model.fair for model in large):
            # Perhaps the only retrained models were too small; that is then the reason to give.
            raise ValueError(next((why for model, why in small.items() if model.role == RETRAIN), _question(large)))
        groups = _founded([model for model in sound if model.role == NONE] or sound)
        for group in groups:
            group.retrain = []  # `_founded` takes its models for retrained ones, which these are not
    unplaced = small | _add_none([model for model in large if model.role == NONE], groups)
    unplaced |= _add_unlearned([model for model in large if model.role == UNLEARNED], groups)
    refused = next((why for model, why in unplaced.items() if model.role == UNLEARNED), "")
    if refused and not any(group.methods for group in groups):
        raise ValueError(refused)
    for group in groups:
        _complete(group)
    _set_names(groups)
    unread = list(dict.fromkeys(Unread(model.file, sentence) for model, sentence in unplaced.items()))
    return sorted(groups, key=lambda group: _natural(group.name)), unread


def _add_unlearned(models: Sequence[Model], groups: list[Group]) -> dict[Model, str]:
    """Add each of the unlearned ``models`` to a method of the one group that fits it best; ``groups`` is changed in
    place. Return model → sentence for the models that no group or several groups fit.

    The group with the retrained model that a model's configuration names counts as the best one.
    """
    unplaced = {}
    for model in models:
        best = [group for group in groups if any(same_file(model.retrained_file, run.file) for run in group.retrain)]
        if len(best) != 1 or not all(shared(model, group.samples) for group in best):
            best = _best(model, groups, _common_words(groups))
        if len(best) == 1:
            best[0].methods.setdefault(_method_name(model, best[0]), []).append(model)
        elif best:
            files = " or ".join(str(group.retrain[0].file if group.retrain else group.words) for group in best[:3])
            unplaced[model] = f"{model.file}: several retrained models fit it ({files}); give one by --retrain FILE"
        else:
            unplaced[model] = f"{model.file}: {NOT_RETRAINED}"
    return unplaced


def _complete(group: Group) -> None:
    """Put the methods of a group in natural order, give them names that a study allows, split off a control and other
    recipes (`_split_recipes`), and add notes: on copies, those of its models, and on damaged methods. ``group`` is
    changed in place."""
    group.notes += [*_notes_on_copies(group), *dict.fromkeys(note for model in group.models for note in model.notes)]
    group.methods = dict(sorted(group.methods.items(), key=lambda item: (_natural(slug(item[0])), item[0])))
    _split_recipes(group)
    names = slugs(group.methods)
    group.methods = {names[label]: models for label, models in group.methods.items()}
    group.notes += [f"{name}: {damage}." for name in group.methods if (damage := group.damage(name))]


def _mark_checkpoints(models: Sequence[Model]) -> None:
    """Make the earlier checkpoints of a training run unlearned models of the method "retrain" or "full", so that it is
    shown over time; the last checkpoint of the run keeps its role. Only retrained models and models before unlearning
    are changed, because each checkpoint of an unlearned model is a method of its own anyway."""
    stepped = [model for model in models if model.role in (NONE, RETRAIN) and model.step is not None]
    last: dict[tuple[Any, ...], Model] = {}
    for model in sorted(stepped, key=lambda model: model.step or 0, reverse=True):
        run = model.role, model.words, model.recipe, model.replicate, must_share(model)
        if last.setdefault(run, model).step != model.step:  # the first model met of a run has its last step
            model.role, model.method = UNLEARNED, "retrain" if model.role == RETRAIN else "full"
            model.decided = "an earlier checkpoint"


def _question(models: Sequence[Model]) -> str:
    """Return a sentence that asks the user which of the ``models`` was retrained, because no file says so."""
    first, *names = dict.fromkeys(f"{model.file}:{model.entry}".removesuffix(":") for model in models)
    listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    others = f" ({listed})" if listed else ""
    advice = "name one with --retrain FILE or FILE:NAME, or in a table give it the kind retrained"
    otherwise = "if there is none, --no-retrain shows what can be computed without verdicts"
    return f"{first}{others}: no model is known to be retrained without the forget set; {advice}; {otherwise}"


def _notes_on_copies(group: Group) -> list[str]:
    """Return a sentence about each model of a group that has the same scores for every sample as an earlier model of
    the group. Models without scores are not compared."""
    earliest: dict[tuple[bytes, ...], Model] = {}
    scored = [(model, tuple(score.tobytes() for score in model.scores.values())) for model in group.models]
    twins = [(model, earliest.setdefault(scores, model)) for model, scores in scored if scores]
    return [
        f"{model.file} holds the same scores as {twin.file}: one is a copy of the other."
        for model, twin in twins if twin is not model
    ]  # fmt: skip


def aucs(model: Model) -> dict[str, float]:
    """Return attack → its AUC on a model, forgotten against held-out samples; {} if there are no forgotten or no
    held-out samples."""
    if not (model.forget.any() and model.heldout.any()):
        return {}
    return {name: auc(score[model.forget], score[model.heldout]) for name, score in model.scores.items()}


def _founded(retrained: list[Model]) -> list[Group]:
    """Return new groups, which have no names yet: one for each set of ``retrained`` models that have the same forget
    set and the same words.

    A model that the user names as retrained in the command also joins a group of the same forget set with more or fewer
    words, unless one of the words by which the model and the group differ tells a size. The group then has the words of
    both.
    """
    groups: list[Group] = []
    for model in retrained:
        words, samples = frozenset(model.words), must_share(model)
        for group in groups:
            differing = words ^ group.words
            may_differ = model.decided == COMMAND and _nested(words, group.words)
            has_words = not differing or (may_differ and not any(map(_words.is_sized, differing)))
            if group.samples == samples and has_words:
                break
        else:  # the model fits no group
            group = Group("", words, samples)
            groups.append(group)
        group.words |= words
        group.retrain.append(model)
    return groups


def must_share(model: Model) -> frozenset[str]:
    """Return the samples that comparable models must share: the model's forget set. If a random draw chose the forget
    set of each model (`Model.fair`), return all samples that attacks score, because they are the same for all
    models."""
    return frozenset(model.ids) if model.fair else model.samples.get(FORGET, frozenset())


def shared(model: Model, samples: frozenset[str]) -> int:
    """Return how many samples the forget set of a group (``samples``) shares with that of a model; 0 if they are too
    few to compare: fewer than `LEAST_COUNT`, or less than the share `LEAST_SHARE` of the smaller of both sets. If a
    random draw chose the forget set of the model, all samples that attacks score stand for it."""
    own = must_share(model)
    common = len(own & samples)
    return common if common >= LEAST_COUNT and common >= LEAST_SHARE * min(len(own), len(samples)) else 0


def _nested(words: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether one of two sets of words contains the other."""
    return words <= others or others <= words


def _common_words(groups: Sequence[Group]) -> frozenset[str]:
    """Return the words that all groups have."""
    return frozenset.intersection(*(group.words for group in groups))


def _best(model: Model, groups: Sequence[Group], common: frozenset[str]) -> list[Group]:
    """Return the groups that fit a model best; [] if none fits.

    A group fits if it and the model share enough samples (`shared`), and if the words of one of the two are among the
    words of the other; the words that all groups have (``common``) do not count. Of the groups that fit, the best share
    the most samples with the model. If several share as many, those count with the fewest samples that only the group
    or only the model has; then those with the fewest words that only one of the two has. Groups that are equal in all
    three are all returned.
    """
    words, samples = frozenset(model.words) - common, must_share(model)
    ranks: dict[Group, tuple[int, int, int]] = {}
    for group in groups:
        count, own_words = shared(model, group.samples), group.words - common
        if count and _nested(words, own_words):
            ranks[group] = count, -len(group.samples ^ samples), -len(words ^ own_words)
    return [group for group, rank in ranks.items() if rank == max(ranks.values())]


def _add_none(models: Sequence[Model], groups: list[Group]) -> dict[Model, str]:
    """Add ``models`` before unlearning to the groups that they fit; ``groups`` is changed in place. Return model →
    sentence for the models that fit no group.

    One model may be compared with several forget sets: it is added to the group that fits it best among the groups of
    each forget set. Such a model may have a log for each forget set, all with equal words and recipe. A group takes the
    log that shares the most samples with its forget set and, if several logs do, the log with the fewest samples.
    """
    common = _common_words(groups)
    placed = set()
    for group in groups:
        same_forget_set = [other for other in groups if other.samples == group.samples]
        logs = [model for model in models if group in _best(model, same_forget_set, common)]
        placed |= set(logs)
        rank = {log: (shared(log, group.samples), -len(must_share(log))) for log in logs}
        for log in logs:
            of_one_model = [other for other in logs if (other.words, other.recipe) == (log.words, log.recipe)]
            if rank[log] == max(rank[other] for other in of_one_model):
                group.none.append(log)
    return {model: f"{model.file}: {NOT_RETRAINED}" for model in models if model not in placed}


def _method_name(model: Model, group: Group) -> str:
    """Return the name of a model's method in a study: the method's own name, words of the model that the group does not
    have, its settings and its step; "unlearned" if there is no name, word or setting. So models that differ by more
    than a seed or a run are of different methods."""
    names = [model.method, *(word for word in model.words if word not in group.words), *model.recipe]
    label = "_".join(filter(None, names)) or "unlearned"
    return label if model.step is None else f"{label}_step{model.step}"


def slug(text: str, most: int = LONGEST) -> str:
    """Return a name as studies allow it: lower-case letters, digits and underscores, at most ``most`` characters;
    "model" if nothing is left of the text."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:most].strip("_") or "model"


def slugs(names: Iterable[str], most: int = LONGEST) -> dict[str, str]:
    """Return name → slug, a name as studies allow it (lower-case letters, digits and underscores), of at most ``most``
    characters. All slugs are different: if two names would get the same slug, a number is added. Names that are slugs
    already are unchanged."""
    slug_of: dict[str, str] = {}
    # Names that are slugs already come first, so that no other name can take theirs.
    for name in sorted(dict.fromkeys(names), key=lambda name: name != slug(name, most)):
        label, number = slug(name, most), 1
        while label in slug_of.values():
            number += 1
            label = f"{slug(name, most - len(f'_{number}'))}_{number}"
        slug_of[name] = label
    return slug_of


def _split_recipes(group: Group) -> None:
    """Split off a control from the retrained models of a group, and move models of other recipes (settings in names) to
    the methods. ``group`` is changed in place.

    If models were retrained by several recipes, in natural order, the models of the second recipe become the control,
    and each further recipe becomes a method. With one recipe and at least four retrained models, the later half of the
    models becomes the control. Of the models before unlearning, one recipe keeps its role: the recipe of the retrained
    models or, if no model has that, the first recipe in natural order. Each other recipe becomes a method "none_…".
    """
    retrained = _by_recipe({model: model.recipe for model in group.retrain})
    if len(retrained) > 1:
        (label, group.retrain), (label_of_control, group.control), *more = retrained.items()
        names = f"{label} is called retrain, {label_of_control} retrain_control"
        group.notes.append(f"Models were retrained by {'several' if more else 'two'} recipes: {names}.")
        group.methods |= {f"retrain_{label}": models for label, models in more}
    elif (half := len(group.retrain) // 2) >= 2:
        group.retrain, group.control = group.retrain[:-half], group.retrain[-half:]
        for model in group.control:
            model.decided = model.decided or "half of the retrained models"
    # Before unlearning, a model may be called by words that the group lacks; here they belong to its recipe.
    recipes = {run: (*(word for word in run.words if word not in group.words), *run.recipe) for run in group.none}
    before = _by_recipe(recipes)
    reference: tuple[str, ...] = next((model.recipe for model in group.retrain), ())
    if before:
        same_recipe = [label for label, (first, *_) in before.items() if recipes[first] == reference]
        kept, *_ = [*same_recipe, *before]
        group.none = before.pop(kept)
        group.methods |= {f"none_{label}": models for label, models in before.items()}


def _by_recipe(recipes: dict[Model, tuple[str, ...]]) -> dict[str, list[Model]]:
    """Return label of a recipe → the models with this recipe, in natural order of the recipes. ``recipes``: model → its
    recipe, which is a tuple of settings.

    The label lists the settings that not all recipes have; it is "no setting" if the recipe has no such setting.
    """
    distinct = sorted(set(recipes.values()), key=lambda recipe: _natural(" ".join(recipe)))
    by_label: dict[str, list[Model]] = {}
    for recipe in distinct:
        label = " ".join(word for word in recipe if not all(word in other for other in distinct)) or "no setting"
        by_label.setdefault(label, []).extend(model for model, own in recipes.items() if own == recipe)
    return by_label


def _set_names(groups: list[Group]) -> None:
    """Set the name of every group: words that tell its models from those of other groups, and the task (what is to be
    forgotten, as files call it) or, without a task, the number of samples. Equal names get a number.

    The task is taken from a model of the group with exactly the group's samples. If no such model has a task, it is
    taken from any model of the group, unless another group has the same words. Groups of one forget set get a note on
    the words by which they differ, unless one of these words tells a size.
    """
    common = _common_words(groups) if len(groups) > 1 else frozenset()
    for group in groups:
        # In the order of the first model; others may have the words in another order.
        words = [word for word in group.models[0].words if word in group.words and word not in common]
        with_task = [model for model in group.models if model.task]
        tasks = [model.task for model in with_task if must_share(model) == group.samples]
        if not tasks and sum(other.words == group.words for other in groups) == 1:
            tasks = [model.task for model in with_task]
        group.name = slug("_".join([*words, next(iter(tasks), f"{len(group.samples)}_samples")]))
        differing = [word for peer in groups if peer.samples == group.samples for word in group.words ^ peer.words]
        if differing and not any(map(_words.is_sized, differing)):
            why = f"because their names differ: {', '.join(differing)}."
            advice = "If they are more models of one kind, give them one scenario with --roles."
            group.notes.append(f"Models of one forget set are separate scenarios, {why} {advice}")
    names = [group.name for group in groups]
    for number, group in enumerate(groups):
        if names.count(group.name) > 1:
            group.name = f"{group.name[:36]}_{number + 1}"  # shortened, so that `LONGEST` leaves room for the number


def _natural(text: str) -> list[tuple[int, float | str]]:
    """Return a sorting key by which numbers inside texts are ordered by value: lr2 comes before lr10."""
    pieces = filter(None, re.split(r"(\d+(?:[.]\d+)?)", text))  # numbers, and the texts between them
    # Numbers come before texts, with which Python could not compare them.
    return [(0, float(piece)) if re.fullmatch(r"\d+([.]\d+)?", piece) else (1, piece) for piece in pieces]
