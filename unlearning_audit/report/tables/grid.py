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
    """Return the tables that one job writes: the headline tables, or the table of one entry of a study's ``tables`` in
    the entry's layout.

    Parameters
    ----------
    order
        The job's settings, as `workflow.parameters.table` returns them; ``table`` is the entry, None for the headline.
    """
    settings = order["table"]
    if settings is None:
        return headline.sheets(numbers, order)
    printed = published.read(published.FILE, settings["published"]) if settings["published"] else []
    make = {"wide": sheet, "long": long.sheet, "rankings": rankings.sheet}[settings["layout"]]
    return [make(numbers, order, printed)]


def sheet(numbers: Numbers, order: dict[str, Any], printed: list[dict[str, Any]]) -> Sheet:
    """Return the table of one entry of a study's ``tables`` in the layout wide: a line for each method, and a column
    for each scenario, setting and quantity, in study order.

    Where the paper prints a number for a column, two more columns show that number and the difference.

    Parameters
    ----------
    order
        The job's settings, as `workflow.parameters.table` returns them: ``name``, and ``table``, the study's entry.
    printed
        The rows of the paper's table, empty if the study does not name one.
    """
    settings = order["table"]
    columns, methods = parts.columns_of(numbers, settings), lookup.methods(numbers.cases)
    measured = {}
    for where, ask in columns:
        for name, case in numbers.by_method(where).items():
            cell = numbers.cell(case, *ask) if case else missing("the scenario does not ask for this method")
            measured[(where, ask), name] = parts.Measured(case, cell, printed)
    with_paper = {column for (column, _), number in measured.items() if not number.paper.empty}
    # Metric → decimals of the paper's numbers, and of ours; columns of one metric have the same.
    digits = {}
    for metric in dict.fromkeys(ask.metric for _, ask in columns):
        of_metric = [number for ((_, ask), _), number in measured.items() if ask.metric == metric]
        digits[metric] = parts.digits_of(of_metric)
    lines, records = [], []
    for name in methods:
        entries: list[Entry] = []
        for column in columns:
            (where, ask), number = column, measured[column, name]
            paper_digits, our_digits = digits[ask.metric]
            cells = number.entries(paper_digits, our_digits)
            # Our number, the paper's number and the difference; or our number alone if the paper lacks this column.
            entries += cells if column in with_paper else cells[:1]
            records.append({**parts.method_fields(name, where), **number.record(ask, paper_digits)})
        lines.append(Line(naming.method(name), entries))
    footer, more = _footer(numbers, settings["footer"], columns, printed, with_paper)
    heads = _heads(numbers, settings, columns, with_paper, names_paper=bool(printed))
    reading = parts.reading(list(digits))
    return Sheet(order["name"], settings["title"], reading, "method", heads, lines, records + more, footer)


def _heads(
    numbers: Numbers, settings: dict[str, Any], columns: list[parts.Column], with_paper: set[Any], names_paper: bool
) -> list[Head]:
    """Return the heads of all columns: one for each column, and three for a column in ``with_paper``, which also shows
    the paper's number and the difference.

    ``names_paper``: whether the study names a paper's table; columns without the paper's numbers then have a footnote.
    """
    heads = []
    group = naming.axis(settings["columns"]) if settings["columns"] != "scenario" else ""
    asks = list(dict.fromkeys(ask for _, ask in columns))
    several = len({where for where, _ in columns}) > 1
    notes = (words.UNPRINTED,) if names_paper else ()
    for where, ask in columns:
        # A column is named by its scenario and setting, and by what it asks for, each only if columns differ in it.
        place, distinction = parts.place_name(numbers, settings["columns"], where), parts.distinction(ask, asks)
        whole = f"{group} = {place}" if group else place
        name = f"{whole}, {distinction}" if several and distinction else distinction or whole
        if (where, ask) in with_paper:
            heads += parts.heads_with_paper(name)
        elif with_paper:
            heads.append(Head("ours", name, notes))
        elif distinction:
            heads.append(Head(distinction, whole if several else "", notes))
        else:
            heads.append(Head(place, group, notes))
    return heads


def _footer(
    numbers: Numbers, kinds: list[str], columns: list[parts.Column], printed: list[dict[str, Any]], wide: set[Any]
) -> tuple[list[Line], list[dict[str, Any]]]:
    """Return a line below the methods for each of ``kinds``, and its records for the csv.

    A line has one number for each scenario and setting, in the first of its columns: the test accuracy of the original
    models ("accuracy"), with the paper's number beside it, or the bound that the privacy budget guarantees (`BOUND`).

    Parameters
    ----------
    printed
        The paper's rows.
    wide
        The columns that have room for the paper's number and the difference.
    """
    lines, records = [], []
    makers = {"accuracy": ("test accuracy before", _accuracy), BOUND: ("guaranteed by DP, for none", _lower_bound)}
    for kind in kinds:
        title, make = makers[kind]
        cells, rows = {}, printed if kind == "accuracy" else []
        for where, _ in columns:
            none = numbers.by_method(where).get("none")
            cells[where] = parts.Measured(none, make(numbers, where), rows)
        paper_digits, our_digits = parts.digits_of(list(cells.values()))
        entries: list[Entry] = []
        for i, (where, ask) in enumerate(columns):
            shown = [Entry("")] * 3
            # The first column of a scenario and setting; a column is (scenario and setting, what it shows).
            if i == 0 or columns[i - 1][0] != where:
                number = cells[where]
                shown = number.entries(paper_digits, our_digits, bare=True)
                if number.paper.empty:
                    shown[1:] = [Entry(""), Entry("")]
                fields = parts.method_fields("none" if kind == "accuracy" else "", where)
                records.append({**fields, **number.record(parts.Ask(kind, attack="", where=()), paper_digits)})
            entries += shown if (where, ask) in wide else shown[:1]
        lines.append(Line(title, entries))
    return lines, records


def _accuracy(numbers: Numbers, where: tuple[str, str]) -> Cell:
    """Return the test accuracy of the models before unlearning; an empty cell with a reason if the scenario does not
    list the method none."""
    case = numbers.by_method(where).get("none")
    if case is None:
        return missing("the scenario lacks the method none, to which this number belongs")
    return numbers.cell(case, "accuracy", role="test")


def _lower_bound(numbers: Numbers, where: tuple[str, str]) -> Cell:
    """Return the lower bound that the privacy budget guarantees for any method; an empty cell with a reason if training
    was not private, or if the bound is not above 0."""
    facts = next(case["facts"] for case in numbers.cases if lookup.place(case) == where)
    if "delta" not in facts:
        return missing("trained without differential privacy, so nothing is guaranteed")
    # The metric that declares this quantity and has a function of the same name.
    candidates = registry.defining("metrics", BOUND)
    metric = next(name for name in candidates if BOUND in {quantity.name for quantity in registry.quantities(name)})
    bound = registry.load("metrics", metric).lower_bound(epsilon=float(facts["epsilon"]), delta=facts["delta"])
    if bound <= 0:
        return missing("the guarantee says nothing at such a large ε")
    return Cell(bound, metric=BOUND)
