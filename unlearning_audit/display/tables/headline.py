"""The table that every study has: the deciding metric and the accuracies of each method."""

import textwrap
from dataclasses import replace

from unlearning_audit.display import decisions, lookup, naming, words
from unlearning_audit.display.decisions import Decisions
from unlearning_audit.display.lookup import Cell, Numbers, missing
from unlearning_audit.display.tables import formats, typeset
from unlearning_audit.display.tables import verdicts as sentenced
from unlearning_audit.display.tables.typeset import (
    BROKEN,
    DIVERGED,
    FAILED,
    UNCHANGED,
    Entry,
    Head,
    Line,
    Sheet,
    decimals,
    entry,
)
from unlearning_audit.plugins.declarations import Column
from unlearning_audit.stats import decide

#: Head of a column, by role → the samples that it is about.
SAMPLES = {"forget": "to forget", "heldout": "never seen", "retain": "kept", "test": "of the test part"}
WIDTH = 100
NO_DECISIONS = Decisions()
RECORD = ("value", "ci_low", "ci_high", "n")


def sheets(numbers: Numbers, order: dict) -> list[Sheet]:
    """One table for each protocol of the study, since protocols give different numbers."""
    judged, sheets_ = decisions.read(order.get("comparisons", [])), []
    flags = typeset.flags(order.get("margins", {}))
    protocols = list(dict.fromkeys(case["protocol"] for case in numbers.cases))
    for i, protocol in enumerate(protocols):
        table = sheet(numbers, [case for case in numbers.cases if case["protocol"] == protocol], judged)
        title = order["title"] if len(protocols) == 1 else f"{order['title']}, by protocol {protocol.replace('_', ' ')}"
        sheets_.append(replace(table, name="headline" if i == 0 else f"headline-{protocol}", title=title, flags=flags))
    return sheets_


def sheet(numbers: Numbers, cases: list[dict], judged: Decisions = NO_DECISIONS, *, brief: bool = False) -> Sheet:
    """One line for each method of each scenario, one column for each number that at least one of them has.

    ``brief`` shows the interval of the first column only.
    """
    present = {(row.metric, row.place) for case in cases for row in numbers.of(case)}
    metrics = {metric for metric, _ in present}
    paired = any("swapped_pairs" in lookup.protocol(case).offers for case in cases) and "q" in metrics
    columns = [
        (metric, column)
        for metric, column in naming.columns()
        if metric in metrics
        and ((metric, _about(column)) in present or not column.role)
        and not (paired and column.besides)
    ]
    by_column = {
        (metric, column): [numbers.cell(case, metric, where=_about(column)) for case in _order(cases)]
        for metric, column in columns
    }
    # Drop columns without any value; if no column has one, keep them for their reasons.
    columns = [column for column in columns if not all(cell.empty for cell in by_column[column])] or columns
    table = [(case, [by_column[column][i] for column in columns]) for i, case in enumerate(_order(cases))]
    digits = [decimals(cells[i] for _, cells in table) for i in range(len(columns))]
    lines, records = [], []
    for case, cells in table:
        body = [
            _entry(cell, digits[i], bare=not column.interval or (brief and i > 0))
            for i, (cell, (_, column)) in enumerate(zip(cells, columns, strict=True))
        ]
        flags = _flags(numbers, case, judged)
        lines.append(Line(naming.method(case["method"]), tuple(body), flags, lookup.label(lookup.place(case))))
        records += [_record(case, cell, *place) for cell, place in zip(cells, columns, strict=True)]
    heads = tuple(Head(column.head, column.group) for _, column in columns)
    reading = how_to_read(columns[0][0]) if columns else ""
    return Sheet("headline", "Headline", reading, "method", heads, tuple(lines), records=tuple(records))


def along(numbers: Numbers, cases: list[dict], judged: Decisions = NO_DECISIONS) -> Sheet:
    """One scenario along its axes: the number that speaks for its protocol, methods by axis settings."""
    places, methods = lookup.places(cases), lookup.methods(cases)
    by_place = {(w, m): numbers.primary(c) for w in places for m in methods if (c := lookup.at(cases, w, m))}
    metric = next((name for name, _ in by_place.values() if name), "")
    digits = decimals(cell for _, cell in by_place.values())
    lines = []
    for name in methods:
        cells = [by_place.get((where, name), ("", missing("")))[1] for where in places]
        flags = dict.fromkeys(f for w in places if (c := lookup.at(cases, w, name)) for f in _flags(numbers, c, judged))
        lines.append(Line(naming.method(name), tuple(_entry(c, digits, bare=False) for c in cells), tuple(flags)))
    name = naming.meaning(metric).display_name if metric else "no number"
    title = f"{cases[0]['scenario'].replace('_', ' ')}: {name}"
    axes = list(cases[0]["axes"])
    if len(axes) == 1:
        title, labels = (
            f"{title} at {axes[0]} =",
            [naming.value(lookup.at(cases, where, methods[0])["axes"][axes[0]]) for where in places],
        )
    else:
        labels = [naming.setting(setting) for _, setting in places]
    return Sheet(cases[0]["scenario"], title, "", title, tuple(map(Head, labels)), tuple(lines))


