"""Whether logits from elsewhere can be what their folders say: mistakes that would otherwise become wrong numbers."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from unlearning.adversary.external_case import ExternalCase

#: Populations of which no two may share a model, whatever method is audited; original and target may, if nothing was
#: done to the former.
APART = (("target", "shadow"), ("target", "retrain"), ("target", "retrain_control"), ("retrain", "retrain_control"),
         ("original", "shadow_original"), ("original", "retrain"), ("shadow", "retrain"))  # fmt: skip

#: Columns in another order are told where this share of answers is right in the order that fits best, and so many times
#: as many as in the order that is given.
RIGHT, TIMES = 0.5, 2.0

#: Differences of accuracies beyond so many standard errors, and of at least so much, are no chance.
ERRORS, LEAST = 4.0, 0.02


def refusal(case: ExternalCase) -> str:
    """Why the logits of a case cannot be what they are said to be, in one sentence; "" if nothing speaks against it."""
    whole = populations(case)
    marks = {name: fingerprints(one.unlearned) for name, one in whole.items()}
    for one, other in APART:
        if one in marks and other in marks:
            shared = [(i, marks[other].index(mark)) for i, mark in enumerate(marks[one]) if mark in marks[other]]
            if shared:
                i, j = shared[0]
                return (
                    f"{title(case, other)} holds models of {title(case, one)}: the logits of {len(shared)} are "
                    f"identical (model {j} is model {i} of the latter); {MEANT[other]}"
                )
    for name, one in whole.items():
        if order := columns(one):
            swapped = ", ".join(f"{label} by column {column}" for label, column in enumerate(order) if label != column)
            return (
                f"the columns of the logits of {title(case, name)} are in another order than labels.npy: class "
                f"{swapped}; save logits[..., order] with the order of the labels"
            )
    return ""


#: What a population holds, for who has mistaken it.
MEANT = {
    "shadow": "shadow models are others, which the adversary trained and unlearned itself",
    "retrain": "retrained models are others, which never saw the forget set",
    "retrain_control": "the control is retrained independently",
    "shadow_original": "shadow models are others, which the adversary trained itself",
}


def doubts(case: ExternalCase) -> Iterator[str]:
    """What is hard to believe of a case, though it could be so; one sentence each."""
    for short, one in populations(case).items():
        name = title(case, short)
        marks = fingerprints(one.unlearned)
        copies = len(marks) - len(set(marks))
        if copies:
            first = next(i for i, mark in enumerate(marks) if mark in marks[:i])
            yield (
                f"{name} holds {copies} models twice (model {first} is model {marks.index(marks[first])}); copies "
                "count as models of their own and make intervals too narrow: leave them out of all files"
            )
        still = (one.unlearned == one.unlearned[:, :1]).all(axis=(1, 2))
        if still.any():
            yield f"{name} holds {int(still.sum())} models that say the same of every sample"
        yield from _of_accuracies(name, one, knows_forgotten=short in ("original", "shadow_original"))


def populations(case: ExternalCase) -> dict[str, ExternalCase]:
    """All populations by name, the audited models as "target"; one that plays two parts comes once."""
    found, files = {"target": case}, [case.files["target"]]
    for name, other in case.others.items():
        if case.files[name] not in files:
            found[name] = other
            files.append(case.files[name])
    return found


def title(case: ExternalCase, name: str) -> str:
    """The folder of a population as its user knows it: that of the audited models may be another one's."""
    node = Path(case.files[name][0]).parent.name
    label = node.rsplit("-", 1)[0].removeprefix("external-") if node.startswith("external-") else name
    return f"{label.replace('-', '/')}/"


def fingerprints(logits: np.ndarray) -> list[bytes]:
    """One for each model of ``logits`` [models, samples, classes]; equal for equal logits."""
    return [hashlib.blake2b(np.ascontiguousarray(one), digest_size=16).digest() for one in logits]


def columns(case: ExternalCase) -> list[int]:
    """The column that answers each class, if that is surely not the class's own; else nothing.

    Only retained samples count, or, where nothing is known of these, all that are not to be forgotten.
    """
    member = case.membership
    rows = member.retain if member.retain.any() else ~member.forget
    said, labels = case.unlearned.argmax(-1)[rows], np.broadcast_to(case.labels, rows.shape)[rows]
    classes = case.unlearned.shape[2]
    if classes == 2:  # a method may turn the answers of a model round
        return []
    counts = np.zeros((classes, classes), np.int64)
    np.add.at(counts, (labels, said), 1)
    _, best = linear_sum_assignment(counts, maximize=True)
    given, found = np.trace(counts) / counts.sum(), counts[np.arange(classes), best].sum() / counts.sum()
    said = case.unlearned.argmax(-1)[member.forget]
    forgotten = np.broadcast_to(case.labels, rows.shape)[member.forget]
    # Columns are in one order for all samples, those to be forgotten as well.
    elsewhere = (said == forgotten).sum() > (said == best[forgotten]).sum()
    return best.tolist() if found > RIGHT and found > TIMES * given and not elsewhere else []


def _of_accuracies(name: str, one: ExternalCase, knows_forgotten: bool) -> Iterator[str]:
    """Models that know nothing of what they kept, or more of what they should not know."""
    member = one.membership
    right = one.unlearned.argmax(-1) == one.labels
    kept = right[member.retain]
    if not kept.size:
        return
    labels = np.broadcast_to(one.labels, right.shape)[member.retain]
    chance = np.bincount(labels).max() / len(labels)
    if kept.mean() <= chance + ERRORS * np.sqrt(chance * (1 - chance) / kept.size):
        yield (
            f"{name} answers {kept.mean():.0%} of its retained samples rightly, which is chance ({chance:.0%}): either "
            "these models are broken, or train.npy and forget.npy mark the wrong samples, or logits.npy has its "
            "samples in another order than labels.npy"
        )
        return
    sides = {"heldout.npy": member.heldout}
    if not knows_forgotten:
        sides = {"forget.npy": member.forget, **sides}
    for file, mask in sides.items():
        other = right[mask]
        if not other.size:
            continue
        gap = other.mean() - kept.mean()
        spread = np.sqrt(kept.var() / kept.size + other.var() / other.size)
        if gap > max(ERRORS * spread, LEAST):
            yield (
                f"{name} answers {other.mean():.1%} of the samples in {file} rightly and only {kept.mean():.1%} of "
                "those that it keeps: are the two the other way round?"
            )
