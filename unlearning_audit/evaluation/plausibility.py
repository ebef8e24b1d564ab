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

#: Columns or signs of logits are wrong if another order, or the other sign, gives the label for more than the share
#: RIGHT of samples, and for more than TIMES as many as the given one.
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


def refusal_and_doubts(evaluation: Evaluation) -> tuple[str, list[str]]:
    """Return why the logits of imported models are impossible, in one sentence ("" if they are possible), and sentences
    about what is implausible but possible, some of them "".

    Logits are refused if two groups hold identical models, if columns are in another order than labels, if the sign is
    wrong, or if a method mixed models.
    """
    groups = populations(evaluation)
    mixed, doubts = mistakes.refusal_and_doubts(evaluation)
    wrong = {name: _wrong_columns(group) for name, group in groups.items()}
    sentence = next(filter(None, wrong.values()), "")
    # The sentence of `_wrong_columns` leaves a place for the names of all groups that it is about.
    names = ", ".join(title(evaluation, name) for name, of_group in wrong.items() if of_group == sentence)
    for name, group in groups.items():
        doubts += _doubts(title(evaluation, name), group, columns_right=not wrong[name])
    identical, nearly = _shared(evaluation, groups)
    refused = next(filter(None, (*identical, sentence.format(names=names), mixed)), "")
    return refused, doubts + nearly


def _wrong_columns(population: Group) -> str:
    """Return a sentence if the columns of a population's logits are in another order than the labels, or if the sign of
    the logits is wrong; else "". The sentence contains "{names}", which the caller replaces by the names of
    populations.

    The order is wrong if another order predicts the labels of retained samples (of all but forgotten ones, if none is
    known to be retained) far more often, both over these samples and on average over classes. The sign is wrong if the
    class of the smallest logit is the label far more often than the class of the largest. The average over classes is
    needed because a constant prediction fits one class, however frequent this is. Logits with two labels are not
    judged, because a method may invert the predictions.
    """
    retained = population.membership.retain
    rows = retained if retained.any() else ~population.membership.forget
    by_largest = _counts(population, population.logits().argmax(axis=-1), rows)
    by_smallest = _counts(population, population.logits().argmin(axis=-1), rows)
    if np.count_nonzero(by_largest.sum(axis=1)) <= 2:  # no more than two labels occur
        return ""
    given = np.arange(len(by_largest))  # the column of each label, if the order is right
    _, best = linear_sum_assignment(_rates(by_largest), maximize=True)  # the column that fits each label best
    if _far_better(by_largest, best, than=by_largest):
        moved = [f"class {label} by column {column}" for label, column in enumerate(best) if label != column]
        more = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
        return (
            f"labels numbers the classes otherwise than the columns of the logits of {{names}}: {', '.join(moved[:3])}"
            f"{more}; give logits[..., {best.tolist()}]"
        )
    if _far_better(by_smallest, given, than=by_largest):
        return (
            "the logits of {names} have the wrong sign: most labels have the smallest one, not the largest; give "
            "-logits, if these are losses"
        )
    return ""


def _far_better(counts: np.ndarray, order: np.ndarray, *, than: np.ndarray) -> bool:
    """Return whether the predictions counted in ``counts`` are right far more often than those counted in ``than``.

    Far more often: for more than the share `RIGHT`, and `TIMES` as often, over all samples and on average over classes.

    Parameters
    ----------
    counts
        [label, column]: how often samples of a label were predicted as a column. The column ``order[label]`` is right.
    order
        int [labels]: the right column of each label in ``counts``.
    than
        [label, column]: how often samples of a label got a column in other predictions, where column c is right for
        label c.
    """
    return all(
        table[np.arange(len(order)), order].sum() / table.sum() > max(RIGHT, TIMES * np.trace(other) / other.sum())
        for table, other in ((counts, than), (_rates(counts), _rates(than)))
    )


