"""Make the parts of all tables of metrics: which rows a column shows, the paper's number beside ours, column names."""

import itertools
import math
from dataclasses import replace
from typing import Any, NamedTuple

from unlearning_audit.evaluation.rows import Row
from unlearning_audit.report.lookup import Cell, Numbers, missing
from unlearning_audit.report.tables import Entry, Head, decimals, entry, lookup, naming, number, published, words
from unlearning_audit.report.tables.typeset import SIGNIFICANT

#: A cell without a number and without a reason.
NO_CELL = missing("")

#: Whether our interval contains the paper's number (None: unknown, without an entry) → sign and tone of the difference.
TONES: dict[bool | None, tuple[str, str]] = {True: ("∈", "good"), False: ("∉", "bad")}


class Ask(NamedTuple):
    """What a column shows: one metric, under one attack ("" for the metric's preferred one), and the fields that select
    its row (``where``), such as the role of samples."""

    metric: str
    attack: str
    where: lookup.Where


#: A (scenario, setting), and what the column shows of it.
Column = tuple[tuple[str, str], Ask]


def columns_of(numbers: Numbers, settings: dict[str, Any]) -> list[Column]:
    """Return the columns of a table: for each scenario and setting, the combinations of metric, attack and fields
    of rows (``where``, such as the role of samples) that the table's ``settings`` list.

    Combinations without a row in a scenario and setting are left out; if no combination has a row there, the first one
    is kept, so that its cells show the reason.
    """
    lists = [listed(settings[name]) for name in ("metric", "attack", "where")]
    asks = [Ask(metric, attack, pairs_of(where)) for metric, attack, where in itertools.product(*lists)]
    columns: list[Column] = []
    for where in lookup.places(numbers.cases):
        cases = [case for case in numbers.cases if lookup.place(case) == where]
        # A cell names its metric only if there is a row for the metric.
        answerable = [ask for ask in asks if any(numbers.cell(case, *ask).metric for case in cases)]
        columns += [(where, ask) for ask in answerable or asks[:1]]
    return columns


def listed(value: object) -> list[Any]:
    """Return a field of a study's table as a list: a list unchanged, a single value as a list of one."""
    return value if isinstance(value, list) else [value]


def pairs_of(where: dict[str, Any]) -> lookup.Where:
    """Convert ``where``, the fields by which a study's table picks rows of a metric (name → value), to (name, value)
    pairs in the order in which rows have them; fields with empty values are dropped."""
    # `Row` puts its fields in order; this row has no metric and is used only for that.
    return Row("", **{name: value for name, value in where.items() if value not in ("", None)}).place


def reading(metrics: list[str]) -> str:
    """Return the text that explains how to read the numbers of ``metrics``; if there are several, each text begins with
    the names of its metrics. Metrics without such a text are left out; "" if none has one."""
    meanings = [naming.meaning(metric) for metric in metrics]
    if len(meanings) == 1:
        return meanings[0].reading
    names: dict[str, list[str]] = {}  # text → the names of the metrics that it explains
    for meaning in meanings:
        names.setdefault(meaning.reading, []).append(meaning.display_name)
    return " ".join(f"{', '.join(alike)}: {text}" for text, alike in names.items() if text)


class Measured:
    """A number of one method, its standard deviation over models (``spread``), and what the paper prints for both.

    ``printed``: the rows of the paper's table; empty if the study does not name one.
    """

    def __init__(
        self, case: dict[str, Any] | None, cell: Cell, printed: list[dict[str, Any]], spread: Cell = NO_CELL
    ) -> None:
        # Without a metric, a cell is not of any quantity that a paper could print.
        self.case, self.cell, self.spread = case, cell, spread
        self.printed = printed if cell.metric else []
        self.paper, self.remark, self.paper_spread = NO_CELL, "", NO_CELL
        if case and self.printed:
            self.paper, self.remark = published.beside(printed, case, cell)
            self.paper_spread = published.beside(printed, case, spread)[0] if spread.metric else NO_CELL

    def entries(self, paper_digits: int, our_digits: int, *, bare: bool = False) -> list[Entry]:
        """Return three cells: our number, the paper's, and the difference.

        The paper's number has ``paper_digits`` decimals; ours and the difference have ``our_digits``. In the third
        cell, a sign says whether our interval contains the paper's number, and a colour says so too if both experiments
        are alike. ``bare`` leaves our interval out. A standard deviation over models takes the interval's place.
        """
        ours, paper = entry(self.cell, our_digits, bare=bare or not self.spread.empty), entry(self.paper, paper_digits)
        sign, tone = TONES.get(published.inside(self.cell, self.paper, paper_digits), ("", ""))
        gap = self.cell.value - self.paper.value
        text = "—" if math.isnan(gap) else f"{'+' if gap > 0 else ''}{number(gap, our_digits)} {sign}".strip()
        printed = replace(paper, notes=(*paper.notes, *filter(None, [self.remark])))
        return [
            _with_spread(ours, self.spread, our_digits), _with_spread(printed, self.paper_spread, paper_digits),
            Entry(text, tone="" if self.remark else tone),
        ]  # fmt: skip

    def record(self, ask: Ask, places: int) -> dict[str, Any]:
        """Return the numbers in full as a row of the csv, with the paper's number if the study names a paper's table.
        ``ask``: what the column shows; ``places``: decimals of the paper's number."""
        fields = cell_fields(self.cell, ask)
        if self.printed:
            inside = published.inside(self.cell, self.paper, places)
            fields |= {"published": self.paper.value, "difference": self.cell.value - self.paper.value,
                       "inside": "" if inside is None else str(inside).lower()}  # fmt: skip
        return {**fields, "note": "; ".join(filter(None, (remarks(self.cell), self.remark)))}


