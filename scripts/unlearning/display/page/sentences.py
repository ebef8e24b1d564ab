"""Sentences from numbers: what each method left to find, and whether the controls hold."""

import math
from dataclasses import dataclass

from unlearning.comparisons.meta import BROKEN
from unlearning.display import lookup, naming
from unlearning.display.lookup import Cell, Numbers
from unlearning.display.tables.typeset import decimals, interval

YARDSTICKS = ("retrain_control", "retrain")

CHECKS = ("retrain is perfect", "two retrainings agree", "none is found out")


@dataclass(frozen=True)
class Verdict:
    """What is said about one method or check in one scenario.

    ``value`` is the number it rests on, ``text`` what follows from it, tone "good", "bad" or "" (undecided).
    """

    place: tuple[str, str]
    subject: str
    value: str
    text: str
    tone: str = ""


def methods(numbers: Numbers) -> list[Verdict]:
    """A verdict on every method that is no reference, in study order."""
    return [_method(numbers, case) for case in numbers.cases if case["method"] not in naming.REFERENCES]


def controls(numbers: Numbers) -> list[Verdict]:
    """Every check of `CHECKS` in every scenario, then whatever failed or changed nothing."""
    found = []
    for where in lookup.places(numbers.cases):
        cells = {name: _cell(numbers, where, name) for name in naming.REFERENCES}
        metric = next((m for m, _ in cells.values() if m), "")
        none, retrain, control = (cells[name][1] for name in naming.REFERENCES)
        checks = (_perfect(metric, retrain), _agree(metric, retrain, control), _power(metric, none, _best(cells)))
        read = (retrain, control, none)
        for subject, cell, (text, tone) in zip(CHECKS, read, checks, strict=True):
            found.append(Verdict(where, subject, "" if cell.empty else interval(cell, decimals([cell])), text, tone))
    for case in numbers.cases:
        if failure := numbers.failure(case):
            found.append(Verdict(lookup.place(case), "no method failed", "", f"{_name(case)} failed: {failure}", "bad"))
            continue
        for row in numbers.failures(case):
            text = f"{_name(case)}: {lookup.failed(row)}"
            found.append(Verdict(lookup.place(case), "no attack or metric failed", "", text, "bad"))
        for text in numbers.doubts(case):
            found.append(Verdict(lookup.place(case), "logits are what they say", "", f"{_name(case)}: {text}", "bad"))
        if numbers.unchanged(case):
            text = f"{_name(case)} returned exactly the models it was given"
            found.append(Verdict(lookup.place(case), "every method acts", "", text, "bad"))
    return found


def compare(metric: str, one: Cell, other: Cell) -> str:
    """ "better", "worse", "like" (the intervals overlap) or "" where an interval is missing."""
    if not (one.bounded and other.bounded):
        return ""
    lower = naming.meaning(metric).better == "lower"
    if one.low > other.high:
        return "worse" if lower else "better"
    if one.high < other.low:
        return "better" if lower else "worse"
    return "like"


def shown(label: str, cell: Cell) -> str:
    """ "Q 0.91 [0.88, 0.94]"."""
    return f"{label} {interval(cell, decimals([cell]))}"


def yardstick(numbers: Numbers, where: tuple[str, str]) -> tuple[str, Cell]:
    """The retrained models that others are held against: (method, number)."""
    cells = {name: _cell(numbers, where, name)[1] for name in YARDSTICKS}
    return _yardstick(cells) or ("", lookup.missing("the scenario retrains no model"))


def _yardstick(cells: dict[str, Cell]) -> tuple[str, Cell] | None:
    """The control, which took no part in the game, unless its interval is more than half as wide again: that of the
    competition, say, holds one half of the retrained models against the other."""
    found = [(name, cells[name]) for name in YARDSTICKS if not cells[name].empty]
    if len(found) == 2 and _width(found[0][1]) > 1.5 * _width(found[1][1]):
        found.reverse()
    return found[0] if found else None


def _method(numbers: Numbers, case: dict) -> Verdict:
    where, name = lookup.place(case), _name(case)
    if numbers.failure(case):
        return Verdict(where, name, "", "failed, so there is no number", "bad")
    metric, cell = numbers.primary(case)
    if cell.empty:
        return Verdict(where, name, "", f"no number: {cell.note}")
    value = shown(naming.meaning(metric).shown, cell)
    if numbers.unchanged(case):
        return Verdict(where, name, value, "changed nothing, its models are those it was given", "bad")
    if gap := lost(numbers, case):
        text = f"forgot by breaking the model: test accuracy is {_points(gap)} points below that of retraining"
        return Verdict(where, name, value, text, "bad")
    standard, best = yardstick(numbers, where)
    if not standard and metric == "right_guesses":
        return Verdict(where, name, value, *_coins(numbers.cell(case, "one_run_p", cell.attack)))
    if not standard:
        return Verdict(where, name, value, "no retrained models to hold it against")
    _, none = _cell(numbers, where, "none")
    ground = compare(metric, none, best)
    if ground in ("like", "better"):
        why = "cannot be told from" if ground == "like" else "reads better than"
        return Verdict(where, name, value, f"no verdict, for none itself {why} {_article(standard)}")
    text, tone = _relation(compare(metric, cell, best), compare(metric, cell, none), _article(standard), none.empty)
    return Verdict(where, name, value, text, tone)


