"""A study's table: one metric of every method (lines) in every scenario or along an axis (columns)."""

import math
from pathlib import Path

from unlearning.display import headline, pivot, published, words
from unlearning.display.pivot import Cell, Numbers, missing
from unlearning.display.sheet import Entry, Head, Line, Sheet, decimals, entry, number
from unlearning.metrics.swap import swap_lower_bound

HELD = "∈: our 95 % interval holds the printed number; ∉: it does not"
UNPRINTED = "the paper prints no number that belongs here"
UNASKED = (missing(""), "")
TONES = {True: ("∈", "good"), False: ("∉", "bad")}


def sheets_of(numbers: Numbers, order: dict, printed: str | Path) -> list[Sheet]:
    """What ``order`` asks for: the headline, or an entry of ``tables`` with the paper's file at hand."""
    if order["table"] is None:
        return headline.sheets(numbers, order)
    wanted = order["table"]["published"]
    return [sheet(numbers, order, published.read(printed, wanted) if wanted else [])]


def sheet(numbers: Numbers, order: dict, printed: list[dict]) -> Sheet:
    """The sheet of one entry of a study's ``tables``.

    ``order`` as ``orders.table`` gives it; ``printed`` the rows of the paper's table, empty where none is
    wanted. Every pair of scenario and axis setting is a column, in study order; where the paper prints a number
    for it, its number and the difference stand beside.
    """
    wish = order["table"]
    places, methods = pivot.places(numbers.cases), pivot.methods(numbers.cases)
    cases = {(where, name): pivot.at(numbers.cases, where, name) for where in places for name in methods}
    cells = {
        key: numbers.cell(case, wish["metric"], wish["attack"], wish["setting"])
        if case
        else missing("the scenario does not ask for this method")
        for key, case in cases.items()
    }
    theirs = {
        key: published.beside(printed, cases[key], cell) for key, cell in cells.items() if printed and cell.metric
    }
    besides = {where for (where, _), (found, _) in theirs.items() if not found.empty}
    known = published.decimals(row["value"] for row in printed)
    digits = max(decimals(cells.values()), known)
    lines, records = [], []
    for name in methods:
        entries: list[Entry] = []
        for where in places:
            cell, their = cells[where, name], theirs.get((where, name), UNASKED)
            shown, beside = _beside(cell, *their, known, digits)
            entries += [entry(cell, digits), *(shown if where in besides else ())]
            note = "; ".join(filter(None, (_note(cell), their[1])))
            records.append({**_who(name, where), **_what(cell, wish), **(beside if printed else {}), "note": note})
        lines.append(Line(words.method(name), tuple(entries)))
    footer, more = _footer(numbers, wish, places, printed, besides)
    return Sheet(
        order["name"],
        wish["title"],
        words.meaning(wish["metric"]).reading,
        "method",
        tuple(_heads(numbers, wish, places, besides, bool(printed))),
        tuple(lines),
        tuple(footer),
        tuple(records + more),
    )


def _beside(cell: Cell, found: Cell, remark: str, known: int, digits: int) -> tuple[list[Entry], dict]:
    """The paper's number and ours minus theirs, as entries and for the record.

    Whether our interval holds theirs is said by a sign, and by colour where both sides did the same.
    """
    shown = entry(found, known)
    held, gap = published.inside(cell, found, known), cell.value - found.value
    sign, tone = TONES.get(held, ("", ""))
    text = "—" if math.isnan(gap) else f"{'+' if gap > 0 else ''}{number(gap, digits)} {sign}".strip()
    entries = [Entry(shown.text, (*shown.notes, *filter(None, [remark]))), Entry(text, tone="" if remark else tone)]
    return entries, {"published": found.value, "difference": gap, "inside": "" if held is None else str(held).lower()}


