"""A study's table: metrics of every method (lines) in every scenario or along an axis (columns)."""

import itertools
import math
from pathlib import Path
from typing import NamedTuple

from unlearning.display import headline, pivot, published, words
from unlearning.display.pivot import Cell, Numbers, missing
from unlearning.display.sheet import Entry, Head, Line, Sheet, decimals, entry, number
from unlearning.metrics.swap import swap_lower_bound

HELD = "∈: our 95 % interval holds the printed number; ∉: it does not"
UNPRINTED = "the paper prints no number that belongs here"
UNASKED = (missing(""), "")
TONES = {True: ("∈", "good"), False: ("∉", "bad")}


class Ask(NamedTuple):
    """What a column shows: one metric, under one attack and setting ("" = as `Numbers.cell` takes it)."""

    metric: str
    attack: str
    setting: str


Column = tuple[tuple[str, str], Ask]


def sheets_of(numbers: Numbers, order: dict, printed: str | Path) -> list[Sheet]:
    """What ``order`` asks for: the headline, or an entry of ``tables`` with the paper's file at hand."""
    if order["table"] is None:
        return headline.sheets(numbers, order)
    wanted = order["table"]["published"]
    return [sheet(numbers, order, published.read(printed, wanted) if wanted else [])]


def sheet(numbers: Numbers, order: dict, printed: list[dict]) -> Sheet:
    """The sheet of one entry of a study's ``tables``.

    ``order`` as ``orders.table`` gives it; ``printed`` the rows of the paper's table, empty where none is
    wanted. Every pair of scenario and axis setting is a column, in study order, or one for each thing that is asked
    of it; where the paper prints a number for it, its number and the difference stand beside.
    """
    wish = order["table"]
    columns, methods = columns_of(numbers, wish), pivot.methods(numbers.cases)
    cases = {(column, name): pivot.at(numbers.cases, column[0], name) for column in columns for name in methods}
    cells = {
        (column, name): numbers.cell(case, *column[1]) if case else missing("the scenario does not ask for this method")
        for (column, name), case in cases.items()
    }
    theirs = {
        key: published.beside(printed, cases[key], cell) for key, cell in cells.items() if printed and cell.metric
    }
    besides = {column for (column, _), (found, _) in theirs.items() if not found.empty}
    places = {}  # metric → decimals as printed, and as shown
    for metric in dict.fromkeys(ask.metric for _, ask in columns):
        same = [key for key in cells if key[0][1].metric == metric]
        known = max((published.places(printed, cases[key], cells[key]) for key in same if key in theirs), default=0)
        places[metric] = known, max(decimals(cells[key] for key in same), known)
    lines, records = [], []
    for name in methods:
        entries: list[Entry] = []
        for column in columns:
            where, ask = column
            cell, their = cells[column, name], theirs.get((column, name), UNASKED)
            known, digits = places[ask.metric]
            shown, beside = _beside(cell, *their, known, digits)
            entries += [entry(cell, digits), *(shown if column in besides else ())]
            note = "; ".join(filter(None, (_note(cell), their[1])))
            records.append({**_who(name, where), **_what(cell, ask), **(beside if printed else {}), "note": note})
        lines.append(Line(words.method(name), tuple(entries)))
    footer, more = _footer(numbers, wish, columns, printed, besides)
    return Sheet(
        order["name"],
        wish["title"],
        _reading(list(places)),
        "method",
        tuple(_heads(numbers, wish, columns, besides, bool(printed))),
        tuple(lines),
        tuple(footer),
        tuple(records + more),
    )


def columns_of(numbers: Numbers, wish: dict) -> list[Column]:
    """What is asked of every place: each of the metrics, attacks and settings that a table names.

    Of several, those that no method there answers are left out; of none that is answered the first stays, to say why.
    """
    lists = ([x] if isinstance(x, str) else x for x in (wish["metric"], wish["attack"], wish["setting"]))
    asks = [Ask(*one) for one in itertools.product(*lists)]
    found: list[Column] = []
    for where in pivot.places(numbers.cases):
        cases = [case for case in numbers.cases if pivot.place(case) == where]
        known = [ask for ask in asks if any(numbers.cell(case, *ask).metric for case in cases)]
        found += [(where, ask) for ask in known or asks[:1]]
    return found


