"""Write sentences on verdicts: what each method left to find, and whether the checks passed."""

import math
from dataclasses import dataclass
from typing import Any

from unlearning_audit.comparisons import sensitivity
from unlearning_audit.comparisons.distances import FAR_SIDE
from unlearning_audit.report import decisions, lookup, naming, words
from unlearning_audit.report.decisions import Decisions, Place
from unlearning_audit.report.lookup import Cell, Numbers
from unlearning_audit.report.tables import verdicts
from unlearning_audit.report.tables.typeset import decimals, interval
from unlearning_audit.stats import decide

YARDSTICKS = ("retrain_control", "retrain")

#: References, in the order of `words.CHECKS`: the first two must not be distinguishable from retraining, the last must.
CHECKED = ("retrain", "retrain_control", "none")


@dataclass(frozen=True)
class Check:
    """A statement on one check in one scenario.

    ``value``: the number it rests on; ``text``: what follows from it; ``tone``: "good", "bad" or "" (open).
    """

    place: Place
    subject: str
    value: str
    text: str
    tone: str = ""


def methods(numbers: Numbers, judgements: Decisions) -> dict[tuple[Place, str], str]:
    """Return (place, method) → a sentence on the method there, in study order, references excluded."""
    cases = (case for case in numbers.cases if case["method"] not in naming.BASELINES)
    return {(lookup.place(case), case["method"]): _method(numbers, judgements, case) for case in cases}


def controls(numbers: Numbers, judgements: Decisions) -> list[Check]:
    """Return a statement on every check of `words.CHECKS` in every scenario, then one for every method, attack or
    metric that failed, every doubt about models, and every method that changed nothing."""
    checks = []
    for where in lookup.places(numbers.cases):
        for subject, method in zip(words.CHECKS, CHECKED, strict=True):
            row = judgements.verdict(where, method)
            distance = judgements.main_distance(where, method)
            text, tone = _check(method, row, distance)
            checks.append(Check(where, subject, "" if distance is None else _number(distance), text, tone))
    for case in numbers.cases:
        name = naming.method(case["method"])
        if failure := numbers.failure(case):
            wrong = [("no method failed", f"{name} failed: {failure}")]
        else:
            failures = map(lookup.failed, numbers.failures(case))
            wrong = [("no attack or metric failed", f"{name}: {failed}") for failed in failures]
            wrong += [("logits are what they say", f"{name}: {doubt}") for doubt in numbers.noted(case, "doubt")]
            if numbers.unchanged(case):
                wrong.append(("every method acts", f"{name} returned exactly the models it was given"))
        checks += [Check(lookup.place(case), subject, "", text, "bad") for subject, text in wrong]
    return checks


def reference(numbers: Numbers, where: Place, attack: str = "") -> tuple[str, Cell]:
    """Return the retrained models to whose number those of methods are shown in comparison, as ("retrain_control" or
    "retrain", number).

    They are the control, because it is independent of the models that metrics compare with. If its interval is more
    than 1.5 times as wide as that of retrain, retrain is returned: the control of a protocol may have only half of the
    models. Without a number of either, the result is "" and an empty cell.
    """
    cases = {name: lookup.at(numbers.cases, where, name) for name in YARDSTICKS}
    cells = [(name, numbers.primary(case, attack)[1]) for name, case in cases.items() if case]
    cells = [(name, cell) for name, cell in cells if not cell.empty]
    if len(cells) == 2 and _width(cells[0][1]) > 1.5 * _width(cells[1][1]):
        cells.reverse()
    return cells[0] if cells else ("", lookup.missing("the scenario has no retrained models"))


def _method(numbers: Numbers, judgements: Decisions, case: dict[str, Any]) -> str:
    """Return the sentence on one method in a scenario: its verdict in words, or that it failed, changed nothing, or
    has no verdict."""
    row = judgements.verdict(lookup.place(case), case["method"])
    if failure := numbers.failure(case):
        return failure if row and row["verdict"] == decide.BROKEN else "failed, so there is no number"
    if numbers.unchanged(case):
        return "changed nothing: its models are those it was given"
    if row is None:
        return "no verdict: no metric of this scenario says how far it is from retraining"
    return _sentence(judgements, lookup.place(case), row)


