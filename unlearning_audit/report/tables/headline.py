"""Make the table that every study has: the deciding metric and the accuracies of each method."""

from dataclasses import replace
from typing import Any

from unlearning_audit.plugins.declarations import Column
from unlearning_audit.report import decisions
from unlearning_audit.report.decisions import Decisions
from unlearning_audit.report.tables import Head, Line, Numbers, Sheet, lookup, naming, typeset, words
from unlearning_audit.report.tables import cells as parts
from unlearning_audit.stats import decide


def sheets(numbers: Numbers, order: dict[str, Any]) -> list[Sheet]:
    """Return the headline tables of a study, one for each protocol, because protocols give different numbers.

    ``margins`` of ``order`` are how much utility a model may lose before it counts as broken. If they are given, the
    footnote on broken models states them.
    """
    judged, made = decisions.read(order.get("comparisons", [])), []
    margins, flags = order.get("margins"), {}
    if margins:
        points, factor = 100 * margins["broken_accuracy"], margins["broken_perplexity"]
        flags[typeset.BROKEN] = typeset.BEYOND.format(points=points, factor=factor)
    protocols = list(dict.fromkeys(case["protocol"] for case in numbers.cases))
    for i, protocol in enumerate(protocols):
        of_protocol = numbers.narrowed([case for case in numbers.cases if case["protocol"] == protocol])
        table = sheet(of_protocol, judged)
        title = order["title"] if len(protocols) == 1 else f"{order['title']}, by protocol {protocol.replace('_', ' ')}"
        made.append(replace(table, name="headline" if i == 0 else f"headline-{protocol}", title=title, flags=flags))
    return made


def sheet(numbers: Numbers, judged: Decisions) -> Sheet:
    """Return the headline table of all cases of ``numbers``: a line for each method of each scenario, and a column for
    each quantity that metrics declare for this table and of which one of the cases has a row.

    On swapped pairs that have Q, the columns that metrics declare as ``besides``, of other systems of evaluation, are
    left out. A column without any value is dropped; if no column has a value, all are kept, because their cells say
    why.

    Parameters
    ----------
    judged
        The study's verdicts, which mark broken models.
    """
    # In the order of scenarios, then methods.
    cases = [case for where in lookup.places(numbers.cases) for case in numbers.by_method(where).values() if case]
    present = {(row.metric, row.place) for case in cases for row in numbers.rows_of(case)}
    metrics = {metric for metric, _ in present}
    paired = any("swapped_pairs" in lookup.protocol(case).offers for case in cases) and "q" in metrics
    columns = {}  # (metric, declared column) → a cell for each case
    for metric, column in naming.columns():
        # A column of a role is only there if a row has this role.
        has_rows = (metric, _place(column)) in present if column.role else metric in metrics
        if has_rows and not (paired and column.besides):
            columns[metric, column] = [numbers.cell(case, metric, where=_place(column)) for case in cases]
    # Drop columns without any value; if no column has one, keep them for their reasons.
    columns = {key: cells for key, cells in columns.items() if not all(cell.empty for cell in cells)} or columns
    digits = {key: typeset.decimals(cells) for key, cells in columns.items()}
    lines, records = [], []
    for i, case in enumerate(cases):
        fields, body = {name: case[name] for name in ("scenario", "setting", "protocol", "method")}, []
        for (metric, column), cells in columns.items():
            text = typeset.entry(cells[i], digits[metric, column], bare=not column.interval)
            # Flags are explained once, at the method's name, and not in each cell.
            body.append(replace(text, notes=() if cells[i].flag else text.notes))
            number = parts.cell_fields(cells[i], parts.Ask(metric, attack="", where=_place(column)))
            records.append({**fields, **number, "note": parts.remarks(cells[i])})
        flags = _flags(numbers, case, judged)
        lines.append(Line(naming.method(case["method"]), body, flags, section=lookup.label_of(case)))
    heads = [Head(column.head, column.group) for _, column in columns]
    main = naming.meaning(next((metric for metric, _ in columns), ""))
    reading = f"{main.display_name}: {main.reading}" if main.reading else ""
    reading = words.HEADLINE if main.name == "q" else reading
    return Sheet("headline", "Headline", reading, "method", heads, lines, records)


def _flags(numbers: Numbers, case: dict[str, Any], judged: Decisions) -> tuple[str, ...]:
    """Return the footnotes of the method of a ``case``: that it failed or its models diverged, with the reason; or that
    it changed nothing; or that its models are broken. () if none of these is so."""
    if failure := numbers.failure(case):
        diverged = numbers.lost(case) == words.DAMAGED.word
        return (typeset.DIVERGED if diverged else typeset.FAILED), failure
    if numbers.unchanged(case):
        return (typeset.UNCHANGED,)
    row = judged.at(lookup.place(case)).verdicts.get(case["method"], {"verdict": ""})
    return (typeset.BROKEN,) if row["verdict"] == decide.BROKEN else ()


def _place(column: Column) -> lookup.Where:
    """Return the fields by which rows of a declared column are selected, as (name, value) pairs: the role of its
    samples, or () if it declares none."""
    return (("role", column.role),) if column.role else ()