def _with_spread(value: Entry, spread: Cell, digits: int) -> Entry:
    """Return the cell ``value`` with " ± " and a standard deviation (``spread``) after its text; unchanged if the
    standard deviation is missing."""
    return value if spread.empty else replace(value, text=f"{value.text} ± {number(spread.value, digits)}")


def digits_of(column: list[Measured]) -> tuple[int, int]:
    """Return the numbers of decimals of one column: those of the numbers that the paper prints, and those of our
    numbers, which are at least as many.

    The second is `SIGNIFICANT` if our numbers get two significant digits; the paper's decimals then have no influence.
    """
    printed = max((published.most_decimals(number.printed, number.case, number.cell) for number in column), default=0)
    ours = decimals(number.cell for number in column)
    return printed, ours if ours == SIGNIFICANT else max(ours, printed)


def heads_with_paper(name: str) -> list[Head]:
    """Return the heads of three columns: our number, the paper's, and the difference."""
    return [Head("ours", name), Head("paper", name), Head("ours − paper", name, (words.HOLDS_PRINTED,))]


def distinction(ask: Ask, asks: list[Ask]) -> str:
    """Return the words that distinguish the column of ``ask`` from the other columns (``asks``) of its table: the
    metric, the attack or the samples, each only if columns differ in it. "" for a table of one column."""
    labels = (naming.meaning(ask.metric).display_name, ask.attack.replace("_", " "), lookup.about(ask.where) or "all")
    # In which of metric, attack and rows the columns differ.
    differ = [len({other[i] for other in asks}) > 1 for i in range(len(ask))]
    return ", ".join(text for text, differs in zip(labels, differ, strict=True) if differs and text)


def place_name(numbers: Numbers, axis: str, where: tuple[str, str]) -> str:
    """Return the name of a scenario and setting (``where``) in a table whose columns vary one setting, ``axis``.

    If ``axis`` is "scenario", or if the scenario does not vary that setting, this is the label of scenario and setting.
    Otherwise, the name has the scenario if there are several, then the values of the other varied settings, then the
    value of ``axis``.
    """
    case = next(case for case in numbers.cases if lookup.place(case) == where)  # every case of it has the same axes
    several = len({case["scenario"] for case in numbers.cases}) > 1
    if axis == "scenario" or axis not in case["axes"]:
        return lookup.label(where)
    rest = {name: value for name, value in case["axes"].items() if name != axis}
    parts = [case["scenario"].replace("_", " ")] if several else []
    parts += [f"{name} = {naming.value(value)}" for name, value in rest.items()]
    return ", ".join([*parts, naming.value(case["axes"][axis])])


def method_fields(method: str, where: tuple[str, str]) -> dict[str, Any]:
    """Return the fields of a table's csv that say of what a number is: scenario, setting (both from ``where``) and
    method."""
    return dict(zip(("scenario", "setting", "method"), (*where, method), strict=True))


def cell_fields(cell: Cell, ask: Ask) -> dict[str, Any]:
    """Return the fields of a table's csv for one number: attack, metric, the fields that select its row (such as
    role), value, interval and n, unrounded."""
    about = dict(cell.where or ask.where)
    values = {"value": cell.value, "ci_low": cell.low, "ci_high": cell.high, "n": cell.n}
    return {"attack": cell.attack, "metric": ask.metric, **about, **values}


def remarks(cell: Cell) -> str:
    """Return what is remarked on a cell: that its method failed, diverged or changed nothing (its flag), then its note;
    "" if it has neither."""
    return "; ".join(filter(None, [words.UNCHANGED if cell.flag == "unchanged" else cell.flag, cell.note]))
