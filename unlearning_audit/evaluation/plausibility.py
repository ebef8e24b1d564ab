"""Check whether imported logits can be what their folders say, to find mistakes that would become wrong numbers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from unlearning_audit.evaluation import likeness, mistakes
from unlearning_audit.evaluation.cohort import Group
from unlearning_audit.evaluation.evaluation import Evaluation

#: Pairs of populations that must not share a model, whatever method is audited. The originals may be the audited models
#: if nothing was done to them.
APART = (("target", "shadow"), ("target", "retrain"), ("target", "retrain_control"), ("retrain", "retrain_control"),
         ("original", "shadow_original"), ("original", "retrain"), ("shadow", "retrain"))  # fmt: skip

#: Columns or signs count as wrong if the best order is right for more than the share RIGHT of samples, and for more
#: than TIMES as many as the given order.
RIGHT, TIMES = 0.5, 2.0

#: Accuracies within this number of standard errors of chance count as chance.
ERRORS = 4.0

#: What a population must contain, as advice to a user who gave another.
CONTENTS = {
    "shadow": "shadow models are others, which the adversary trained and unlearned itself",
    "retrain": "retrained models are others, which never saw the forget set",
    "retrain_control": "the control is retrained independently",
    "shadow_original": "shadow models are others, which the adversary trained itself",
}


def judged(evaluation: Evaluation) -> tuple[str, list[str]]:
    """Return why the logits of imported models are impossible, in one sentence ("" if nothing contradicts them), and
    sentences about what is implausible but possible.

    They are refused if two groups hold identical models, if columns are in another order than labels, if the sign is
    wrong, or if a method mixed models.
    """
    whole, before = populations(evaluation), _before(evaluation)
    mixed, doubt = mistakes.mixture(evaluation, before, evaluation.audited) if before else ("", "")
    wrong = {name: _wrong_columns(population) for name, population in whole.items()}
    told = next(filter(None, wrong.values()), "")
    names = ", ".join(title(evaluation, name) for name, own in wrong.items() if own and own == told)
    doubts = [doubt, mistakes.exchanged(evaluation, before) if before else ""]
    for name, population in whole.items():
        doubts += _doubts(title(evaluation, name), population, known=not wrong[name])
    identical, nearly = _shared(evaluation, whole)
    return next(filter(None, (*identical, told.format(names=names), mixed)), ""), list(filter(None, doubts + nearly))


def _wrong_columns(population: Group) -> str:
    """Return a sentence on the logits of {names} if their columns are in another order than the labels, or if their
    sign is wrong; else "".

    Either is so if, on the retained samples, another order, or the smallest logit instead of the largest, gives the
    label far more often, both over all samples and on average over classes. A constant prediction fits one class,
    however frequent this is. With two labels nothing is told: a method may invert the predictions.
    """
    rows = _retained(population)
    most, least = (_counts(population, of(population.logits(), axis=-1), rows) for of in (np.argmax, np.argmin))
    if np.count_nonzero(most.sum(axis=1)) <= 2:
        return ""
    given = np.arange(len(most))
    _, best = linear_sum_assignment(_rates(most), maximize=True)
    if _far_better(most, best, than=most):
        moved = [f"class {label} by column {column}" for label, column in enumerate(best) if label != column]
        more = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
        return (
            f"labels numbers the classes otherwise than the columns of the logits of {{names}}: {', '.join(moved[:3])}"
            f"{more}; give logits[..., {best.tolist()}]"
        )
    if _far_better(least, given, than=most):
        return (
            "the logits of {names} have the wrong sign: most labels have the smallest one, not the largest; give "
            "-logits, if these are losses"
        )
    return ""


def _far_better(counts: np.ndarray, order: np.ndarray, *, than: np.ndarray) -> bool:
    """Return whether the ``counts`` with columns in ``order`` are right far more often than those given, ``than``."""
    return all(
        table[np.arange(len(order)), order].sum() / table.sum() > max(RIGHT, TIMES * np.trace(given) / given.sum())
        for table, given in ((counts, than), (_rates(counts), _rates(than)))
    )


def _doubts(name: str, population: Group, *, known: bool) -> Iterator[str]:
    """Yield doubts about one population, called ``name``; ``known``: whether its columns and sign are right."""
    if twins := list(likeness.twins(population.sample_logits)):
        i, j = twins[0]
        yield (
            f"{name} holds models twice (model {j} is model {i}, or nearly; {len(twins)} such pairs in all); "
            "verdicts count a copy once, but other intervals are too narrow by them: leave them out of all arrays"
        )
    if known and _at_chance(population):
        yield (
            f"{name} answers its retained samples as chance does: either they are in another order than labels, or "
            "train and forget mark the wrong ones, or these models are broken"
        )


def populations(evaluation: Evaluation) -> dict[str, Group]:
    """Return all populations by name, the audited models as "target". A population that plays two parts occurs once."""
    by_name, files = {"target": evaluation.audited}, [evaluation.unlearned_files]
    for name, population in evaluation.others.items():
        if population.files not in files:
            by_name[name] = population
            files.append(population.files)
    return by_name


def title(evaluation: Evaluation, name: str) -> str:
    """Return the folder of a population as its user knows it. The audited models may be in the folder of another
    population."""
    node = Path((evaluation if name == "target" else evaluation.others[name].cohort).data_file).parent.name
    label = node.rsplit("-", 1)[0].removeprefix("external-") if node.startswith("external-") else name
    return label.replace("-", "/")


def _shared(evaluation: Evaluation, whole: dict[str, Group]) -> tuple[list[str], list[str]]:
    """Return sentences on groups of models in `APART` that share identical models, which they must not, and on those
    that share nearly identical ones.

    ``whole``: name of a group → its models. Groups with different samples or classes are skipped.
    """
    sentences: tuple[list[str], list[str]] = [], []
    for first, second in ((first, second) for first, second in APART if {first, second} <= whole.keys()):
        left, right = (whole[name].sample_logits for name in (first, second))
        if left.shape[1:] != right.shape[1:]:
            continue
        apart = likeness.apart(right, left)
        j, i = np.unravel_index(apart.argmin(), apart.shape)
        if apart[j, i] < likeness.ALIKE:
            count, nearly = int((apart < likeness.ALIKE).any(axis=1).sum()), "nearly " if apart[j, i] else ""
            sentences[bool(nearly)].append(
                f"{title(evaluation, second)} holds {count} models that are {nearly}models of "
                f"{title(evaluation, first)} (model {j} is {nearly}model {i} of the latter); {CONTENTS[second]}"
            )
    return sentences


def _before(evaluation: Evaluation) -> Group | None:
    """Return the audited models before unlearning, or None if they are unknown."""
    before = evaluation.group("original")
    unlike = before is None or evaluation.unlike("original", before) or before.files == evaluation.unlearned_files
    return None if unlike else before


def _counts(population: Group, answers: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Count how often each label got each of ``answers`` int [models, samples] among ``rows``: int64 [classes,
    classes]."""
    counts = np.zeros([population.outputs.classes] * 2, np.int64)
    np.add.at(counts, (np.broadcast_to(population.labels, rows.shape)[rows], answers[rows]), 1)
    return counts


def _rates(counts: np.ndarray) -> np.ndarray:
    """Divide the counts of each label by their sum."""
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def _retained(population: Group) -> np.ndarray:
    """Return the retained samples, bool [models, samples]; if none is known, all samples that are not to be
    forgotten."""
    member = population.membership
    return member.retain if member.retain.any() else ~member.forget


def _at_chance(population: Group) -> bool:
    """Return whether the models together predict retained samples no better than the most frequent label does.

    If no retained sample is known, all samples count that are neither forgotten nor held out. With a single label, the
    answer is False.
    """
    member, labels = population.membership, population.labels
    rows = member.retain if member.retain.any() else ~(member.forget | member.heldout)
    kept = np.broadcast_to(labels, rows.shape)[rows]
    if not kept.size or not np.ptp(labels):
        return False
    chance = np.bincount(kept).max() / len(kept)
    right = (population.outputs.predicted()[rows] == kept).mean()
    return bool(right <= chance + ERRORS * np.sqrt(chance * (1 - chance) / len(kept)))