def _sentence(judgements: Decisions, where: Place, row: dict[str, Any]) -> str:
    """Return the verdict of a row in words, with the distance and p-value that it rests on, how the method compares
    with doing nothing, and remarks. Without a distance, the row's note says why."""
    distance = judgements.main_distance(where, row["method"])
    if distance is None:
        return f"{decisions.word(row)}: {row['note']}"
    by, bare = (f"{decisions.source(distance)} {write(distance)}" for write in (decisions.distance, _number))
    far = bare if distance["scale"] == "difference" else by
    p = decisions.probability(row["p_holm"])
    match row["verdict"]:
        case decide.EQUIVALENT:
            text = f"like retraining within {decisions.margin(distance)}: {by}"
        case decide.DISTINGUISHABLE:
            text = f"traces remain: {far}, {p}"
        case decide.OVER_UNLEARNED:
            text = f"over-unlearned, forgotten samples look less familiar than samples never seen: {far}, {p}"
        case decide.BROKEN:
            text = f"model damaged: {_broken(judgements, where, row)}"
        case _:
            word, lone = words.state(row["verdict"]).word, judgements.condition(where, row["method"])
            if row["verdict"] == decide.NO_YARDSTICK and lone:
                return f"{word}: {decisions.source(distance)} {lone}"
            return f"{word}: {by}, {p}; {verdicts.why(judgements, where, row['method'], row)}"
    note = judgements.of(where, row["method"])[distance["metric"]]["note"]
    if row["verdict"] == decide.OVER_UNLEARNED:  # the text says so already
        note = note.removesuffix(FAR_SIDE).removesuffix("; ")
    return "; ".join(filter(None, (text, _against(row), verdicts.besides(judgements, where, row), note)))


def _against(row: dict[str, Any]) -> str:
    """Return how a method compares with the models before unlearning: worse, not distinguishable, better, or the share
    of traces that it removes; "" if they were not compared."""
    if row["against_none"] == decide.WORSE:
        return "worse than doing nothing"
    if row["against_none"] == decide.LIKE:
        far = "neither shown to be nearer to retraining than doing nothing nor further, but in the opposite direction"
        return far if row["verdict"] == decide.OVER_UNLEARNED else "not distinguishable from doing nothing"
    if row["verdict"] == decide.OVER_UNLEARNED or not decisions.share(row):
        return "better than doing nothing" if row["against_none"] else ""
    return f"removes {decisions.share(row)} of what doing nothing leaves"


def _broken(judgements: Decisions, where: Place, row: dict[str, Any]) -> str:
    """Return by how much the utility of a damaged model is below that of retraining, for each measure on which it
    counts as broken; "" if there is none."""
    gaps, losses = judgements.of(where, row["method"]), []
    for name, role in words.UTILITY.items():
        if name in gaps and (gap := gaps[name])["broken"] == 1:
            value, low, high = (f"{100 * gap[part]:.0f}" for part in ("distance", "ci_low", "ci_high"))
            loss = f"{_number(gap)} times" if gap["scale"] == "log" else f"{value} [{low}, {high}] points below"
            losses.append(f"{role} is {loss} that of retraining")
    return ", ".join(losses)


def _check(method: str, row: dict[str, Any] | None, distance: dict[str, Any] | None) -> tuple[str, str]:
    """Return a sentence on whether a reference compares with retraining as it should, and "good", "bad" or "" (not
    shown).

    The models before unlearning ("none") must be distinguishable from retraining, on the side of more traces. Retrained
    models must not be, and their interval must lie within the margin. Without a verdict, the sentence says why.
    """
    name = naming.method(method)
    if row is None or math.isnan(row["p_holm"]) or distance is None:
        return f"not checked: {row['note'] if row else f'there is no verdict on {name}'}", ""
    differs = row["p_holm"] <= decide.ALPHA
    p = decisions.probability(row["p_holm"])
    text = f"{name}: {decisions.source(distance)} {decisions.distance(distance)}, {p}"
    if method != "none":
        if differs:
            return f"{text}: differs from retraining, although it is retraining", "bad"
        low, high = distance["inner_low"], distance["inner_high"]
        within = distance["margin_far"] < low and high < distance["margin_near"]
        return (text, "good") if within else (f"{text}: not shown to lie within the margin", "")
    if row["verdict"] == decide.NOTHING_TO_FIND:
        return f"{text}: {sensitivity.reason(row)}", "bad"
    if differs and (distance["distance"] > 0 or decide.OTHER_SIDE in row["note"]):
        return text, "good"
    if differs:
        return f"{text}: {sensitivity.FAR_NONE}", "bad"
    why = "there is too little to find, or too few samples or models to find it"
    return f"{text}: doing nothing is not distinguishable from retraining, so {why}", "bad"


def _number(distance: dict[str, Any]) -> str:
    cell = decisions.size(distance)
    return interval(cell, max(decimals([cell]), 2))


def _width(cell: Cell) -> float:
    return cell.high - cell.low if cell.bounded else math.inf