def _doubts(name: str, population: Group, *, columns_right: bool) -> Iterator[str]:
    """Yield sentences on what is implausible about one population: it holds models twice, or its predictions are no
    better than chance.

    Parameters
    ----------
    name
        What the sentences call the population.
    population
        The models.
    columns_right
        Whether the order of columns and the sign are right, without which predictions tell nothing.
    """
    if twins := list(likeness.twins(population.sample_logits)):
        i, j = twins[0]  # the first pair is named as an example
        yield (
            f"{name} holds models twice (model {j} is model {i}, or nearly; {len(twins)} such pairs in all); "
            "verdicts count a copy once, but other intervals are too narrow by them: leave them out of all arrays"
        )
    if columns_right and _at_chance(population):
        yield (
            f"{name} answers its retained samples as chance does: either they are in another order than labels, or "
            "train and forget mark the wrong ones, or these models are broken"
        )


def populations(evaluation: Evaluation) -> dict[str, Group]:
    """Return all populations by name, the audited models as "target". A population that has two names occurs under the
    first only."""
    by_name = {"target": evaluation.audited}
    for name, population in evaluation.others.items():
        if population.files not in [known.files for known in by_name.values()]:
            by_name[name] = population
    return by_name


def title(evaluation: Evaluation, name: str) -> str:
    """Return the folder of a population as its user knows it, such as "npo/target" or "retrain". The audited models may
    be in the folder of another population."""
    # The folder of the data is called external-npo-target-<key>, after the user's folder.
    cohort = evaluation if name == "target" else evaluation.others[name].cohort
    node = Path(cohort.data_file).parent.name
    folder = node.rsplit("-", 1)[0].removeprefix("external-") if node.startswith("external-") else name
    return folder.replace("-", "/")


def _shared(evaluation: Evaluation, groups: dict[str, Group]) -> tuple[list[str], list[str]]:
    """Return two lists of sentences about the pairs of groups in `APART`, which must not share models: one sentence for
    each pair that shares an identical model, and one for each pair that shares only nearly identical models, whose
    distance (`likeness.distances`) is below `likeness.ALIKE`.

    A pair is skipped if one of its groups is missing, or if their samples or classes differ. ``groups``: name → models.
    """
    identical: list[str] = []
    nearly: list[str] = []
    for first, second in APART:
        if not {first, second} <= groups.keys():
            continue
        left, right = groups[first].sample_logits, groups[second].sample_logits
        # Groups of other samples or classes cannot be compared: an infinite distance leaves them out.
        distances = likeness.distances(right, left) if left.shape[1:] == right.shape[1:] else np.full((1, 1), np.inf)
        j, i = np.unravel_index(distances.argmin(), distances.shape)  # the two models that are most alike
        if distances[j, i] < likeness.ALIKE:
            count = int((distances < likeness.ALIKE).any(axis=1).sum())
            sentences, word = (nearly, "nearly ") if distances[j, i] else (identical, "")
            sentences.append(
                f"{title(evaluation, second)} holds {count} models that are {word}models of "
                f"{title(evaluation, first)} (model {j} is {word}model {i} of the latter); {CONTENTS[second]}"
            )
    return identical, nearly


def _counts(population: Group, predicted: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Count how often samples of each label got each of the ``predicted`` classes, int [models, samples], among
    ``rows`` bool [models, samples]: int64 [label, predicted class]."""
    counts = np.zeros([population.outputs.classes] * 2, np.int64)
    np.add.at(counts, (np.broadcast_to(population.labels, rows.shape)[rows], predicted[rows]), 1)
    return counts


def _rates(counts: np.ndarray) -> np.ndarray:
    """Divide ``counts`` [label, predicted class] by the sum of each label, so that all labels have the same weight."""
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def _at_chance(population: Group) -> bool:
    """Return whether the models together predict retained samples no better than the most frequent label does, except
    for `ERRORS` standard errors.

    If no retained sample is known, all samples count that are neither forgotten nor held out. Without any sample, or
    with a single label, the answer is False.
    """
    member, labels = population.membership, population.labels
    rows = member.retain if member.retain.any() else ~(member.forget | member.heldout)
    true = np.broadcast_to(labels, rows.shape)[rows]
    if not true.size or not np.ptp(labels):
        return False
    chance = np.bincount(true).max() / len(true)
    right = (population.outputs.predicted()[rows] == true).mean()
    return bool(right <= chance + ERRORS * np.sqrt(chance * (1 - chance) / len(true)))
