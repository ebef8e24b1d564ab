"""Mistakes of a method: mixed models, or forget and retained samples exchanged."""

from dataclasses import replace

import numpy as np
import scipy.special

from unlearning_audit.evaluation import likeness
from unlearning_audit.evaluation.cohort import Group
from unlearning_audit.evaluation.evaluation import Evaluation

#: Forget and retained samples count as exchanged if three things hold. Retained samples lose at least LOST / 2 of the
#: label's probability, and at least LOST more than forgotten ones. Forgotten samples lose at most the share SHARE of
#: what retained ones lose. And after unlearning the forgotten ones have the higher probability.
LOST, SHARE = 0.1, 0.1

#: The largest number of forgotten and of retained samples that are compared.
JUDGED = 2000

#: Advice for a method that mixes models.
REQUIREMENT = "a method must change every model by itself, and the first dimension of what it edits counts the models"


def refusal_and_doubts(evaluation: Evaluation) -> tuple[str, list[str]]:
    """Return why the logits of an evaluation cannot be used ("" if they can), and a list of warnings about them, some
    of them "": whether a method mixed models, or exchanged forgotten and retained samples. Without models before
    unlearning that match the audited ones, and if these are the audited ones themselves, the result is ("", [])."""
    before, after = evaluation.group("original"), evaluation.audited
    if before is None or evaluation.unlike("original", before) or before.files == after.files:
        return "", []
    # Of models that were trained here, the adversary's are compared too.
    refused, doubt = mixture(evaluation, *(replace(group, models=None) for group in (before, after)))
    return refused, [doubt, exchanged(evaluation, before)]


def mixture(evaluation: Evaluation, before: Group, after: Group) -> tuple[str, str]:
    """Check whether a method mixed the models, and did not unlearn each alone; return a refusal and a doubt, each a
    sentence or "".

    A model that answers as another one answered before unlearning is refused. Two models with different forget sets
    that differed before unlearning and answer alike after it are refused, too, because only a method that mixed them
    explains it. Two models with equal forget sets that differed before and answer alike after it are a doubt: both
    might also come from one seed, which makes intervals too narrow.

    Parameters
    ----------
    before
        The models before unlearning.
    after
        The same models after unlearning.
    """
    doubt = ""
    for kind, i, j in likeness.signs_of_mixing(before.sample_logits, after.sample_logits):
        if kind == "was":
            return f"model {i} answers as model {j} did before unlearning; {REQUIREMENT}", ""
        if not np.array_equal(evaluation.membership.forget[i], evaluation.membership.forget[j]):
            return f"models {i} and {j} answer alike after unlearning, and did not before; {REQUIREMENT}", ""
        doubt = doubt or (
            f"models {i} and {j} answer alike after unlearning, and did not before: were they mixed, or drawn from one "
            "seed? They count as models of their own and make intervals too narrow"
        )
    return "", doubt


def exchanged(evaluation: Evaluation, before: Group) -> str:
    """Return a sentence if unlearning made the audited models forget the retained samples and keep those to be
    forgotten, as if a method had exchanged them; else "". ``before``: the same models before unlearning."""
    member = evaluation.audited.membership
    forgotten, all_samples = np.flatnonzero(member.forget.any(0)), np.arange(member.forget.shape[1])
    # Evenly spaced, at most JUDGED forgotten samples, and at most JUDGED of all samples, most of which are retained.
    rows = np.union1d(likeness.evenly(forgotten, JUDGED), likeness.evenly(all_samples, JUDGED))
    # The probability of the label, whose log-odds are φ.
    p_before, p_after = (scipy.special.expit(group.phi(rows)) for group in (before, evaluation.audited))
    return sides_exchanged(p_before, p_after, member.forget[:, rows], member.retain[:, rows])


def sides_exchanged(before: np.ndarray, after: np.ndarray, forget: np.ndarray, retain: np.ndarray) -> str:
    """Return a sentence if retained samples lost the label's probability and forgotten ones kept it, else "".

    On average, retained samples must lose at least `LOST`/2, and at least `LOST` more than forgotten ones. These must
    lose at most the share `SHARE` of what retained ones lose, and have the higher probability afterwards.

    Parameters
    ----------
    before, after
        [models, samples]: the probability of the label before and after unlearning.
    forget, retain
        bool [models, samples]: the forgotten samples, and the retained ones.
    """
    if not (forget.any() and retain.any()):
        return ""
    lost = before - after
    of_retained, of_forgotten = float(lost[retain].mean()), float(lost[forget].mean())
    forgotten_better_known = after[forget].mean() > after[retain].mean()
    lost_more = of_retained >= LOST / 2 and of_retained - of_forgotten >= LOST
    if not (lost_more and of_forgotten <= SHARE * of_retained and forgotten_better_known):
        return ""
    return (
        f"unlearning changed the probability of the label by {-of_retained:+.2f} on the retained samples and by "
        f"{-of_forgotten:+.2f} on the samples to be forgotten: were forget and retain exchanged?"
    )
