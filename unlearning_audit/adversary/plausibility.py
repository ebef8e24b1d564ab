"""Whether logits from elsewhere can be what their folders say: mistakes that would otherwise become wrong numbers."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.special
from scipy.optimize import linear_sum_assignment

from unlearning_audit.adversary import likeness
from unlearning_audit.adversary.case import Case
from unlearning_audit.adversary.external_case import ExternalCase
from unlearning_audit.artifacts import no_logits
from unlearning_audit.artifacts.external import RETRAINED

#: Populations of which no two may share a model, whatever method is audited; original and target may, if nothing was
#: done to the former.
APART = (("target", "shadow"), ("target", "retrain"), ("target", "retrain_control"), ("retrain", "retrain_control"),
         ("original", "shadow_original"), ("original", "retrain"), ("shadow", "retrain"))  # fmt: skip

#: Forget and retained samples are said to be exchanged where the retained ones lose so much more of the label's
#: probability (and a half of it themselves), those to be forgotten lose no more than this share of that, and are known
#: better in the end. A method that ruins all that a model knows is not asked.
LOST, SHARE = 0.1, 0.1

#: Samples of each side by which that is judged, at most.
JUDGED = 2000

#: Columns are said to be in another order where this share of answers is right in the order that fits best, and so
#: many times as many as in the order that is given.
RIGHT, TIMES = 0.5, 2.0

#: Samples for each class by which one model alone is judged.
SINGLE = 20

#: Differences of accuracies beyond so many standard errors, and of at least so much, are no chance.
ERRORS, LEAST = 4.0, 0.02


def refusal(case: ExternalCase) -> str:
    """Why the logits of a case cannot be what they are said to be, in one sentence; "" if nothing speaks against it."""
    whole = populations(case)
    marks = {name: fingerprints(first.unlearned) for name, first in whole.items()}
    for first, second in APART:
        if first in marks and second in marks:
            shared = [(i, marks[second].index(mark)) for i, mark in enumerate(marks[first]) if mark in marks[second]]
            if shared:
                i, j = shared[0]
                return (
                    f"{title(case, second)} holds models of {title(case, first)}: the logits of {len(shared)} are "
                    f"identical (model {j} is model {i} of the latter); {CONTENTS[second]}"
                )
    if order := common_order(case, whole):
        return numbering(order)
    for name, population in whole.items():
        for model in (None, *range(len(population.unlearned))):
            if words := _wrong(population, title(case, name), model):
                return words
    return mixture_of(case)[0]


def common_order(case: ExternalCase, whole: dict[str, ExternalCase]) -> list[int]:
    """The column that answers each class, if that is not the class's own and the same for all populations, so that the
    labels may be at fault; else nothing. A method may turn round what is kept, retraining does not."""
    if len(whole) == 1 and title(case, "target") not in RETRAINED:
        return columns(case)
    orders: list[list[int]] = []
    for population in whole.values():
        orders.append(of_retained(population))
        if not orders[-1] or orders[-1] != orders[0]:
            return []
    return orders[0]


def numbering(order: list[int]) -> str:
    """What to do where ``order`` says which column answers each class of labels."""
    classes = len(order)
    shift = (order[0] + classes // 2) % classes - classes // 2
    if order == [(label + shift) % classes for label in range(classes)]:
        renumbered = f"(labels {'-' if shift < 0 else '+'} {abs(shift)}) % {classes}"
    else:
        renumbered = f"numpy.array({order})[labels]"
    swapped = [f"class {label} by column {column}" for label, column in enumerate(order) if label != column]
    more = f" and {len(swapped) - 3} more" if len(swapped) > 3 else ""
    return (
        f"labels numbers the classes otherwise than the columns of the logits: {', '.join(swapped[:3])}{more}; if "
        f"all populations say so, give {renumbered} as the labels, else logits[..., order] with the order of the labels"
    )


def _wrong(case: ExternalCase, name: str, model: int | None) -> str:
    """Why the logits of all models of the population ``name``, or of one, are in another order or of another sign than
    they are said to be; "" if they are not. One model alone is judged by many samples only."""
    of_model, too_few = ("", 0) if model is None else (f" of model {model}", SINGLE)
    if order := columns(case, model, too_few):
        swapped = ", ".join(f"{label} by column {column}" for label, column in enumerate(order) if label != column)
        return (
            f"the columns of the logits{of_model} of {name} are in another order than labels: class {swapped}; "
            "give logits[..., order] with the order of the labels"
        )
    if negated(case, model, too_few):
        return (
            f"the logits{of_model} of {name} have the wrong sign: most labels have the smallest one, not the largest; "
            "give -logits, if these are losses"
        )
    return ""


def _before(case: ExternalCase) -> ExternalCase | None:
    """The audited models before unlearning, where these are known."""
    before = case.populations.get("original")
    if before is None or case.files["original"] == case.files["target"] or case.unlike("original", before):
        return None
    return before


def _sides_of(case: ExternalCase) -> str:
    """`exchanged` of the audited models of a case."""
    before = _before(case)
    return exchanged(case, case.unlearned_files, before.unlearned_files, before) if before else ""


def mixture_of(case: ExternalCase) -> tuple[str, str]:
    """`mixture` of the audited models of a case, where the same models before unlearning are known."""
    before = _before(case)
    if before is None:
        return "", ""
    rows = likeness.evenly(np.arange(case.unlearned.shape[1]))
    return mixture(case, before.unlearned[:, rows], case.unlearned[:, rows])


def mixture(case: Case, before: np.ndarray, after: np.ndarray) -> tuple[str, str]:
    """Why the models of a case are not each unlearned by itself, in a sentence: a refusal, and a doubt; each is "" if
    there is none. ``before`` and ``after`` [models, samples, classes], answers of the same models to some samples.

    Two models that were others before, and were asked to forget other samples, answer alike only if a method mixed
    them. With equal samples to forget they might be drawn from one seed, which makes intervals too narrow.
    """
    doubt = ""
    for kind, i, j in likeness.mixed(before, after):
        if kind == "was":
            return f"model {i} answers as model {j} did before unlearning; {REQUIREMENT}", ""
        if not np.array_equal(case.membership.forget[i], case.membership.forget[j]):
            return f"models {i} and {j} answer alike after unlearning, and did not before; {REQUIREMENT}", ""
        doubt = doubt or (
            f"models {i} and {j} answer alike after unlearning, and did not before: were they mixed, or drawn from one "
            "seed? They count as models of their own and make intervals too narrow"
        )
    return "", doubt


def exchanged(case: Case, files: list[str], originals: list[str], of: Case | None = None) -> str:
    """A sentence about target models that lost what they were to keep and kept what they were to forget, else "".

    ``files`` and ``originals``: logits of the same models after and before unlearning; ``of``: the case that the latter
    belong to, if it is another one.
    """
    member = case.membership[case.target]
    forgotten, anything = np.flatnonzero(member.forget.any(0)), np.arange(member.forget.shape[1])
    rows = np.union1d(likeness.evenly(forgotten, JUDGED), likeness.evenly(anything, JUDGED))
    labels = case.labels_of(case.target)[..., rows]
    before, after = (
        scipy.special.expit(of_whom.answers(paths).phi(labels, case.target, rows))
        for of_whom, paths in ((of or case, originals), (case, files))
    )
    return sides_exchanged(before, after, member.forget[:, rows], member.retain[:, rows])


def sides_exchanged(before: np.ndarray, after: np.ndarray, forget: np.ndarray, retain: np.ndarray) -> str:
    """As `exchanged`, of the probability of the label ``before`` and ``after`` unlearning, and of which samples each
    model was to ``forget`` and to ``retain``, bool; all [models, samples]."""
    if not (forget.any() and retain.any()):
        return ""
    lost = before - after
    of_retained, of_forgotten = float(lost[retain].mean()), float(lost[forget].mean())
    preferred = after[forget].mean() > after[retain].mean()
    lost_more = of_retained >= LOST / 2 and of_retained - of_forgotten >= LOST
    if not (lost_more and of_forgotten <= SHARE * of_retained and preferred):
        return ""
    return (
        f"unlearning changed the probability of the label by {-of_retained:+.2f} on the retained samples and by "
        f"{-of_forgotten:+.2f} on the samples to be forgotten: were forget and retain exchanged?"
    )


#: What a method has to do, for one that mixes models.
REQUIREMENT = "a method must change every model by itself, and the first dimension of what it edits counts the models"


#: What a population holds, for who has mistaken it.
CONTENTS = {
    "shadow": "shadow models are others, which the adversary trained and unlearned itself",
    "retrain": "retrained models are others, which never saw the forget set",
    "retrain_control": "the control is retrained independently",
    "shadow_original": "shadow models are others, which the adversary trained itself",
}


def doubts(case: ExternalCase) -> Iterator[str]:
    """What is hard to believe of a case, though it could be so; one sentence each."""
    whole = populations(case)
    yield from filter(None, [mixture_of(case)[1]])
    yield from filter(None, [_sides_of(case)])
    yield from _near(case, whole)
    if case.membership.pair is not None and not case.fair:
        yield (
            f"forget and heldout hold {case.without_coin.sum()} samples of no pair in pair, so that coins "
            "did not choose the sides: leave them out, or say how they were drawn (design)"
        )
    misnumbered = bool(common_order(case, whole))  # who is right is unknown then
    answers_nothing = len(whole) > 1 and not misnumbered and all(map(_chance, whole.values()))
    if answers_nothing:
        yield (
            "all models answer their retained samples as chance does: either the labels are those of other samples "
            "than the logits are of, shifted by one for example, or train and forget mark the wrong ones, or "
            "all are broken, or, where models lie in the place of logits, what builds them does not scale inputs as "
            "their training did"
        )
    for short, population in whole.items():
        name = title(case, short)
        marks = fingerprints(population.unlearned)
        copies = len(marks) - len(set(marks))
        if copies:
            first = next(i for i, mark in enumerate(marks) if mark in marks[:i])
            yield (
                f"{name} holds {copies} models twice (model {first} is model {marks.index(marks[first])}); verdicts "
                "count a copy once, but other intervals are too narrow by them: leave them out of all arrays"
            )
        else:
            yield from _twins(name, population)
        if words := no_logits.strange(population.sample_logits):
            yield f"{name} {words}"
        still = (population.unlearned == population.unlearned[:, :1]).all(axis=(1, 2))
        if still.any():
            yield f"{name} holds {int(still.sum())} models that say the same of every sample"
        # Passages have no classes to be right about.
        if np.ptp(population.labels) and not (answers_nothing or misnumbered):
            yield from _of_accuracies(name, population, knows_forgotten=short in ("original", "shadow_original"))
        if short in ("original", "shadow_original") and not misnumbered:
            yield from _exchanged(name, population)


def _twins(name: str, population: ExternalCase) -> Iterator[str]:
    """Models of one population that hardly differ."""
    pairs = list(likeness.twins(population.sample_logits))
    if pairs:
        i, j = pairs[0]
        yield (
            f"{name} holds models that hardly differ (model {j} is nearly model {i}; {len(pairs)} such pairs in "
            "all); verdicts count a copy once, but other intervals are too narrow by them: leave them out of all arrays"
        )


def _near(case: ExternalCase, whole: dict[str, ExternalCase]) -> Iterator[str]:
    """Populations of which one is nearly the other."""
    for first, second in APART:
        if first not in whole or second not in whole or not case.same_samples(second if second != "target" else first):
            continue
        left, right = (whole[name].sample_logits for name in (first, second))
        if left.shape[1:] != right.shape[1:]:
            continue
        pairs = list(zip(*np.nonzero(likeness.apart(right, left) < likeness.ALIKE), strict=True))
        if pairs:
            j, i = pairs[0]
            yield (
                f"{len({int(pair[0]) for pair in pairs})} models of {title(case, second)} are nearly models of "
                f"{title(case, first)} (model {j} is nearly model {i} of the latter); {CONTENTS[second]}"
            )


def negated(case: ExternalCase, model: int | None = None, too_few: int = 0) -> bool:
    """Whether labels have the smallest logit by far more often than the largest, of all models or of one, both of all
    samples and on average over classes: an answer that is the same for all is right or wrong about one class. Of two
    classes, and of no more than ``too_few`` samples for each class, nobody can say."""
    logits, rows, labels = _judged(case, model)
    counts = np.bincount(labels)
    if np.count_nonzero(counts) <= 2 or len(labels) <= too_few * logits.shape[2]:
        return False
    ends = [(end[rows] == labels) for end in (logits.argmax(-1), logits.argmin(-1))]
    means = [[np.average(end, weights=weight) for end in ends] for weight in (None, 1 / counts[labels])]
    return all(least > RIGHT and least > TIMES * most for most, least in means)


def _judged(case: ExternalCase, model: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits [models, samples, classes] of all models or of one, the samples that they keep, bool [models, samples],
    and the labels of these [rows]."""
    models = slice(None) if model is None else slice(model, model + 1)
    rows = _retained(case)
    return case.unlearned[models], rows[models], np.broadcast_to(case.labels, rows.shape)[models][rows[models]]