def _heads(numbers: Numbers, wish: dict, places: list, besides: set, printed: bool) -> list[Head]:
    """One column for each place, or three under its name where the paper stands beside."""
    heads = []
    group = words.axis(wish["columns"]) if wish["columns"] != "scenario" else ""
    for where in places:
        name = _column(numbers, wish["columns"], where)
        whole = f"{group} = {name}" if group else name
        if where in besides:
            heads += [Head("ours", whole), Head("paper", whole), Head("ours − paper", whole, (HELD,))]
        elif besides:
            heads.append(Head("ours", whole, (UNPRINTED,)))
        else:
            heads.append(Head(name, group, (UNPRINTED,) if printed else ()))
    return heads


def _column(numbers: Numbers, axis: str, where: tuple[str, str]) -> str:
    """A column's name: the axis value, with whatever else tells it from its neighbours."""
    axes = next(case["axes"] for case in numbers.cases if pivot.place(case) == where)
    several = len({case["scenario"] for case in numbers.cases}) > 1
    if axis == "scenario" or axis not in axes:
        return pivot.label(where)
    others = {name: value for name, value in axes.items() if name != axis}
    parts = [where[0].replace("_", " ")] if several else []
    parts += [f"{name} = {words.value(value)}" for name, value in others.items()]
    return ", ".join([*parts, words.value(axes[axis])])


def _footer(
    numbers: Numbers, wish: dict, places: list, printed: list[dict], besides: set
) -> tuple[list[Line], list[dict]]:
    """What stands below the methods: test accuracy of the originals, and what the privacy budget guarantees."""
    lines, records = [], []
    makers = {"accuracy": ("test accuracy before", _accuracy), "lower_bound": ("guaranteed by DP", _lower_bound)}
    known = published.decimals(row["value"] for row in printed)
    for kind in wish["footer"]:
        title, make = makers[kind]
        cells = {where: make(numbers, where) for where in places}
        digits = decimals(cells.values())
        entries: list[Entry] = []
        for where, cell in cells.items():
            none = pivot.at(numbers.cases, where, "none")
            their = published.beside(printed, none, cell) if none and kind == "accuracy" and printed else UNASKED
            shown, beside = _beside(cell, *their, known, max(digits, known))
            blank = [Entry(""), Entry("")]
            entries.append(entry(cell, digits, bare=True))
            entries += (blank if their[0].empty else shown) if where in besides else []
            who = _who("none" if kind == "accuracy" else "", where)
            note = "; ".join(filter(None, (_note(cell), their[1])))
            records.append({**who, **_what(cell, {"metric": kind}), **(beside if printed else {}), "note": note})
        lines.append(Line(title, tuple(entries)))
    return lines, records


def _accuracy(numbers: Numbers, where: tuple[str, str]) -> Cell:
    case = pivot.at(numbers.cases, where, "none")
    if case is None:
        return missing("the scenario does not list the method none, whose models these would be")
    return numbers.cell(case, "accuracy", setting="role=test")


def _lower_bound(numbers: Numbers, where: tuple[str, str]) -> Cell:
    facts = next(case["facts"] for case in numbers.cases if pivot.place(case) == where)
    if "delta" not in facts:
        return missing("trained without differential privacy, so nothing is guaranteed")
    bound = swap_lower_bound(epsilon=float(facts["epsilon"]), delta=facts["delta"])
    if bound <= 0:
        return missing("the guarantee says nothing at such a large ε")
    return Cell(bound, metric="lower_bound")


def _who(method: str, where: tuple[str, str]) -> dict:
    return {"scenario": where[0], "setting": where[1], "method": method}


def _what(cell: Cell, wish: dict) -> dict:
    """The metric as asked for, and the number in full."""
    metric = ";".join(filter(None, (wish["metric"], cell.setting or wish.get("setting", ""))))
    values = {"value": cell.value, "ci_low": cell.low, "ci_high": cell.high, "n": cell.n}
    return {"attack": cell.attack, "metric": metric, **values}


def _note(cell: Cell) -> str:
    return "; ".join(filter(None, [pivot.UNCHANGED if cell.flag == "unchanged" else cell.flag, cell.note]))
