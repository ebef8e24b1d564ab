"""Write sentences on verdicts: what each method left to find, and whether the checks passed."""

import math
from typing import Any, NamedTuple

from unlearning_audit.comparisons import sensitivity
from unlearning_audit.comparisons.distances import FAR_SIDE
from unlearning_audit.report import decisions, lookup, naming, words
from unlearning_audit.report.decisions import Judged, Place
from unlearning_audit.report.lookup import Cell, Numbers
from unlearning_audit.report.tables import verdicts
from unlearning_audit.stats import decide

#: The retrained models beside which methods are shown, the preferred ones first.
YARDSTICKS = ("retrain_control", "retrain")

#: References, in the order of `words.CHECKS`: the first two must not be distinguishable from retraining, the last must.
CHECKED = ("retrain", "retrain_control", "none")


class Check(NamedTuple):
    """A statement on one check in one scenario.

    Parameters
    ----------
    value
        The distance on which the statement rests, with its interval; "" if there is no distance.
    text
        What follows from the number.
    tone
        "good", "bad" or "" (open).
    """

    value: str
    text: str
    tone: str = ""


class State(NamedTuple):
    """Whether the checks of a scenario passed: a ``sign`` (`words.OK` if they did, else a dash), a few ``words``, the
    reason in a ``sentence``, and the ``tone``, "good", "bad" or "" (open)."""

    sign: str
    words: str
    sentence: str
    tone: str


def checks(judged: Judged) -> dict[str, Check]:
    """Return name of a check, a key of `words.CHECKS` → the statement on it in one scenario and setting. Each check is
    of one reference: retraining, a second retraining, and doing nothing."""
    return {name: _check(judged, method) for name, method in zip(words.CHECKS, CHECKED, strict=True)}


def state(judged: Judged) -> State:
    """Return whether the checks of one scenario and setting passed, with the reason.

    There are three checks: retraining is like retraining, two groups of retrained models agree, and doing nothing is
    detected. A check has the tone "good" (passed), "bad" (failed) or "" (open).
    """
    perfect, agree, detected = checks(judged).values()
    differ, nothing = words.REASONS[decide.YARDSTICKS_DISAGREE], words.REASONS[decide.NOTHING_TO_FIND]
    for check, why in ((perfect, differ), (agree, differ), (detected, nothing)):
        if check.tone == "bad":
            return State("–", why, check.text, "bad")
    if detected.tone == "":
        return State("–", words.UNCHECKED, detected.text, "")
    for check in (perfect, agree):
        if check.tone == "" and check.value:  # there is a distance, but it is not shown to lie within the margin
            return State("–", words.UNSURE, check.text, "")
    if not (perfect.value or agree.value):  # no second group of retrained models
        return State("–", words.UNCHECKED, f"{words.NO_CONTROL}; {detected.text}", "")
    return State(words.OK, words.PASSED, detected.text, "good")


def faults(numbers: Numbers, case: dict[str, Any]) -> list[str]:
    """Return one sentence if a case has no numbers at all, because its model or method failed or its models diverged.
    Else return a sentence on every attack or metric that failed, one on every doubt about the models, and one if the
    method changed nothing. Each names the method as readers see it, without underscores."""
    name = naming.method(case["method"])
    if failure := numbers.failure(case):
        return [f"{name} failed: {failure}"]
    found = [*map(lookup.sentence_of, numbers.failures(case)), *numbers.noted(case, "doubt")]
    unchanged = [f"{name} returned exactly the models it was given"] if numbers.unchanged(case) else []
    return [*(f"{name}: {fault}" for fault in found), *unchanged]


def reference(numbers: Numbers, where: Place, attack: str = "") -> tuple[str, Cell]:
    """Return the name of the retrained models ("retrain_control" or "retrain") beside which methods are shown, and
    their number by the main metric, under ``attack`` ("": the preferred one).

    The control is preferred, because it is independent of the models that metrics compare with. If the control's
    interval is missing or more than 1.5 times as wide as that of retrain, which has one, retrain is returned: the
    control of a protocol may have only half of the models. If neither of the two has a number, the result is "" and an
    empty cell.
    """
    cases = numbers.by_method(where)
    found = [(name, numbers.primary(case, attack)) for name in YARDSTICKS if (case := cases.get(name))]
    cells = [(name, cell) for name, (_, cell) in found if not cell.empty]
    widths = [cell.high - cell.low if cell.bounded else math.inf for _, cell in cells]  # control first, then retrain
    if len(cells) == 2 and widths[0] > 1.5 * widths[1]:
        cells.reverse()
    return next(iter(cells), ("", lookup.missing("the scenario has no retrained models")))


def method(numbers: Numbers, judged: Judged, case: dict[str, Any]) -> str:
    """Return the sentence on one method in a scenario: its verdict in words, or that the method failed, changed
    nothing, or has no verdict; "" for references.

    The reason of a failure is only given if the models diverged (verdict "broken"); errors of methods stand elsewhere.
    """
    if case["method"] in naming.BASELINES:
        return ""
    row = judged.verdicts.get(case["method"])
    if failure := numbers.failure(case):
        return failure if row and row["verdict"] == decide.BROKEN else "failed, so there is no number"
    if numbers.unchanged(case):
        return "changed nothing: its models are those it was given"
    if row is None:
        return "no verdict: no metric of this scenario says how far it is from retraining"
    return _sentence(judged, row)