def _retained(case: ExternalCase) -> np.ndarray:
    """Retained samples, or, where none is known, all that are not to be forgotten: bool [models, samples]."""
    member = case.membership
    return member.retain if member.retain.any() else ~member.forget


def _learned(case: ExternalCase) -> np.ndarray:
    """Retained samples, or, where none is known, all that may be: neither to be forgotten nor held out."""
    member = case.membership
    return member.retain if member.retain.any() else ~(member.forget | member.heldout)


def _variance_of_share(right: np.ndarray) -> float:
    """Of shares of right answers [samples], with one right and one wrong answer more (Agresti and Caffo 2000): a few
    samples that are all answered rightly do not vary by themselves."""
    return float(np.append(right, [0, 1]).var())


def _exchanged(name: str, population: ExternalCase) -> Iterator[str]:
    """Models before unlearning that are surer of what they never saw than of what they shall forget."""
    wide = population.unlearned.astype(np.float64)
    top = wide.max(axis=-1, keepdims=True)
    labels = np.broadcast_to(population.labels, wide.shape[:2])[..., None]
    logp = (np.take_along_axis(wide, labels, -1) - top)[..., 0] - np.log(np.exp(wide - top).sum(axis=-1))
    forget, heldout = (_by_sample(logp, mask) for mask in (population.membership.forget, population.membership.heldout))
    if not (forget.size and heldout.size):
        return
    # Of both together: a side of one sample has no spread of its own.
    spread = np.concatenate([forget, heldout]).std() * np.sqrt(1 / forget.size + 1 / heldout.size)
    if heldout.mean() - forget.mean() > max(ERRORS * spread, LEAST):
        yield (
            f"{name} is surer of the samples in heldout than of those in forget, which it was trained on: are "
            "the two the other way round, or is what shall be forgotten harder by itself?"
        )


