"""Make a study's table in long form: a section for each method, a line for each scenario and setting, a column for each
metric."""

import itertools
from typing import Any

from unlearning_audit.report.tables import Entry, Head, Line, Numbers, Sheet, cells, lookup, naming, words
from unlearning_audit.report.tables.cells import Ask

#: Suffix of the name of a metric's standard deviation over models.
SPREAD = "_sd"


def sheet(numbers: Numbers, order: dict[str, Any], printed: list[dict[str, Any]]) -> Sheet:
    """Return the table of one entry of a study's ``tables`` in the layout long: a section for each method, a line for
    each scenario and setting, a column for each quantity.

    Where the paper prints a quantity, the paper's number and the difference stand beside ours. If a metric has a
    standard deviation over models, it is shown in place of the interval ("0.55 ± 0.10"), for our number and for the
    paper's. The csv has the standard deviation and the interval.

    Parameters
    ----------
    order
        The job's settings, as `workflow.parameters.table` returns them: ``name``, and ``table``, the study's entry.
    printed
        The rows of the paper's table, empty if the study does not name one.
    """
    settings = order["table"]
    asks = list(dict.fromkeys(ask for _, ask in cells.columns_of(numbers, settings)))
    places, methods = lookup.places(numbers.cases), lookup.methods(numbers.cases)
    measured = {}
    for name, where, ask in itertools.product(methods, places, asks):
        if case := numbers.by_method(where)[name]:
            spread = numbers.cell(case, ask.metric + SPREAD, ask.attack, ask.where)
            measured[name, where, ask] = cells.Measured(case, numbers.cell(case, *ask), printed, spread)
    # The quantities that the paper prints.
    with_paper = {ask for (_, _, ask), number in measured.items() if not number.paper.empty}
    # Quantity → decimals of the paper's numbers, and of ours.
    digits = {ask: cells.digits_of([number for (*_, of), number in measured.items() if of == ask]) for ask in asks}
    lines, records = [], []
    for name, where in itertools.product(methods, places):
        if (name, where, asks[0]) not in measured:  # the scenario does not have the method
            continue
        entries: list[Entry] = []
        for ask in asks:
            number, (paper_digits, our_digits) = measured[name, where, ask], digits[ask]
            shown = number.entries(paper_digits, our_digits)
            # Our number, the paper's number and the difference; or our number alone if the paper lacks this quantity.
            entries += shown if ask in with_paper else shown[:1]
            record = {**cells.method_fields(name, where), **number.record(ask, paper_digits), "sd": number.spread.value}
            records.append({**record, "published_sd": number.paper_spread.value} if printed else record)
        label = cells.place_name(numbers, settings["columns"], where)
        lines.append(Line(label, entries, section=naming.method(name)))
    heads = [head for ask in asks for head in _heads(ask, asks, beside=ask in with_paper, names_paper=bool(printed))]
    reading = cells.reading(list(dict.fromkeys(ask.metric for ask in asks)))
    return Sheet(order["name"], settings["title"], reading, naming.axis(settings["columns"]), heads, lines, records)


def _heads(ask: Ask, asks: list[Ask], *, beside: bool, names_paper: bool) -> list[Head]:
    """Return the heads of the columns of one quantity, ``ask`` among all ``asks`` of the table: one head, or three if
    the paper's number and the difference stand ``beside`` it.

    ``names_paper``: whether the study names a paper's table; a quantity that it does not print then has a footnote.
    """
    name = cells.distinction(ask, asks) or naming.meaning(ask.metric).display_name
    if beside:
        return cells.heads_with_paper(name)
    return [Head(name, notes=(words.UNPRINTED,) if names_paper else ())]