def _sentence(judged: Judged, row: dict[str, Any]) -> str:
    """Return the verdict of a row in words, with the distance and p-value that it rests on, how the method compares
    with doing nothing, and remarks.

    Without a distance, the row's note says why there is none. If the verdict is open, the sentence ends with the reason
    and what would decide.
    """
    distance = judged.main_distance(row["method"])
    if distance is None:
        return f"{decisions.word(row)}: {row['note']}"
    # The distance with its metric; after "traces remain", a difference need not say from what it is measured.
    full = f"{decisions.source(distance)} {decisions.distance(distance)}"
    short = f"{decisions.source(distance)} {decisions.spelled(distance)}" if distance["scale"] == "difference" else full
    word, p = words.state(row["verdict"]).word, decisions.probability(row["p_holm"])
    match row["verdict"]:
        case decide.EQUIVALENT:
            text = f"{word} within {decisions.margin(distance)}: {full}"
        case decide.DISTINGUISHABLE:
            text = f"{word}: {short}, {p}"
        case decide.OVER_UNLEARNED:
            text = f"{word}, {words.MEANINGS[words.OVER]}: {short}, {p}"
        case decide.BROKEN:
            text = f"{word}: {_broken(judged, row['method'])}"
        case _:
            # Of a single retrained model, the condition says what a verdict would rest on, in place of the reason.
            if row["verdict"] == decide.NO_YARDSTICK and (condition := judged.condition(row["method"])):
                return f"{word}: {decisions.source(distance)} {condition}"
            return f"{word}: {full}, {p}; {verdicts.why(judged, row['method'])}"
    note = judged.by_metric(row["method"])[distance["metric"]]["note"]
    if row["verdict"] == decide.OVER_UNLEARNED:  # the text already says what this note would say
        note = note.removesuffix(FAR_SIDE).removesuffix("; ")
    return "; ".join(filter(None, (text, _against(row), verdicts.besides(judged, row["method"]), note)))


def _against(row: dict[str, Any]) -> str:
    """Return how a method compares with doing nothing: worse, not distinguishable, or better. ``row``: its row of
    verdicts.csv.

    A method that is neither worse nor like doing nothing is described by the share of traces that it removes. If it is
    over-unlearned or the share is undefined, it is called better, or the result is "" if the two were not compared.
    """
    if row["against_none"] == decide.WORSE:
        return "worse than doing nothing"
    if row["against_none"] == decide.LIKE and row["verdict"] == decide.OVER_UNLEARNED:
        return "neither shown to be nearer to retraining than doing nothing nor further, but in the opposite direction"
    if row["against_none"] == decide.LIKE:
        return "not distinguishable from doing nothing"
    if row["verdict"] == decide.OVER_UNLEARNED or not decisions.share(row):
        return "better than doing nothing" if row["against_none"] else ""
    return f"removes {decisions.share(row)} of what doing nothing leaves"


def _broken(judged: Judged, method: str) -> str:
    """Return how far the utility of a damaged model is from that of retraining, for each measure of utility by which
    the model counts as broken: in points below or, for a measure on a log scale, as a factor. "" if there is no such
    measure."""
    distances, losses = judged.by_metric(method), []
    for name, measure in words.UTILITY.items():
        gap = distances.get(name)
        if gap and gap["broken"] == 1:
            value, low, high = (f"{100 * gap[column]:.0f}" for column in ("distance", "ci_low", "ci_high"))
            below = f"{value} [{low}, {high}] points below"
            loss = f"{decisions.spelled(gap)} times" if gap["scale"] == "log" else below
            losses.append(f"{measure} is {loss} that of retraining")
    return ", ".join(losses)


def _check(judged: Judged, method: str) -> Check:
    """Return the statement on whether a reference (``method``) compares with retraining as it should.

    The models before unlearning ("none") must be distinguishable from retraining, in the direction of more traces, by
    the main distance or by another one that the note names (`decide.OTHER_SIDE`); nor may there be nothing to find.
    Retrained models must not be distinguishable from other retrained models; if the interval of their distance does not
    lie within the margin, the check is open. Without a verdict or a p-value, the check was not made, and the text says
    why.
    """
    name, row, distance = naming.method(method), judged.verdicts.get(method), judged.main_distance(method)
    value = "" if distance is None else decisions.spelled(distance)
    if row is None or distance is None or math.isnan(row["p_holm"]):
        return Check(value, f"not checked: {row['note'] if row else f'there is no verdict on {name}'}")
    differs = row["p_holm"] <= decide.ALPHA
    p = decisions.probability(row["p_holm"])
    text = f"{name}: {decisions.source(distance)} {decisions.distance(distance)}, {p}"
    if method != "none":
        if differs:
            return Check(value, f"{text}: differs from retraining, although it is retraining", "bad")
        low, high = distance["inner_low"], distance["inner_high"]
        within = distance["margin_far"] < low and high < distance["margin_near"]
        return Check(value, text, "good") if within else Check(value, f"{text}: not shown to lie within the margin")
    if row["verdict"] == decide.NOTHING_TO_FIND:
        return Check(value, f"{text}: {sensitivity.reason(row)}", "bad")
    if not differs:
        why = "so there is too little to find, or too few samples or models to find it"
        return Check(value, f"{text}: doing nothing is not distinguishable from retraining, {why}", "bad")
    if distance["distance"] > 0 or decide.OTHER_SIDE in row["note"]:
        return Check(value, text, "good")
    return Check(value, f"{text}: {sensitivity.FAR_NONE}", "bad")
