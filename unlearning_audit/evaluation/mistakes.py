"""What a method must not do to models: mix them, or forget what it was to keep and keep what it was to forget."""

import numpy as np
import scipy.special

from unlearning_audit.evaluation import likeness
from unlearning_audit.evaluation.cohort import Group
from unlearning_audit.evaluation.evaluation import Evaluation

#: Forget and retained samples are said to be exchanged where the retained ones lose so much more of the label's
#: probability (and a half of it themselves), those to be forgotten lose no more than this share of that, and are known
#: better in the end. A method that ruins all that a model knows is not asked.
LOST, SHARE = 0.1, 0.1

#: Samples of each side by which that is judged, at most.
JUDGED = 2000

#: What a method has to do, for one that mixes models.
REQUIREMENT = "a method must change every model by itself, and the first dimension of what it edits counts the models"


def mixture(case: Evaluation, before: Group, after: Group) -> tuple[str, str]:
    """Why the models of a case are not each unlearned by itself, in a sentence: a refusal, and a doubt; each is "" if
    there is none. ``before`` and ``after``: the same models in both parts.

    Two models that were others before, and were asked to forget other samples, answer alike only if a method mixed
    them. With equal samples to forget they might be drawn from one seed, which makes intervals too narrow.
    """
    doubt = ""
    for kind, i, j in likeness.mixed(before.sample_logits, after.sample_logits):
        if kind == "was":
            return f"model {i} answers as model {j} did before unlearning; {REQUIREMENT}", ""
        if not np.array_equal(case.membership.forget[i], case.membership.forget[j]):
            return f"models {i} and {j} answer alike after unlearning, and did not before; {REQUIREMENT}", ""
        doubt = doubt or (
            f"models {i} and {j} answer alike after unlearning, and did not before: were they mixed, or drawn from one "
            "seed? They count as models of their own and make intervals too narrow"
        )
    return "", doubt


def exchanged(case: Evaluation, before: Group) -> str:
    """A sentence about audited models that lost what they were to keep and kept what they were to forget, else "";
    ``before``: the same models before unlearning."""
    member = case.audited.membership
    forgotten, anything = np.flatnonzero(member.forget.any(0)), np.arange(member.forget.shape[1])
    rows = np.union1d(likeness.evenly(forgotten, JUDGED), likeness.evenly(anything, JUDGED))
    then, now = (scipy.special.expit(group.phi(rows)) for group in (before, case.audited))
    return sides_exchanged(then, now, member.forget[:, rows], member.retain[:, rows])


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