def populations(case: ExternalCase) -> dict[str, ExternalCase]:
    """All populations by name, the audited models as "target"; one that plays two parts comes once."""
    by_name, files = {"target": case}, [case.files["target"]]
    for name, population in case.populations.items():
        if case.files[name] not in files:
            by_name[name] = population
            files.append(case.files[name])
    return by_name


def title(case: ExternalCase, name: str) -> str:
    """The folder of a population as its user knows it: that of the audited models may be another one's."""
    node = Path(case.files[name][0]).parent.name
    label = node.rsplit("-", 1)[0].removeprefix("external-") if node.startswith("external-") else name
    return label.replace("-", "/")


def fingerprints(logits: np.ndarray) -> list[bytes]:
    """One for each model of ``logits`` [models, samples, classes]; equal for equal logits."""
    return [hashlib.blake2b(np.ascontiguousarray(model), digest_size=16).digest() for model in logits]


def columns(case: ExternalCase, model: int | None = None, too_few: int = 0) -> list[int]:
    """The column that answers each class, of all models or of one, if that is surely not the class's own; else nothing.

    Only retained samples count, or, where nothing is known of these, all that are not to be forgotten; no more than
    ``too_few`` for each class say nothing.
    """
    best = of_retained(case, model, too_few)
    if not best:
        return []
    models = slice(None) if model is None else [model]
    predictions, forget = case.unlearned[models].argmax(-1), case.membership.forget[models]
    forgotten = np.broadcast_to(case.labels, case.membership.forget.shape)[models][forget]
    # Columns are in one order for all samples, those to be forgotten as well; of one model these are few.
    ahead = (predictions[forget] == forgotten).sum() - (predictions[forget] == np.array(best)[forgotten]).sum()
    elsewhere = ahead > (0 if model is None else np.sqrt(len(forgotten)))
    return [] if elsewhere else best


