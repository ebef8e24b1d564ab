"""Check whether imported logits can be what their folders say, to find mistakes that would become wrong numbers."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from unlearning_audit.evaluation import likeness, mistakes
from unlearning_audit.evaluation.cohort import Group
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.external import RETRAINED

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
    shared = list(_shared(evaluation, whole))
    identical = next((sentence for same, sentence in shared if same), "")
    doubts = [doubt, mistakes.exchanged(evaluation, before) if before else "", *(sentence for _, sentence in shared)]
    orders = {name: _order(population) for name, population in whole.items()}
    negated = [name for name, population in whole.items() if _negated(population)]
    for name, population in whole.items():
        doubts += _doubts(title(evaluation, name), population, known=not orders[name] and name not in negated)
    refused = identical or _disordered(evaluation, whole, orders, negated) or mixed
    return refused, list(filter(None, doubts))


def _disordered(
    evaluation: Evaluation, whole: dict[str, Group], orders: dict[str, list[int]], negated: Sequence[str]
) -> str:
    """Return a sentence on the first of the populations ``whole`` whose columns have another order, as in ``orders``,
    or whose sign is wrong, as in ``negated``; "" if there is none."""
    shared = orders["target"]
    sure = (
        len(whole) > 1
        or title(evaluation, "target") in RETRAINED
        or not shared
        or not _fits_worse(evaluation.audited, shared)
    )
    if sure and all(order == shared != [] for order in orders.values()):
        return _misnumbered(shared, "", f"numpy.array({shared})[labels] as the labels, if all populations say so")
    for name, population in whole.items():
        if orders[name] and not _fits_worse(population, orders[name]):
            return _misnumbered(orders[name], f" of {title(evaluation, name)}", f"logits[..., {orders[name]}]")
        if name in negated:
            return (
                f"the logits of {title(evaluation, name)} have the wrong sign: most labels have the smallest one, not "
                "the largest; give -logits, if these are losses"
            )
    return ""


def _doubts(name: str, population: Group, *, known: bool) -> Iterator[str]:
    """Yield doubts about one population, called ``name``; ``known``: whether its columns and sign are right."""
    if twins := list(likeness.twins(population.sample_logits)):
        i, j = twins[0]
        yield (
            f"{name} holds models twice (model {j} is model {i}, or nearly; {len(twins)} such pairs in all); "
            "verdicts count a copy once, but other intervals are too narrow by them: leave them out of all arrays"
        )
    lost = _at_chance(population)
    if lost.all() and known:
        yield (
            f"{name} answers its retained samples as chance does: either they are in another order than labels, or "
            "train and forget mark the wrong ones, or these models are broken"
        )
    elif lost.any() and not lost.all():
        yield (
            f"{name} holds models that answer their retained samples as chance does, and others that do not (model "
            f"{int(lost.argmax())} is the first): are their samples in another order, or their columns?"
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


def _shared(evaluation: Evaluation, whole: dict[str, Group]) -> Iterator[tuple[bool, str]]:
    """Yield a sentence for each two groups of models in `APART` that share models, which they must not.

    The sentence comes with whether the nearest two models are identical; True, or False if they are nearly so.
    ``whole``: name of a group → its models. Groups with different samples or classes are skipped.
    """
    for first, second in APART:
        if first not in whole or second not in whole:
            continue
        left, right = (whole[name].sample_logits for name in (first, second))
        if left.shape[1:] != right.shape[1:]:
            continue
        apart = likeness.apart(right, left)
        j, i = np.unravel_index(apart.argmin(), apart.shape)
        if (nearest := apart[j, i]) < likeness.ALIKE:
            count, nearly = int((apart < likeness.ALIKE).any(axis=1).sum()), "" if nearest == 0 else "nearly "
            sentence = (
                f"{title(evaluation, second)} holds {count} models that are {nearly}models of "
                f"{title(evaluation, first)} (model {j} is {nearly}model {i} of the latter); {CONTENTS[second]}"
            )
            yield nearest == 0, sentence


def _before(evaluation: Evaluation) -> Group | None:
    """Return the audited models before unlearning, or None if they are unknown."""
    before = evaluation.group("original")
    unlike = before is None or evaluation.unlike("original", before) or before.files == evaluation.unlearned_files
    return None if unlike else before


def _misnumbered(order: list[int], whose: str, remedy: str) -> str:
    """Return a sentence that says that the columns of logits are in another order than labels.

    ``order``: the column of each class; ``whose``: a phrase that says which logits, or ""; ``remedy``: what to give.
    """
    moved = [f"class {label} by column {column}" for label, column in enumerate(order) if label != column]
    more = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
    return (
        f"labels numbers the classes otherwise than the columns of the logits{whose}: {', '.join(moved[:3])}{more}; "
        f"give {remedy}"
    )


def _order(population: Group) -> list[int]:
    """Return the column of each class, if another order fits the retained samples far better than the given one; else
    [].

    It is also [] for at most two classes, whose predictions a method may invert.
    """
    counts = _answers(population, population.outputs.predicted(), _retained(population))
    if np.count_nonzero(counts.sum(axis=1)) <= 2:  # a method may invert the predictions of two classes
        return []
    _, best = linear_sum_assignment(_rates(counts), maximize=True)
    return best.tolist() if _fits(counts, best) else []


def _negated(population: Group) -> bool:
    """Return whether the label has the smallest logit far more often than the largest, over all samples and on average
    over classes. False for two classes, where this cannot be decided."""
    most, least = (
        _answers(population, of(population.logits(), axis=-1), _retained(population)) for of in (np.argmax, np.argmin)
    )
    if np.count_nonzero(most.sum(axis=1)) <= 2:
        return False
    shares = [[np.trace(of) / of.sum() for of in pair] for pair in ((most, least), (_rates(most), _rates(least)))]
    return all(low > RIGHT and low > TIMES * given for given, low in shares)


def _fits(counts: np.ndarray, best: np.ndarray) -> bool:
    """Return whether the order ``best`` fits far better than the given order, both over all samples and on average over
    classes. Both are required because a constant prediction fits one class, however frequent this is."""
    tables = [table / table.sum() for table in (counts, _rates(counts))]
    return all(table[np.arange(len(best)), best].sum() > max(RIGHT, TIMES * np.trace(table)) for table in tables)


def _fits_worse(population: Group, best: list[int]) -> bool:
    """Return whether the order ``best`` fits the forgotten samples worse than the given order. Then the columns are
    right and the method changed its answers, since columns have one order for all samples."""
    counts = _answers(population, population.outputs.predicted(), population.membership.forget)
    return bool(np.trace(counts) > counts[np.arange(len(best)), best].sum())


def _answers(population: Group, answers: np.ndarray, rows: np.ndarray) -> np.ndarray:
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


def _at_chance(population: Group) -> np.ndarray:
    """Return which models predict retained samples no better than the most frequent label does, bool [models].

    Either all models do together, or some do beside others that predict far better. If no retained sample is known, all
    samples count that are neither forgotten nor held out. With a single label, no model counts.
    """
    member, labels = population.membership, population.labels
    rows = member.retain if member.retain.any() else ~(member.forget | member.heldout)
    kept, nobody = np.broadcast_to(labels, rows.shape)[rows], np.zeros(len(rows), bool)
    if not kept.size or not np.ptp(labels):
        return nobody
    chance, counts = np.bincount(kept).max() / len(kept), np.maximum(rows.sum(axis=1), 1)
    right = ((population.outputs.predicted() == labels) & rows).sum(axis=1)
    if right.sum() / counts.sum() <= _above(chance, counts.sum()):
        return ~nobody
    shares = right / counts
    lost = shares <= _above(chance, counts)
    return lost if lost.any() and shares[~lost].mean() > max(RIGHT, TIMES * shares[lost].max()) else nobody


def _above(chance: float, samples: np.ndarray | int) -> Any:
    """Return the largest accuracy on ``samples`` samples that is still compatible with chance."""
    return chance + ERRORS * np.sqrt(chance * (1 - chance) / samples)