def _coins(p: Cell) -> tuple[str, str]:
    """What follows from the p-value of a one-run audit, which needs no retrained models, and the tone."""
    if p.value < 0.05:
        return f"something is left: so many right guesses have p = {p.value:.1g} if nothing is", "bad"
    return f"nothing was found (p = {p.value:.2f}), which does not show that nothing is left", ""


def lost(numbers: Numbers, case: dict) -> Cell | None:
    """The test accuracy that a method lacks to retraining, where it is surely more than `meta.BROKEN`; else None.

    The paired gap, where it was measured; else the two accuracies, of which the intervals must lie so far apart.
    """
    if case["method"] in naming.REFERENCES:
        return None
    gap = numbers.cell(case, "accuracy_gap", setting="role=test")
    if gap.empty:
        retrain = lookup.at(numbers.cases, lookup.place(case), "retrain")
        if retrain is None:
            return None
        best, own = (numbers.cell(one, "accuracy", setting="role=test") for one in (retrain, case))
        gap = Cell(best.value - own.value, best.low - own.high, best.high - own.low)
    return gap if gap.low > BROKEN else None


def _points(gap: Cell) -> str:
    return f"{100 * gap.value:.0f} [{100 * gap.low:.0f}, {100 * gap.high:.0f}]"


def _relation(to_best: str, to_none: str, best: str, alone: bool) -> tuple[str, str]:
    """What the comparisons with the yardstick and with none say together."""
    if not to_best:
        return "without an interval that could be compared", ""
    if alone:
        return {"like": f"it cannot be told from {best}", "worse": f"below {best}", "better": f"above {best}"}[
            to_best
        ], ""
    match to_best, to_none:
        case "worse", "worse":
            return "worse than doing nothing", "bad"
        case "worse", "better":
            return f"better than none, yet below {best}", ""
        case "worse", _:
            return f"below {best}; it cannot be told from none", "bad"
        case "like", "better":
            return f"better than none; it cannot be told from {best}", "good"
        case "like", _:
            return f"may be as good as {best} or as poor as none: too few samples or models to say", ""
        case _:
            return f"above {best}, which should not be possible: look for over-unlearning", ""


def _perfect(metric: str, retrain: Cell) -> tuple[str, str]:
    label = naming.meaning(metric).shown
    if retrain.empty or not retrain.bounded:
        return f"not checked: {retrain.note or 'retrain has no interval'}", ""
    ideal = naming.ideal(metric)
    if ideal is None:
        return f"not checked: no value of {label} is the right one for retrained models", ""
    if retrain.low - 1e-9 <= ideal <= retrain.high + 1e-9:
        return f"retrain reads {shown(label, retrain)}, which holds {ideal:g}, as it must", "good"
    return (
        f"{shown(label, retrain)} misses {ideal:g}: attacks find what retrained models never saw",
        "bad",
    )


def _agree(metric: str, retrain: Cell, control: Cell) -> tuple[str, str]:
    label = naming.meaning(metric).shown
    if not (retrain.bounded and control.bounded):
        return "not checked: it needs the method retrain and controls switched on", ""
    if compare(metric, retrain, control) == "like":
        return f"{shown(label, retrain)} and {shown(label, control)} overlap", "good"
    return f"{shown(label, retrain)} and {shown(label, control)} do not overlap: an interval is too narrow", "bad"


def _power(metric: str, none: Cell, best: Cell) -> tuple[str, str]:
    label, relation = naming.meaning(metric).shown, compare(metric, none, best)
    if not relation:
        return "not checked: it needs the methods none and retrain", ""
    if relation == "worse":
        return f"none, {shown(label, none)}, reads worse than retraining, {shown(label, best)}", "good"
    if relation == "better":
        return (
            f"none, {shown(label, none)}, reads better than retraining, {shown(label, best)}: no sign of forgetting",
            "bad",
        )
    return (
        f"none, {shown(label, none)}, cannot be told from retraining, {shown(label, best)}: too few samples or "
        "models, or too weak attacks, so no verdict on a method has weight here",
        "bad",
    )


def _best(cells: dict[str, tuple[str, Cell]]) -> Cell:
    found = _yardstick({name: cells[name][1] for name in YARDSTICKS})
    return found[1] if found else cells["retrain"][1]


def _width(cell: Cell) -> float:
    return cell.high - cell.low if cell.bounded else math.inf


def _cell(numbers: Numbers, where: tuple[str, str], method: str) -> tuple[str, Cell]:
    case = lookup.at(numbers.cases, where, method)
    return numbers.primary(case) if case else ("", lookup.missing(f"the scenario does not list the method {method}"))


def _name(case: dict) -> str:
    return naming.method(case["method"])


def _article(standard: str) -> str:
    return "the retrain control" if standard == "retrain_control" else "retraining"
