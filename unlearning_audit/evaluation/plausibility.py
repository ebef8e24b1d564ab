"""Whether logits from elsewhere can be what their folders say: mistakes that would otherwise become wrong numbers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from unlearning_audit.evaluation import likeness, mistakes
from unlearning_audit.evaluation.cohort import Group
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.external import RETRAINED

#: Populations of which no two may share a model, whatever method is audited; original and target may, if nothing was
#: done to the former.
APART = (("target", "shadow"), ("target", "retrain"), ("target", "retrain_control"), ("retrain", "retrain_control"),
         ("original", "shadow_original"), ("original", "retrain"), ("shadow", "retrain"))  # fmt: skip

#: Columns or signs are said to be wrong where this share of answers is right in the order that fits best, and so many
#: times as many as in the order that is given.
RIGHT, TIMES = 0.5, 2.0

#: Accuracies within so many standard errors of chance are chance.
ERRORS = 4.0

#: What a population holds, for who has mistaken it.
CONTENTS = {
    "shadow": "shadow models are others, which the adversary trained and unlearned itself",
    "retrain": "retrained models are others, which never saw the forget set",
    "retrain_control": "the control is retrained independently",
    "shadow_original": "shadow models are others, which the adversary trained itself",
}


def refusal(case: Evaluation) -> str:
    """Why the logits of a case cannot be what they are said to be, in one sentence; "" if nothing speaks against it."""
    whole = populations(case)
    for identical, sentence in _shared(case, whole):
        if identical:
            return sentence
    orders = {name: _order(population) for name, population in whole.items()}
    shared = orders["target"]
    sure = len(whole) > 1 or title(case, "target") in RETRAINED or not shared or not _fits_worse(case.audited, shared)
    if sure and all(order == shared != [] for order in orders.values()):
        return _misnumbered(shared, "", f"numpy.array({shared})[labels] as the labels, if all populations say so")
    for name, population in whole.items():
        if orders[name] and not _fits_worse(population, orders[name]):
            return _misnumbered(orders[name], f" of {title(case, name)}", f"logits[..., {orders[name]}]")
        if _negated(population):
            return (
                f"the logits of {title(case, name)} have the wrong sign: most labels have the smallest one, not the "
                "largest; give -logits, if these are losses"
            )
    return _mixture(case)[0]


def doubts(case: Evaluation) -> Iterator[str]:
    """What is hard to believe of a case, though it could be so; one sentence each."""
    whole = populations(case)
    if doubt := _mixture(case)[1]:
        yield doubt
    before = _before(case)
    if before and (exchanged := mistakes.exchanged(case, before)):
        yield exchanged
    yield from (sentence for _, sentence in _shared(case, whole))
    for short, population in whole.items():
        name = title(case, short)
        if twins := list(likeness.twins(population.sample_logits)):
            i, j = twins[0]
            yield (
                f"{name} holds models twice (model {j} is model {i}, or nearly; {len(twins)} such pairs in all); "
                "verdicts count a copy once, but other intervals are too narrow by them: leave them out of all arrays"
            )
        lost = _at_chance(population)
        if lost.all() and not (_order(population) or _negated(population)):
            yield (
                f"{name} answers its retained samples as chance does: either they are in another order than labels, or "
                "train and forget mark the wrong ones, or these models are broken"
            )
        elif lost.any() and not lost.all():
            yield (
                f"{name} holds models that answer their retained samples as chance does, and others that do not (model "
                f"{int(lost.argmax())} is the first): are their samples in another order, or their columns?"
            )


def populations(case: Evaluation) -> dict[str, Group]:
    """All populations by name, the audited models as "target"; one that plays two parts comes once."""
    by_name, files = {"target": case.audited}, [case.unlearned_files]
    for name, population in case.others.items():
        if population.files not in files:
            by_name[name] = population
            files.append(population.files)
    return by_name


def title(case: Evaluation, name: str) -> str:
    """The folder of a population as its user knows it: that of the audited models may be another one's."""
    node = Path((case if name == "target" else case.others[name].cohort).data_file).parent.name
    label = node.rsplit("-", 1)[0].removeprefix("external-") if node.startswith("external-") else name
    return label.replace("-", "/")


def _shared(case: Evaluation, whole: dict[str, Group]) -> Iterator[tuple[bool, str]]:
    """Populations that hold models of another one: whether the two nearest are identical, and a sentence."""
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
                f"{title(case, second)} holds {count} models that are {nearly}models of {title(case, first)} "
                f"(model {j} is {nearly}model {i} of the latter); {CONTENTS[second]}"
            )
            yield nearest == 0, sentence


