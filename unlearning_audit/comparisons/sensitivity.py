"""Whether a scenario can give verdicts: are there retrained models, do two groups of them agree, and was there anything
to find?"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from unlearning_audit import stats
from unlearning_audit.comparisons.distances import CONTROL, GIVEN, NONE, RETRAIN, Read
from unlearning_audit.evaluation.rows import Failure, Row
from unlearning_audit.stats import Estimate, decide

#: A wider interval of an accuracy shows neither that something was memorised nor that nothing was.
WIDE = 0.25

#: Remark in a scenario without the models before unlearning, which cannot show that its attacks find anything.
NO_NONE = (
    "equivalence cannot be shown without the models before unlearning (none), on which attacks must find something"
)
#: Reason for the state `decide.NO_YARDSTICK`.
UNREPEATED = (
    "no two models differ only in their seed, so it is not known how much retrained models vary, and the interval "
    "covers samples alone: retrain a second model, unlearn a second one, or state this spread (retrain_spread)"
)
#: Reason where some metrics have a given spread of retrained models, and this metric needs one and has none.
NO_SPREAD = "the spread of retrained models by this metric is not stated"
#: Start of the clause on how much retrained models would have to vary.
BY_CHANCE = "by chance if retrained models have a standard deviation of"
#: Reason where models before unlearning lie significantly on the far side of retraining.
FAR_NONE = (
    "before unlearning, the samples to be forgotten look less familiar than samples never seen: forget and heldout may "
    "be exchanged, or the sign of a score may be wrong, or the samples to be forgotten are harder than those held out"
)
#: Start of the note on a method without a number by any deciding metric.
NO_DISTANCE = "no distance: "
#: Start of the reason where more models, pairs or samples may show what doing nothing leaves.
TOO_FEW = "too few"
#: Reason where a method has no number by a metric that decides verdicts.
NOTHING_DECIDES = "no metric decides"
#: Reason for the state `decide.YARDSTICKS_DISAGREE`.
DISAGREEING = "two groups of retrained models differ, so no method can be compared with them"


@dataclass(frozen=True)
class Sensitivity:
    """What a scenario can show: its ``state``, one of `decide.STATES` or "" if it can give verdicts, and the ``reason``
    in one clause.

    Parameters
    ----------
    lower_limits
        Metric → the lower limit of the distance of doing nothing, where that distance is significant and the limit
        above 0.
    has_none
        Whether the scenario has the method `none` (doing nothing), with models that show how models vary.
    """

    state: str
    reason: str
    lower_limits: dict[str, float]
    has_none: bool


def assess(reads: Mapping[str, Mapping[str, Read]], p_holm: Mapping[str, Mapping[str, float]], why: str) -> Sensitivity:
    """Return whether a scenario can show what unlearning does (``state`` is "") or why not, and what doing nothing
    leaves (``lower_limits``).

    A scenario cannot show it in three cases: no distance shows how models vary, or there is no distance at all; two
    groups of retrained models differ; or doing nothing is part of the scenario, and no metric distinguishes it from
    retraining. A metric distinguishes the two if the adjusted p-value of doing nothing is at most α and the lower limit
    of its distance is above 0.

    Parameters
    ----------
    reads, p_holm
        Method → deciding metric → distance and adjusted p-value.
    why
        A sentence on why doing nothing may leave nothing to find (`explanation`).
    """
    none = reads.get(NONE, {})
    significant = {metric: read for metric, read in none.items() if p_holm[NONE][metric] <= decide.ALPHA}
    positive = {metric: read for metric, read in significant.items() if read.distance.estimate.value > 0}
    lower_limits = {m: read.distance.lower_limit for m, read in positive.items() if read.distance.lower_limit > 0}
    # A lone model cannot show that there is something to find.
    has_none = any(not read.variation_unknown for read in none.values())
    all_reads = [read for by_metric in reads.values() for read in by_metric.values()]
    p_of_references = [p for method in (RETRAIN, CONTROL) for p in p_holm.get(method, {}).values()]
    state, reason = "", ""
    if all(read.variation_unknown for read in all_reads):  # also if there is no distance at all
        state, reason = decide.NO_YARDSTICK, UNREPEATED if all_reads else ""
    elif any(p <= decide.ALPHA for p in p_of_references):
        state, reason = decide.YARDSTICKS_DISAGREE, DISAGREEING
    elif has_none and not lower_limits:
        # Models before unlearning that know the forget set less than retrained ones point to a mistake.
        negative = [read for metric, read in significant.items() if metric not in positive]
        mistaken = any(read.contrast.audited.rule.two_sided for read in negative)
        state, reason = decide.NOTHING_TO_FIND, FAR_NONE if mistaken else why
    return Sensitivity(state, reason, lower_limits, has_none)


def condition(note: str) -> str:
    """Return the clause of a verdict's ``note`` that states which spread of retrained models the study gives, or how
    large this spread would have to be for the distance to be chance; "" if the note has no such clause."""
    return next((clause for clause in note.split("; ") if clause.startswith((BY_CHANCE, GIVEN))), "")


def reason(row: dict[str, Any]) -> str:
    """Return the reason for the state of a scenario from the note in a row of verdicts.csv, without further remarks.

    The reason is the first clause of the note, or the whole note of a method without a distance (`NO_DISTANCE`).

    Parameters
    ----------
    row
        Column → value; its verdict is one of `decide.STATES`.
    """
    return str(row["note"] if row["note"].startswith(NO_DISTANCE) else row["note"].split("; ")[0])


def accuracies(numbers: Iterable[Row | Failure]) -> dict[str, Estimate]:
    """Return the accuracy of one method's models for each role of samples ("retain", "forget" …), and the share of the
    most frequent class under "most_frequent".

    Failures, rows with the value NaN, and rows that are narrowed down by more than a role, such as those of single
    pairs or models, are skipped.

    Parameters
    ----------
    numbers
        The metric rows of that method.
    """
    names = {"accuracy": "", "majority_share": "most_frequent"}  # "": the role is the name
    return {
        names[row.metric] or row.role: Estimate(row.value, row.ci_low, row.ci_high, row.n)
        for row in numbers
        if isinstance(row, Row) and row.metric in names and row.value == row.value  # not NaN
        if all(name == "role" for name, _ in row.place)
    }


def spread_that_explains(distance: float) -> str:
    """Return a clause on how much retrained models would have to vary for a single model's ``distance`` from one of
    them to be chance.

    Two normal numbers of standard deviation s differ by more than 1.96·√2·s in 5 % of pairs.
    """
    spread = abs(distance) / (np.sqrt(2) * float(stats.normal_quantile(0.975)))
    return f"{BY_CHANCE} {spread:.2g} or more"


def explanation(
    shares: Mapping[str, Estimate],
    *,
    least_distance: float,
    margin: float,
    more: str = "pairs, models or samples to forget",
    measured: float = 0.0,
) -> str:
    """Return a sentence on why doing nothing is not distinguishable from retraining, and on what to change.

    Parameters
    ----------
    shares
        Accuracy of the models before unlearning by role ("retain", "forget", "heldout"), and "most_frequent", the share
        of the most frequent class, as far as they are known.
    least_distance
        The distance that the scenario detects with power .8.
    margin
        The distance that it should detect.
    more
        What should be added, such as "retrained models".
    measured
        The distance of doing nothing if it lies beyond the margin, else 0.
    """
    retained, frequent = shares.get("retain"), shares.get("most_frequent")
    if retained and frequent and retained.low <= frequent.value:
        return (
            f"the models learned nothing: their accuracy on kept samples is {retained.value:.2f}, and the most "
            f"frequent class alone gives {frequent.value:.2f}, so train longer or with another learning rate, "
            "and check that the labels belong to these samples"
        )
    if measured > margin:
        return (
            f"{TOO_FEW} {more}: doing nothing lies {measured:.2f} from retraining, beyond the margin of {margin:.2f}, "
            f"but among so many tests such a distance may be chance, so add {more}"
        )
    forgotten, unseen = shares.get("forget"), shares.get("heldout")
    if forgotten and unseen and forgotten.low <= unseen.high:
        if max(forgotten.high - forgotten.low, unseen.high - unseen.low) > WIDE:
            known, new = (f"{share.value:.2f} [{share.low:.2f}, {share.high:.2f}]" for share in (forgotten, unseen))
            return (
                "it is open whether the models memorised anything: before unlearning, their accuracy is "
                f"{known} on samples to be forgotten and {new} on samples never seen, so add {more}"
            )
        return (
            f"the models memorised nothing: before unlearning, their accuracy is {forgotten.value:.2f} on samples to "
            f"be forgotten and {unseen.value:.2f} on samples never seen, so train longer, with fewer or harder samples"
        )
    if least_distance > margin:
        return (
            f"{TOO_FEW} {more}: the least distance that would be found is {least_distance:.2f}, and the margin is "
            f"{margin:.2f}, so add {more}"
        )
    return "the attacks find no traces, although there may be some: add stronger attacks"