def of_retained(case: ExternalCase, model: int | None = None, too_few: int = 0) -> list[int]:
    """As `columns`, without a look at what is to be forgotten. The order must fit best all samples, and on average over
    classes: an answer that is the same for all fits one class, however frequent that is."""
    logits, rows, labels = _judged(case, model)
    classes = logits.shape[2]
    counts = np.zeros((classes, classes), np.int64)
    np.add.at(counts, (labels, logits.argmax(-1)[rows]), 1)
    sizes = counts.sum(axis=1, keepdims=True)
    # A method may turn the answers of a model round, where there are two.
    if np.count_nonzero(sizes) <= 2 or len(labels) <= too_few * classes:
        return []
    rates = counts / np.maximum(sizes, 1)
    _, best = linear_sum_assignment(rates, maximize=True)
    for table in (counts, rates):
        in_place, at_best = np.trace(table) / table.sum(), table[np.arange(classes), best].sum() / table.sum()
        if not (at_best > RIGHT and at_best > TIMES * in_place):
            return []
    return best.tolist()


def _strangers(name: str, right: np.ndarray, rows: np.ndarray, chance: float) -> Iterator[str]:
    """Single models that answer their retained samples as chance does, while all together do not. ``right`` and
    ``rows`` bool [models, samples]: what was answered rightly, and is kept."""
    counts = rows.sum(axis=1)
    shares = (right & rows).sum(axis=1) / np.maximum(counts, 1)
    lost = (counts > 0) & (shares <= chance + ERRORS * np.sqrt(chance * (1 - chance) / np.maximum(counts, 1)))
    share_of_rest = shares[~lost].mean() if (~lost).any() else 0.0
    if lost.any() and share_of_rest > max(RIGHT, TIMES * shares[lost].max()):
        yield (
            f"{name} holds models that answer their retained samples as chance does, and others that do not (model "
            f"{int(lost.argmax())}: {shares[lost.argmax()]:.0%}, the others {share_of_rest:.0%}): are their samples in "
            "another order, or their columns?"
        )


