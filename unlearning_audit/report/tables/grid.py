"""Make a study's table: metrics of every method (lines) in every scenario or along an axis (columns)."""

from typing import Any

from unlearning_audit.plugins import registry
from unlearning_audit.report import words
from unlearning_audit.report.lookup import Cell, Numbers, missing
from unlearning_audit.report.tables import Entry, Head, Line, Sheet, headline, long, lookup, naming, published, rankings
from unlearning_audit.report.tables import cells as parts

#: Name of the quantity in a table's footer, and of the function that computes it in its metric's file.
BOUND = "lower_bound"


def sheets_of(numbers: Numbers, order: dict[str, Any]) -> list[Sheet]:
    """Return the tables that one job writes: the headline, or the table of one entry of a study's ``tables`` in its
    layout. ``order``: the job's settings, as `workflow.parameters.table` returns them."""
    wish = order["table"]
    if wish is None:
        return headline.sheets(numbers, order)
    rows = published.read(published.FILE, wish["published"]) if wish["published"] else []
    return [{"wide": sheet, "long": long.sheet, "rankings": rankings.sheet}[wish["layout"]](numbers, order, rows)]


def sheet(numbers: Numbers, order: dict[str, Any], printed: list[dict[str, Any]]) -> Sheet:
    """Return the table of one entry of a study's ``tables`` in the layout wide: a line for each method, and a column
    for each scenario, setting and quantity, in study order.

    ``order``: as `workflow.parameters.table` returns it; ``printed``: the rows of the paper's table, empty if the study
    does not name one. Where the paper prints a number for a column, two more columns show that number and the
    difference.
    """
    wish = order["table"]
    columns, methods = parts.columns_of(numbers, wish), lookup.methods(numbers.cases)
    measured = {}
    for where, ask in columns:
        for name, case in numbers.by_method(where).items():
            cell = numbers.cell(case, *ask) if case else missing("the scenario does not ask for this method")
            measured[(where, ask), name] = parts.Measured(case, cell, printed)
    besides = {column for (column, _), one in measured.items() if not one.paper.empty}
    digits = {metric: parts.digits_of([number for ((_, ask), _), number in measured.items() if ask.metric == metric])
              for metric in dict.fromkeys(ask.metric for _, ask in columns)}  # fmt: skip
    lines, records = [], []
    for name in methods:
        entries: list[Entry] = []
        for column in columns:
            (where, ask), one = column, measured[column, name]
            # Our number alone, or with the paper's number and the difference where the paper prints this column.
            entries += one.entries(*digits[ask.metric])[: 3 if column in besides else 1]
            records.append({**parts.method_fields(name, where), **one.record(ask, digits[ask.metric][0])})
        lines.append(Line(naming.method(name), entries))
    footer, more = _footer(numbers, wish, columns, printed, besides)
    heads = _heads(numbers, wish, columns, besides, bool(printed))
    reading = parts.reading(list(digits))
    return Sheet(order["name"], wish["title"], reading, "method", heads, lines, records + more, footer)


def _heads(
    numbers: Numbers, wish: dict[str, Any], columns: list[parts.Column], besides: set[Any], printed: bool
) -> list[Head]:
    """Return the heads of all columns: one for each column, and three for a column in ``besides``, which also shows the
    paper's number and the difference.

    ``printed``: whether the study names a paper's table; columns without the paper's numbers then have a footnote.
    """
    heads = []
    group = naming.axis(wish["columns"]) if wish["columns"] != "scenario" else ""
    asks = list(dict.fromkeys(ask for _, ask in columns))
    several = len({where for where, _ in columns}) > 1
    for where, ask in columns:
        place, difference = parts.place_name(numbers, wish["columns"], where), parts.difference(ask, asks)
        whole = f"{group} = {place}" if group else place
        name = ", ".join(filter(None, (whole if several or not difference else "", difference)))
        notes = (words.UNPRINTED,) if printed else ()
        if (where, ask) in besides:
            heads += parts.beside(name)
        elif besides:
            heads.append(Head("ours", name, notes))
        elif difference:
            heads.append(Head(difference, whole if several else "", notes))
        else:
            heads.append(Head(place, group, notes))
    return heads


def _footer(
    numbers: Numbers,
    wish: dict[str, Any],
    columns: list[parts.Column],
    printed: list[dict[str, Any]],
    besides: set[Any],
) -> tuple[list[Line], list[dict[str, Any]]]:
    """Return the lines below the methods that ``wish["footer"]`` lists, and their records for the csv.

    A line has one number for each scenario and setting: the test accuracy of the original models, or the bound that the
    privacy budget guarantees. ``printed``: the paper's rows; ``besides``: columns with the paper's numbers.
    """
    lines, records = [], []
    makers = {"accuracy": ("test accuracy before", _accuracy), BOUND: ("guaranteed by DP, for none", _lower_bound)}
    for kind in wish["footer"]:
        title, make = makers[kind]
        cells, rows = {}, printed if kind == "accuracy" else []
        for where, _ in columns:
            none = lookup.find_case(numbers.cases, where, "none")
            cells[where] = parts.Measured(none, make(numbers, where), rows)
        digits = parts.digits_of(list(cells.values()))
        entries: list[Entry] = []
        for i, (where, ask) in enumerate(columns):
            one, room = cells[where], 3 if (where, ask) in besides else 1
            if i and columns[i - 1][0] == where:  # the number stands in the first column of its scenario and setting
                entries += [Entry("")] * room
                continue
            shown = one.entries(*digits, bare=True)
            # Our number; if the column takes the room of three, the paper's number and the difference, or nothing.
            entries += [shown[0], *([Entry("")] * 2 if one.paper.empty else shown[1:])][:room]
            fields = parts.method_fields("none" if kind == "accuracy" else "", where)
            records.append({**fields, **one.record(parts.Ask(kind, "", ()), digits[0])})
        lines.append(Line(title, entries))
    return lines, records


def _accuracy(numbers: Numbers, where: tuple[str, str]) -> Cell:
    """Return the test accuracy of the models before unlearning; an empty cell with a reason if the scenario does not
    list the method none."""
    case = lookup.find_case(numbers.cases, where, "none")
    if case is None:
        return missing("the scenario lacks the method none, to which this number belongs")
    return numbers.cell(case, "accuracy", role="test")


def _lower_bound(numbers: Numbers, where: tuple[str, str]) -> Cell:
    """Return the lower bound that the privacy budget guarantees for any method; an empty cell with a reason if training
    was not private, or if the bound is not above 0."""
    facts = next(case["facts"] for case in numbers.cases if lookup.place(case) == where)
    if "delta" not in facts:
        return missing("trained without differential privacy, so nothing is guaranteed")
    able = registry.defining("metrics", BOUND)
    metric = next(name for name in able if BOUND in {quantity.name for quantity in registry.quantities(name)})
    bound = registry.load("metrics", metric).lower_bound(epsilon=float(facts["epsilon"]), delta=facts["delta"])
    if bound <= 0:
        return missing("the guarantee says nothing at such a large ε")
    return Cell(bound, metric=BOUND)