def _reading(metrics: list[str]) -> str:
    """How to read the metrics; each by its name where there are several."""
    meanings = [words.meaning(metric) for metric in metrics]
    if len(meanings) == 1:
        return meanings[0].reading
    return " ".join(f"{meaning.label}: {meaning.reading}" for meaning in meanings if meaning.reading)


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


def _heads(numbers: Numbers, wish: dict, columns: list[Column], besides: set, printed: bool) -> list[Head]:
    """One head for each column, or three under its name where the paper stands beside."""
    heads = []
    group = words.axis(wish["columns"]) if wish["columns"] != "scenario" else ""
    asks = list(dict.fromkeys(ask for _, ask in columns))
    several = len({where for where, _ in columns}) > 1
    for where, ask in columns:
        place, own = _column(numbers, wish["columns"], where), _told(ask, asks)
        whole = f"{group} = {place}" if group else place
        name = ", ".join(filter(None, (whole if several or not own else "", own)))
        notes = (UNPRINTED,) if printed else ()
        if (where, ask) in besides:
            heads += [Head("ours", name), Head("paper", name), Head("ours − paper", name, (HELD,))]
        elif besides:
            heads.append(Head("ours", name, notes))
        elif own:
            heads.append(Head(own, whole if several else "", notes))
        else:
            heads.append(Head(place, group, notes))
    return heads


def _told(ask: Ask, asks: list[Ask]) -> str:
    """What tells a question from the others of its table."""
    shown = (words.meaning(ask.metric).label, ask.attack.replace("_", " "), words.setting(ask.setting) or "all")
    differ = [len({one[i] for one in asks}) > 1 for i in range(len(ask))]
    return ", ".join(text for text, own in zip(shown, differ, strict=True) if own and text)


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
    numbers: Numbers, wish: dict, columns: list[Column], printed: list[dict], besides: set
) -> tuple[list[Line], list[dict]]:
    """What stands below the methods, once for each place: test accuracy of the originals, and what the privacy budget
    guarantees."""
    lines, records = [], []
    makers = {"accuracy": ("test accuracy before", _accuracy), "lower_bound": ("guaranteed by DP", _lower_bound)}
    for kind in wish["footer"]:
        title, make = makers[kind]
        cells = {where: make(numbers, where) for where, _ in columns}
        nones = {where: pivot.at(numbers.cases, where, "none") for where in cells}
        theirs = {
            where: published.beside(printed, nones[where], cell)
            if nones[where] and kind == "accuracy" and printed
            else UNASKED
            for where, cell in cells.items()
        }
        asked = [where for where, their in theirs.items() if their is not UNASKED]
        known = max((published.places(printed, nones[where], cells[where]) for where in asked), default=0)
        digits = decimals(cells.values())
        entries: list[Entry] = []
        for i, (where, ask) in enumerate(columns):
            blank = [Entry(""), Entry("")]
            if i and columns[i - 1][0] == where:
                entries += [Entry(""), *(blank if (where, ask) in besides else ())]
                continue
            cell, their = cells[where], theirs[where]
            shown, beside = _beside(cell, *their, known, max(digits, known))
            entries.append(entry(cell, digits, bare=True))
            entries += (blank if their[0].empty else shown) if (where, ask) in besides else []
            who = _who("none" if kind == "accuracy" else "", where)
            note = "; ".join(filter(None, (_note(cell), their[1])))
            number_of = _what(cell, Ask(kind, "", ""))
            records.append({**who, **number_of, **(beside if printed else {}), "note": note})
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


def _what(cell: Cell, ask: Ask) -> dict:
    """The metric as asked for, and the number in full."""
    metric = ";".join(filter(None, (ask.metric, cell.setting or ask.setting)))
    values = {"value": cell.value, "ci_low": cell.low, "ci_high": cell.high, "n": cell.n}
    return {"attack": cell.attack, "metric": metric, **values}


def _note(cell: Cell) -> str:
    return "; ".join(filter(None, [pivot.UNCHANGED if cell.flag == "unchanged" else cell.flag, cell.note]))