def _by_sample(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The mean of every sample over the models for which ``mask`` bool [models, samples] counts it, float64 [samples
    that it counts at all]. Models share which samples are hard, so that only samples are many."""
    counts = mask.sum(axis=0)
    return (values * mask).sum(axis=0)[counts > 0] / counts[counts > 0]


def _frequent(population: ExternalCase, rows: np.ndarray) -> float:
    """The share of the most frequent label among ``rows`` bool [models, samples], which is what chance answers."""
    labels = np.broadcast_to(population.labels, rows.shape)[rows]
    return float(np.bincount(labels).max() / len(labels))


def _chance(population: ExternalCase) -> bool:
    """Whether models answer their retained samples no better than chance does; one label is no question."""
    rows = _learned(population)
    right = (population.unlearned.argmax(-1) == population.labels)[rows]
    if not right.size or not np.ptp(population.labels):
        return False
    chance = _frequent(population, rows)
    return bool(right.mean() <= chance + ERRORS * np.sqrt(chance * (1 - chance) / right.size))


def _of_accuracies(name: str, population: ExternalCase, knows_forgotten: bool) -> Iterator[str]:
    """Models that know nothing of what they kept, or more of what they should not know."""
    member = population.membership
    right = population.unlearned.argmax(-1) == population.labels
    retained = _by_sample(right, rows := _learned(population))
    if not retained.size:
        return
    chance = _frequent(population, rows)
    if _chance(population):
        yield (
            f"{name} answers {retained.mean():.0%} of its retained samples rightly, which is chance ({chance:.0%}): "
            "either these models are broken, or train and forget mark the wrong samples, or the logits have their "
            "samples in another order than labels"
        )
        return
    yield from _strangers(name, right, rows, chance)
    sides = {"heldout": member.heldout}
    if not knows_forgotten:
        sides = {"forget": member.forget, **sides}
    for where, mask in sides.items():
        side = _by_sample(right, mask)
        if not side.size:
            continue
        gap = side.mean() - retained.mean()
        spread = np.sqrt(_variance_of_share(retained) / retained.size + _variance_of_share(side) / side.size)
        if gap > max(ERRORS * spread, LEAST):
            yield (
                f"{name} answers {side.mean():.1%} of the samples in {where} rightly and only {retained.mean():.1%} of "
                "those that it keeps: are the two the other way round?"
            )
