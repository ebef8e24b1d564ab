"""A study's table in long form: a section for each method, a line for each place, a column for each metric."""

import itertools

from unlearning_audit.display import lookup, naming
from unlearning_audit.display.lookup import Cell, Numbers, missing
from unlearning_audit.display.tables import cells, published
from unlearning_audit.display.tables.cells import Ask
from unlearning_audit.display.tables.typeset import Entry, Head, Line, Sheet, decimals, entry, finer, number

#: Suffix of the standard deviation of a metric over models.
SPREAD = "_sd"


def sheet(numbers: Numbers, order: dict, printed: list[dict]) -> Sheet:
    """As `grid.sheet`, the other way round. Where a metric comes with its standard deviation over models, this stands
    in the place of the interval ("0.55 ± 0.10"), on our side and on the paper's; the csv has both."""
    wish = order["table"]
    asks = list(dict.fromkeys(ask for _, ask in cells.columns_of(numbers, wish)))
    places, methods = lookup.places(numbers.cases), lookup.methods(numbers.cases)
    found = {
        (name, where, ask): _Found(numbers, lookup.at(numbers.cases, where, name), ask, printed)
        for name, where, ask in itertools.product(methods, places, asks)
    }
    besides = {ask for (*_, ask), one in found.items() if not one.theirs.empty}
    lines, records = [], []
    for name, where in itertools.product(methods, places):
        if lookup.at(numbers.cases, where, name) is None:
            continue
        entries: list[Entry] = []
        for ask in asks:
            one = found[name, where, ask]
            shown, record = one.shown(*_digits([other for (*_, its), other in found.items() if its == ask]))
            entries += shown if ask in besides else shown[:1]
            own = {**cells.who(name, where), **cells.what(one.cell, ask), "sd": one.spread.value}
            records.append({**own, **(record if printed else {}), "note": one.note()})
        label = cells.place_name(numbers, wish["columns"], where)
        lines.append(Line(label, tuple(entries), section=naming.method(name)))
    heads = [head for ask in asks for head in _heads(ask, asks, ask in besides, bool(printed))]
    corner = naming.axis(wish["columns"]) if wish["columns"] != "scenario" else "scenario"
    reading = cells.reading(list(dict.fromkeys(ask.metric for ask in asks)))
    return Sheet(order["name"], wish["title"], reading, corner, tuple(heads), tuple(lines), records=tuple(records))


class _Found:
    """What was measured and printed for one method in one place: numbers and their standard deviations."""

    def __init__(self, numbers: Numbers, case: dict | None, ask: Ask, printed: list[dict]) -> None:
        self.case, self.printed = case, printed
        self.cell = self.spread = self.theirs = self.their_spread = missing("")
        self.remark = ""
        if case is None:
            return
        self.cell = numbers.cell(case, *ask)
        self.spread = numbers.cell(case, ask.metric + SPREAD, ask.attack, ask.where)
        if printed and self.cell.metric:
            self.theirs, self.remark = published.beside(printed, case, self.cell)
        if printed and self.spread.metric:
            self.their_spread, _ = published.beside(printed, case, self.spread)

    def shown(self, known: int, digits: int) -> tuple[list[Entry], dict]:
        """Ours, theirs and the difference as entries, and the record of the last two."""
        ours = entry(self.cell, digits, bare=not self.spread.empty)
        (theirs, gap), record = cells.compared(self.cell, self.theirs, self.remark, known, digits)
        entries = [_with(ours, self.cell, self.spread, digits), _with(theirs, self.theirs, self.their_spread, known)]
        return [*entries, gap], {**record, "published_sd": self.their_spread.value}

    def note(self) -> str:
        """What is to be said about it in the csv."""
        return "; ".join(filter(None, (cells.remarks(self.cell), self.remark)))


def _with(shown: Entry, cell: Cell, spread: Cell, digits: int) -> Entry:
    if cell.empty or spread.empty:
        return shown
    return Entry(f"{shown.text} ± {number(spread.value, digits)}", shown.notes, shown.tone)


def _digits(column: list[_Found]) -> tuple[int, int]:
    """Decimals of one column as printed, and as shown."""
    asked = [one for one in column if not one.theirs.empty]
    known = max((published.places(one.printed, one.case, one.cell) for one in asked), default=0)
    return known, finer(decimals(one.cell for one in column), known)


def _heads(ask: Ask, asks: list[Ask], beside: bool, printed: bool) -> list[Head]:
    name = cells.told(ask, asks) or naming.meaning(ask.metric).display_name
    if beside:
        return [Head("ours", name), Head("paper", name), Head("ours − paper", name, (cells.HELD,))]
    return [Head(name, notes=(cells.UNPRINTED,) if printed else ())]