def _before(case: Evaluation) -> Group | None:
    """The audited models before unlearning, where these are known."""
    before = case.group("original")
    return None if case.unlike("original", before) or before.files == case.unlearned_files else before


def _mixture(case: Evaluation) -> tuple[str, str]:
    """`mistakes.mixture` of the audited models, where the same models before unlearning are known."""
    before = _before(case)
    return mistakes.mixture(case, before, case.audited) if before else ("", "")


def _misnumbered(order: list[int], whose: str, remedy: str) -> str:
    moved = [f"class {label} by column {column}" for label, column in enumerate(order) if label != column]
    more = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
    return (
        f"labels numbers the classes otherwise than the columns of the logits{whose}: {', '.join(moved[:3])}{more}; "
        f"give {remedy}"
    )


def _order(population: Group) -> list[int]:
    """The column that answers each class, if another fits the retained samples far better than the order
    given; else nothing."""
    counts = _answers(population, population.answers.predicted(), _retained(population))
    if np.count_nonzero(counts.sum(axis=1)) <= 2:  # a method may turn the answers of a model round, where there are two
        return []
    _, best = linear_sum_assignment(_rates(counts), maximize=True)
    return best.tolist() if _fits(counts, best) else []


def _negated(population: Group) -> bool:
    """Whether labels have the smallest logit far more often than the largest, of all samples and on average over
    classes; of two classes nobody can say."""
    most, least = (
        _answers(population, of(population.logits(), axis=-1), _retained(population)) for of in (np.argmax, np.argmin)
    )
    if np.count_nonzero(most.sum(axis=1)) <= 2:
        return False
    shares = [[np.trace(of) / of.sum() for of in pair] for pair in ((most, least), (_rates(most), _rates(least)))]
    return all(low > RIGHT and low > TIMES * given for given, low in shares)


def _fits(counts: np.ndarray, best: np.ndarray) -> bool:
    """Whether the order ``best`` fits all samples, and on average over classes, far better than the order given: an
    answer that is the same for all fits one class, however frequent that is."""
    for table in (counts, _rates(counts)):
        at_best, given = table[np.arange(len(best)), best].sum() / table.sum(), np.trace(table) / table.sum()
        if not (at_best > RIGHT and at_best > TIMES * given):
            return False
    return True


def _fits_worse(population: Group, best: list[int]) -> bool:
    """Whether the order ``best`` fits what is to be forgotten worse than the order given: columns are in one order for
    all samples, but a method may turn the answers to some."""
    counts = _answers(population, population.answers.predicted(), population.membership.forget)
    in_order: np.ndarray = counts[np.arange(len(best)), best]
    return bool(np.trace(counts) > in_order.sum())


def _answers(population: Group, answers: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """How often each label got each of ``answers`` int [models, samples] among ``rows``: int64 [classes, classes]."""
    counts = np.zeros([population.answers.classes] * 2, np.int64)
    np.add.at(counts, (np.broadcast_to(population.labels, rows.shape)[rows], answers[rows]), 1)
    return counts


def _rates(counts: np.ndarray) -> np.ndarray:
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def _retained(population: Group) -> np.ndarray:
    """Retained samples, or, where none is known, all that are not to be forgotten: bool [models, samples]."""
    member = population.membership
    return member.retain if member.retain.any() else ~member.forget


def _at_chance(population: Group) -> np.ndarray:
    """Models that answer the samples that they keep no better than by the most frequent label, bool [models]: all of
    them, or some beside others that answer far better. Where no sample is known to be kept, none that was held out
    counts; where there is one label, nothing is asked."""
    member, labels = population.membership, population.labels
    rows = member.retain if member.retain.any() else ~(member.forget | member.heldout)
    kept, nobody = np.broadcast_to(labels, rows.shape)[rows], np.zeros(len(rows), bool)
    if not kept.size or not np.ptp(labels):
        return nobody
    chance, counts = np.bincount(kept).max() / len(kept), np.maximum(rows.sum(axis=1), 1)
    right = ((population.answers.predicted() == labels) & rows).sum(axis=1)
    if right.sum() / counts.sum() <= _above(chance, counts.sum()):
        return ~nobody
    shares = right / counts
    lost = shares <= _above(chance, counts)
    return lost if lost.any() and shares[~lost].mean() > max(RIGHT, TIMES * shares[lost].max()) else nobody


def _above(chance: float, samples: np.ndarray | int) -> np.ndarray | float:
    """The largest accuracy on so many samples that is no more than chance."""
    limit: np.ndarray | float = chance + ERRORS * np.sqrt(chance * (1 - chance) / samples)
    return limit