def text(numbers: Numbers, order: dict, width: int = WIDTH) -> str:
    """The headline for a terminal: verdicts, then numbers; scenarios in full, those with axes by one number. No line
    exceeds ``width``."""
    judged = decisions.read(order.get("comparisons", []))
    spoken = dict.fromkeys(numbers.primary(case)[0] for case in numbers.cases)
    lines = [line for metric in spoken if metric for line in textwrap.wrap(how_to_read(metric), width)]
    tables = []
    for scenario in dict.fromkeys(case["scenario"] for case in numbers.cases):
        cases = [case for case in numbers.cases if case["scenario"] == scenario]
        varied = len(lookup.places(cases)) > 1
        block = along(numbers, cases, judged) if varied else sheet(numbers, cases, judged, brief=True)
        if not varied:
            block = replace(
                block, corner=lookup.label(lookup.place(cases[0])), lines=tuple(map(_unsectioned, block.lines))
            )
        tables.append(replace(block, flags=typeset.flags(order.get("margins", {}))))
    readings = "\n".join([*lines, *textwrap.wrap(_about_samples(tables), width)])
    fitted = [_fitting(table, width) for table in tables]
    blocks = filter(None, [order["title"], *_verdicts(numbers, judged, width), readings, *fitted])
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n"


def _verdicts(numbers: Numbers, judged: Decisions, width: int) -> list[str]:
    """The verdicts of each scenario, with a line on how to read them."""
    blocks = []
    for scenario in dict.fromkeys(case["scenario"] for case in numbers.cases):
        all_places = lookup.places([case for case in numbers.cases if case["scenario"] == scenario])
        places = [where for where in all_places if where in judged.verdicts]
        if places:
            block = sentenced.brief(judged, *places) if len(all_places) == 1 else sentenced.along(judged, places)
            blocks.append(_fitting(block, width))
    return ["\n".join(textwrap.wrap(sentenced.reading(judged), width)), *blocks] if blocks else []


def _about_samples(tables: list[Sheet]) -> str:
    """Which quantities the columns of these tables give on which samples, in a sentence; "" where there is none."""
    grouped = [head for table in tables for head in table.heads if head.group]
    labels = {head.label for head in grouped}
    names = [name for name in SAMPLES if name in labels]
    if not names:
        return ""
    of = " and ".join(dict.fromkeys(head.group for head in grouped))
    return f"{', '.join(names)}: {of} on samples {', '.join(SAMPLES[name] for name in names)}."


def how_to_read(metric: str) -> str:
    """One line that says what the extremes of a metric mean."""
    record = naming.meaning(metric)
    return words.HEADLINE if metric == "q" else f"{record.display_name}: {record.reading}" if record.reading else ""


def _fitting(block: Sheet, width: int) -> str:
    """The block as text; where it is too wide, intervals are left away, then columns from the right."""
    for narrower in (block, _bare(block), *(_first(_bare(block), n) for n in range(len(block.heads) - 1, 0, -1))):
        text = formats.plain(narrower, width)
        if max(map(len, text.splitlines())) <= width:
            return text
    return "\n".join(line[:width] for line in text.splitlines())


def _bare(block: Sheet) -> Sheet:
    def bare(line: Line) -> Line:
        return replace(line, cells=tuple(replace(cell, text=cell.text.split(" [")[0]) for cell in line.cells))

    return replace(block, lines=tuple(map(bare, block.lines)))


def _first(block: Sheet, count: int) -> Sheet:
    """The first columns, and dots for the rest."""
    lines = tuple(replace(line, cells=(*line.cells[:count], Entry("…"))) for line in block.lines)
    return replace(block, heads=(*block.heads[:count], Head("…")), lines=lines)


def _unsectioned(line: Line) -> Line:
    return replace(line, section="")


def _order(cases: list[dict]) -> list[dict]:
    """Scenario by scenario, none first and the retrained last."""
    cases_ = (lookup.at(cases, where, name) for where in lookup.places(cases) for name in lookup.methods(cases))
    return [case for case in cases_ if case]


def _entry(cell: Cell, places: int, *, bare: bool) -> Entry:
    """As in other tables, but flags are explained once, at the method's name."""
    text = entry(cell, places, bare=bare)
    return Entry(text.text, () if cell.flag else text.notes, text.tone)


def _flags(numbers: Numbers, case: dict, judged: Decisions) -> tuple[str, ...]:
    if failure := numbers.failure(case):
        return DIVERGED if numbers.lost(case) == words.DAMAGED.word else FAILED, failure
    if numbers.unchanged(case):
        return (UNCHANGED,)
    row = judged.verdict(lookup.place(case), case["method"])
    return (BROKEN,) if row and row["verdict"] == decide.BROKEN else ()


def _about(column: Column) -> lookup.Where:
    return (("role", column.role),) if column.role else ()


def _record(case: dict, cell: Cell, metric: str, column: Column) -> dict:
    fields = {name: case[name] for name in ("scenario", "setting", "protocol", "method")}
    about = dict(cell.where or _about(column))
    values = dict(zip(RECORD, (cell.value, cell.low, cell.high, cell.n), strict=True))
    note = "; ".join(filter(None, (words.UNCHANGED if cell.flag == "unchanged" else cell.flag, cell.note)))
    return {**fields, "attack": cell.attack, "metric": metric, **about, **values, "note": note}
