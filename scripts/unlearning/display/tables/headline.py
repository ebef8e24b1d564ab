"""The table that every study has: how much each method left to find, and what it kept of the model's worth."""

import textwrap
from dataclasses import replace

from unlearning.display import lookup, naming
from unlearning.display.decisions import Decisions
from unlearning.display.lookup import Cell, Numbers, missing
from unlearning.display.tables import formats
from unlearning.display.tables import verdicts as judged
from unlearning.display.tables.typeset import BROKEN, FAILED, UNCHANGED, Entry, Head, Line, Sheet, decimals, entry

#: (metric, own setting, head, group, whether the interval is shown)
COLUMNS = (
    ("q", "", "Q", "", True),
    ("q_crossfit", "", "Q, cross-fitted", "", True),
    ("ic_score", "", "IC score", "", True),
    ("forgetting_quality_over_null", "", "F / F₀", "", True),
    ("forgetting_quality", "", "F", "", True),
    ("score", "", "final score", "", True),
    ("privacy_auc", "", "privacy AUC", "", True),
    ("efficacy_auc", "", "efficacy AUC", "", True),
    ("efficacy_median", "", "median efficacy", "", True),
    ("highly_memorized", "", "vulnerable", "", False),
    ("less_memorized", "", "protected", "", False),
    ("mia_score", "", "MIA score", "", False),
    ("accuracy", "role=forget", "forget", "accuracy", False),
    ("accuracy", "role=heldout", "heldout", "accuracy", False),
    ("accuracy", "role=retain", "retain", "accuracy", False),
    ("accuracy", "role=test", "test", "accuracy", False),
)
#: Numbers of other systems that models of swapped pairs may be asked for besides; tables of their own show these.
BESIDES = (
    "forgetting_quality_over_null",
    "forgetting_quality",
    "score",
    "privacy_auc",
    "efficacy_auc",
    "efficacy_median",
)
READ = "Q: 1 = nothing left to find, 0 = all of it; retrain is the yardstick. Brackets: 95 % interval."
ACCURACIES = "forget, heldout, retain, test: accuracy on samples to forget, never seen, kept, of the test part."
WIDTH = 100
RECORD = ("value", "ci_low", "ci_high", "n")


def sheets(numbers: Numbers, order: dict) -> list[Sheet]:
    """One table for each protocol of the study, since protocols give different numbers."""
    protocols = list(dict.fromkeys(case["protocol"] for case in numbers.cases))
    found = []
    for i, protocol in enumerate(protocols):
        shown = sheet(numbers, [case for case in numbers.cases if case["protocol"] == protocol])
        title = order["title"] if len(protocols) == 1 else f"{order['title']}, by protocol {protocol.replace('_', ' ')}"
        found.append(replace(shown, name="headline" if i == 0 else f"headline-{protocol}", title=title))
    return found


def sheet(numbers: Numbers, cases: list[dict], *, brief: bool = False) -> Sheet:
    """One line for each method of each scenario, one column for each number that at least one of them has.

    ``brief`` shows the interval of the first column only.
    """
    have = {(row["metric"], row["setting"]) for case in cases for row in numbers.of(case)}
    known = {metric for metric, _ in have}
    if any(case["protocol"] == "swap" for case in cases) and "q" in known:
        known -= set(BESIDES)
    chosen = [column for column in COLUMNS if column[0] in known and (column[:2] in have or not column[1])]
    found = {column: [numbers.cell(case, column[0], setting=column[1]) for case in _order(cases)] for column in chosen}
    # What is empty throughout says less than its absence; if nothing has a number, the reasons stay.
    chosen = [column for column in chosen if not all(cell.empty for cell in found[column])] or chosen
    table = [(case, [found[column][i] for column in chosen]) for i, case in enumerate(_order(cases))]
    digits = [decimals(cells[i] for _, cells in table) for i in range(len(chosen))]
    lines, records = [], []
    for case, cells in table:
        shown = [
            _entry(cell, digits[i], bare=not column[4] or (brief and i > 0))
            for i, (cell, column) in enumerate(zip(cells, chosen, strict=True))
        ]
        flags = _flags(numbers, case)
        lines.append(Line(naming.method(case["method"]), tuple(shown), flags, lookup.label(lookup.place(case))))
        records += [_record(case, cell, column) for cell, column in zip(cells, chosen, strict=True)]
    heads = tuple(Head(head, group) for _, _, head, group, _ in chosen)
    reading = how_to_read(chosen[0][0]) if chosen else ""
    return Sheet("headline", "Headline", reading, "method", heads, tuple(lines), records=tuple(records))


