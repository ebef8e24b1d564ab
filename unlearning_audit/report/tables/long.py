"""A study's table in long form: a section for each method, a line for each place, a column for each metric."""

import itertools
from typing import Any

from unlearning_audit.report import lookup, naming, words
from unlearning_audit.report.lookup import Cell, Numbers, missing
from unlearning_audit.report.tables import cells, published
from unlearning_audit.report.tables.cells import Ask
from unlearning_audit.report.tables.typeset import Entry, Head, Line, Sheet, decimals, entry, finer, number

#: Suffix of the standard deviation of a metric over models.
SPREAD = "_sd"


def sheet(numbers: Numbers, order: dict[str, Any], printed: list[dict[str, Any]]) -> Sheet:
    """As `grid.sheet`, the other way round. Where a metric comes with its standard deviation over models, this stands
    in the place of the interval ("0.55 ± 0.10"), on our side and on the paper's; the csv has both."""
    wish = order["table"]
    asks = list(dict.fromkeys(ask for _, ask in cells.columns_of(numbers, wish)))
    places, methods = lookup.places(numbers.cases), lookup.methods(numbers.cases)
    measured = {
        (name, where, ask): _Cells(numbers, lookup.at(numbers.cases, where, name), ask, printed)
        for name, where, ask in itertools.product(methods, places, asks)
    }
    besides = {ask for (*_, ask), line in measured.items() if not line.paper.empty}
    lines, records = [], []
    for name, where in itertools.product(methods, places):
        if lookup.at(numbers.cases, where, name) is None:
            continue
        entries: list[Entry] = []
        for ask in asks:
            line = measured[name, where, ask]
            column = [neighbour for (*_, question), neighbour in measured.items() if question == ask]
            of_line, record = line.entries(*_digits(column))
            entries += of_line if ask in besides else of_line[:1]
            fields = {**cells.method_fields(name, where), **cells.cell_fields(line.cell, ask), "sd": line.spread.value}
            records.append({**fields, **(record if printed else {}), "note": line.note()})
        label = cells.place_name(numbers, wish["columns"], where)
        lines.append(Line(label, tuple(entries), section=naming.method(name)))
    heads = [head for ask in asks for head in _heads(ask, asks, ask in besides, bool(printed))]
    corner = naming.axis(wish["columns"]) if wish["columns"] != "scenario" else "scenario"
    reading = cells.reading(list(dict.fromkeys(ask.metric for ask in asks)))
    return Sheet(order["name"], wish["title"], reading, corner, tuple(heads), tuple(lines), records=tuple(records))


class _Cells:
    """What was measured and printed for one method in one place: numbers and their standard deviations."""

    def __init__(self, numbers: Numbers, case: dict[str, Any] | None, ask: Ask, printed: list[dict[str, Any]]) -> None:
        self.case, self.printed = case, printed
        self.cell = self.spread = self.paper = self.paper_spread = missing("")
        self.remark = ""
        if case is None:
            return
        self.cell = numbers.cell(case, *ask)
        self.spread = numbers.cell(case, ask.metric + SPREAD, ask.attack, ask.where)
        if printed and self.cell.metric:
            self.paper, self.remark = published.beside(printed, case, self.cell)
        if printed and self.spread.metric:
            self.paper_spread, _ = published.beside(printed, case, self.spread)

    def entries(self, places: int, digits: int) -> tuple[list[Entry], dict[str, Any]]:
        """Ours, theirs and the difference as entries, and the record of the last two."""
        value = entry(self.cell, digits, bare=not self.spread.empty)
        (paper, gap), record = cells.compared(self.cell, self.paper, self.remark, places, digits)
        entries = [_with(value, self.cell, self.spread, digits), _with(paper, self.paper, self.paper_spread, places)]
        return [*entries, gap], {**record, "published_sd": self.paper_spread.value}

    def note(self) -> str:
        """What is to be said about it in the csv."""
        return "; ".join(filter(None, (cells.remarks(self.cell), self.remark)))


def _with(value: Entry, cell: Cell, spread: Cell, digits: int) -> Entry:
    if cell.empty or spread.empty:
        return value
    return Entry(f"{value.text} ± {number(spread.value, digits)}", value.notes, value.tone)


def _digits(column: list[_Cells]) -> tuple[int, int]:
    """Decimals of one column as printed, and as shown."""
    compared = [line for line in column if not line.paper.empty]
    places = max((published.places(line.printed, line.case, line.cell) for line in compared), default=0)
    return places, finer(decimals(line.cell for line in column), places)


def _heads(ask: Ask, asks: list[Ask], beside: bool, printed: bool) -> list[Head]:
    name = cells.difference(ask, asks) or naming.meaning(ask.metric).display_name
    if beside:
        return cells.beside(name)
    return [Head(name, notes=(words.UNPRINTED,) if printed else ())]