def along(numbers: Numbers, cases: list[dict]) -> Sheet:
    """One scenario along its axes: the number that speaks for its protocol, methods by axis settings."""
    places, methods = lookup.places(cases), lookup.methods(cases)
    found = {(w, m): numbers.primary(c) for w in places for m in methods if (c := lookup.at(cases, w, m))}
    metric = next((name for name, _ in found.values() if name), "")
    digits = decimals(cell for _, cell in found.values())
    lines = []
    for name in methods:
        shown = [found.get((where, name), ("", missing("")))[1] for where in places]
        flags = dict.fromkeys(f for w in places if (c := lookup.at(cases, w, name)) for f in _flags(numbers, c))
        lines.append(Line(naming.method(name), tuple(_entry(c, digits, bare=False) for c in shown), tuple(flags)))
    name = naming.meaning(metric).label if metric else "no number"
    title = f"{cases[0]['scenario'].replace('_', ' ')}: {name}"
    axes = list(cases[0]["axes"])
    if len(axes) == 1:
        title, labels = f"{title} at {axes[0]} =", [naming.value(setting.split("=", 1)[1]) for _, setting in places]
    else:
        labels = [naming.setting(setting) for _, setting in places]
    return Sheet(cases[0]["scenario"], title, "", title, tuple(map(Head, labels)), tuple(lines))


def text(numbers: Numbers, order: dict, width: int = WIDTH) -> str:
    """The headline for a terminal: scenarios in full, those with axes by one number. No line exceeds ``width``."""
    spoken = dict.fromkeys(numbers.primary(case)[0] for case in numbers.cases)
    lines = [line for metric in spoken if metric for line in textwrap.wrap(how_to_read(metric), width)]
    blocks = ["\n".join([order["title"], *lines, *textwrap.wrap(ACCURACIES, width)])]
    for scenario in dict.fromkeys(case["scenario"] for case in numbers.cases):
        cases = [case for case in numbers.cases if case["scenario"] == scenario]
        varied = len(lookup.places(cases)) > 1
        block = along(numbers, cases) if varied else sheet(numbers, cases, brief=True)
        if not varied:
            block = replace(
                block, corner=lookup.label(lookup.place(cases[0])), lines=tuple(map(_unsectioned, block.lines))
            )
        blocks.append(_fitting(block, width))
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n"


def how_to_read(metric: str) -> str:
    """One line that says what the extremes of a metric mean."""
    known = naming.meaning(metric)
    return READ if metric == "q" else f"{known.label}: {known.reading}" if known.reading else ""


def _fitting(block: Sheet, width: int) -> str:
    """The block as text; where it is too wide, intervals are left away, then columns from the right."""
    for shown in (block, _bare(block), *(_first(_bare(block), n) for n in range(len(block.heads) - 1, 0, -1))):
        text = formats.plain(shown, width)
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
    found = (lookup.at(cases, where, name) for where in lookup.places(cases) for name in lookup.methods(cases))
    return [case for case in found if case]


def _entry(cell: Cell, places: int, *, bare: bool) -> Entry:
    """As in other tables, but what was flagged is explained once, at the method's name."""
    shown = entry(cell, places, bare=bare)
    return Entry(shown.text, () if cell.flag else shown.notes, shown.tone)


def _flags(numbers: Numbers, case: dict) -> tuple[str, ...]:
    if failure := numbers.failure(case):
        return FAILED, failure
    if numbers.unchanged(case):
        return (UNCHANGED,)
    return (BROKEN,) if sentences.lost(numbers, case) else ()


def _record(case: dict, cell: Cell, column: tuple) -> dict:
    who = {name: case[name] for name in ("scenario", "setting", "protocol", "method")}
    metric = ";".join(filter(None, (column[0], cell.setting or column[1])))
    values = dict(zip(RECORD, (cell.value, cell.low, cell.high, cell.n), strict=True))
    note = "; ".join(filter(None, (lookup.UNCHANGED if cell.flag == "unchanged" else cell.flag, cell.note)))
    return {**who, "attack": cell.attack, "metric": metric, **values, "note": note}
