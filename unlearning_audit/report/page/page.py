"""Make the report: verdicts, numbers, figures, tables, controls, costs and settings in one file that needs no
network."""

import itertools
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from unlearning_audit.report import answer, compare, lookup, naming, style, templates, words
from unlearning_audit.report.decisions import Decisions
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.page import answered, copies, details, embed, matrix, recognised, sentences
from unlearning_audit.report.tables import cost, grid, standings
from unlearning_audit.report.tables import meta as worth
from unlearning_audit.report.tables import tuning as tuned
from unlearning_audit.report.tables import verdicts as judged
from unlearning_audit.report.tables.formats import spans
from unlearning_audit.report.tables.typeset import ABSENT, Entry, Line, Sheet, decimals, interval, leading
from unlearning_audit.stats import decide
from unlearning_audit.store.files import read_json

#: Libraries of the page, in resources/page/vendor.
LIBRARIES = ("datatables",)
#: The most columns of the matrix with long bars, as in page.js.
ROOMY = 8
TABLE_FILES, FIGURE_FILES = (".csv", ".md", ".tex"), (".svg", ".png")


def render(
    numbers: Numbers, judgements: Decisions, ledger: list[dict[str, Any]], records: str, specs: list[str],
    displays: list[str], order: dict[str, Any],
) -> str:  # fmt: skip
    """Return the page as HTML. Text from studies and plug-ins is escaped.

    ``numbers`` and ``judgements``: all numbers and verdicts of the study; ``ledger``: the seconds of each job;
    ``records``: the study's file of recognised records; ``displays``: the files of all tables and figures; ``specs``:
    the records of all jobs; ``order``: as `workflow.parameters.report` returns it.
    """
    found, files = recognised.read(records), {Path(path).name: path for path in displays}
    tables = {"verdicts": judged.verdicts, "ranks": judged.ranks, "resolution": judged.resolution}
    evaluated, folder = worth.read(files["meta.csv"]), templates.FOLDER
    context = {
        "order": order,
        **_first_screen(numbers, judgements, order, ledger, found),
        "recognised": found,
        "script": Markup(templates.read(folder / "page.js")),
        "libraries": {
            name: embed.packed(templates.read(folder / f"vendor/{name}.min.js").encode()) for name in LIBRARIES
        },
        "references": naming.BASELINES,
        "verdicts": [_table(name, [make(judgements, order["study"])], files) for name, make in tables.items()],
        "between": _drawing("verdicts", words.TITLES["verdicts"], files),
        "headline": _wished(numbers, order["headline"], files),
        "tables": [_wished(numbers, wish, files) for wish in order["tables"]],
        "figures": [
            _drawing(wish["name"], wish["figure"]["title"], files, wish["caption"]) for wish in order["figures"]
        ],
        "controls": controls(numbers, judgements),
        "copies": copies.sheet(copies.read(order["copies"])),
        "no_copies": words.NO_COPIES,
        "cost": _table("cost", cost.sheets(ledger, order["cost"]), files),
        "meta": _table("meta", worth.sheets(evaluated), files),
        "worth": _drawing("meta", words.TITLES["meta"], files) if len(worth.metrics(evaluated)) > 1 else None,
        "tuning": _tuning(files, order["study"]),
        "settings": settings(order["scenarios"]),
        "software": software(specs),
        "example": example(numbers),
        "artifacts": [
            {**c, "where": lookup.label(lookup.place(c)), "who": naming.method(c["method"])} for c in order["cases"]
        ],
    }
    filters = {"paragraphs": paragraphs, "named": naming.method, "orders": orders, "spans": spans}
    return templates.render("page.html", filters, **context)


def _first_screen(
    numbers: Numbers, judgements: Decisions, order: dict[str, Any], ledger: list[dict[str, Any]], found: dict[Any, Any]
) -> dict[str, Any]:
    """Return what the template shows at the top of the page: the answer, the matrix, the sentences above it, what would
    decide open verdicts, and the compressed details of its squares.

    ``ledger``: the seconds of each job; ``found``: (method, "scenario|setting") → its recognised records.
    """
    squares = matrix.build(numbers, judgements)
    answers = answer.answers(numbers, judgements)
    shown = answered.chosen(answers)
    plugins = {case["method"]: (case["plugin"], case.get("file")) for case in numbers.cases}
    spent = cost.ratios(ledger, order["cost"]["cases"])
    times = {method: ratio for (*place, method), (_, ratio) in spent.items() if shown and tuple(place) == shown.place}
    behind = details.build(squares, judgements, order["cases"], order["command"])
    content = json.dumps(behind, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return {
        "matrix": squares,
        "answer": answered.screen(shown, plugins, times) if shown else None,
        "pictured": shown and recognised.pictured(found, "|".join(shown.place), [line.method for line in shown.lines]),
        "states": words.MEANINGS,
        "places": len(answers),
        "lead": list(filter(None, [*matrix.cautions(squares), judgements.extensions()])),
        "systems": list(dict.fromkeys(column.system for column in squares.columns)),
        "roomy": ROOMY,
        "legend": [
            (state.mark, state.word, meaning)
            for state, meaning in words.MEANINGS.items()
            if any(square.state is state for square in squares.squares.values())
        ],
        "undecided": [
            {"method": square.method, "where": column.label, "why": why}
            for column, method in itertools.product(squares.columns, squares.methods)
            if (square := squares.squares.get((method, column.key)))
            and (square.verdict, square.reference) == (decide.INCONCLUSIVE, False)
            and (why := behind["squares"][f"{method}|{column.key}"]["why"])
        ],
        "details": embed.packed(content.encode()),
    }


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a caption as markup; *emphasis* is the only formatting."""
    plain = [str(escape(" ".join(part.split()))) for part in text.split("\n\n")]
    return [Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", part)) for part in plain]


def controls(numbers: Numbers, judgements: Decisions) -> dict[str, Any]:
    """Return the section of the page on checks: a row of signs (✓, ✗ or –) for every scenario, a sentence for each
    failed check, and the remarks on result files."""
    signs = {"good": "✓", "bad": "✗", "": ""}
    rows, wrong, noted = [], [], []
    for where in lookup.places(numbers.cases):
        checks = sentences.checks(judgements, where).values()
        cells = [Entry(f"{signs[check.tone]} {check.value}".strip() or "–", (), check.tone) for check in checks]
        rows.append(Line(lookup.label(where), cells))
        wrong += [(lookup.label(where), check.text) for check in checks if check.tone == "bad"]
    for case in numbers.cases:
        label = lookup.label(lookup.place(case))
        wrong += [(label, text) for text in sentences.wrong(numbers, case)]
        noted += [(label, text.rstrip(".")) for text in numbers.noted(case, "remark")]
    return {"heads": list(words.CHECKS), "rows": rows, "wrong": wrong, "noted": noted}


def settings(scenarios: list[dict[str, Any]]) -> dict[str, Any]:
    """Return for a table the settings that all scenarios share, and the settings that differ, with their value in each
    scenario.

    An option of a method or an attack differs only among scenarios that use it; elsewhere it is "". Any other setting
    that a scenario lacks is "—".
    """
    flat = []
    for scenario in scenarios:
        lists = {kind: ", ".join(scenario[kind]) or "none" for kind in ("methods", "attacks")}
        fields = compare.flat({k: v for k, v in scenario.items() if k not in ("scenario", "setting")})
        flat.append({**{name: str(value) for name, value in fields.items() if value not in (None, [])}, **lists})
    shared, differ = [], []
    for name in dict.fromkeys(name for scenario in flat for name in scenario):
        absent = "" if name.startswith(("methods.", "attacks.")) else "—"
        values = [scenario.get(name, absent) for scenario in flat]
        distinct = {value for value in values if value}
        if len(distinct) == 1:
            shared.append((name, distinct.pop()))
        else:
            differ.append((name, values))
    labels = [lookup.label(lookup.place(scenario)) for scenario in scenarios]
    return {"shared": shared, "labels": labels, "differ": differ}


def software(specs: list[str]) -> list[tuple[str, str]]:
    """Return (name, all its versions) of every package, processor and device that a job used. ``specs``: the records of
    jobs."""
    versions: dict[str, set[str]] = {}
    for spec in map(read_json, specs):
        facts = {"python": spec.get("python"), **spec.get("packages", {}), **spec.get("machine", {})}
        for name, value in facts.items():
            if value not in (None, ""):
                versions.setdefault(name, set()).add(str(value))
    return [(name, ", ".join(sorted(values))) for name, values in versions.items()]


def example(numbers: Numbers) -> dict[str, Any] | None:
    """Return the main number of one method and the file that it comes from, with which the page explains how to look a
    number up; None if the study has no number. A method that is not a reference is preferred."""
    for case in sorted(numbers.cases, key=lambda case: case["method"] in naming.BASELINES):
        metric, cell = numbers.primary(case)
        if not cell.empty:
            return {
                "metric": metric, "attack": cell.attack, "about": lookup.about(cell.where), "value": repr(cell.value),
                "who": naming.method(case["method"]), "where": lookup.label(lookup.place(case)),
                "shown": f"{naming.meaning(metric).display_name} {interval(cell, decimals([cell]))}",
                "path": case["metrics"],
            }  # fmt: skip
    return None


def _wished(numbers: Numbers, wish: dict[str, Any], files: dict[str, str]) -> dict[str, Any]:
    """Return the tables that the study asks for under one name. ``wish``: the table's settings and cases."""
    return _table(wish["name"], grid.sheets_of(numbers.narrowed(wish["cases"]), wish), files, wish["caption"])


def _table(name: str, sheets: list[Sheet], files: dict[str, str], caption: str = "") -> dict[str, Any]:
    """Return the tables of one file for the template, with their caption and downloads. ``files``: name of a file → its
    path."""
    return {"name": name, "sheets": sheets, "caption": caption, **_downloads(name, files, TABLE_FILES)}


def _tuning(files: dict[str, str], study: str) -> dict[str, Any]:
    """Return the figures and tables of tuning and of standings, read from ``files`` (name → path); {} for a study
    without tuned methods."""
    if "tuning.csv" not in files:
        return {}
    makers = {"standings": standings, "tuning": tuned}
    tables = {name: [maker.sheet(maker.read(files[f"{name}.csv"]), study)] for name, maker in makers.items()}
    return {
        "figures": [_drawing(name, words.TITLES[name], files) for name in ("front", "tuning")],
        "tables": [_table(name, sheets, files) for name, sheets in tables.items()],
    }


def orders(sheet: Sheet) -> list[dict[str, float | str]]:
    """Return, for each column of a table, text of a cell → the number by which the page sorts it.

    A text that stands for a missing number has "". A column with any other text is sorted as words: its mapping is
    empty.
    """
    columns: list[dict[str, float | str]] = []
    for i in range(len(sheet.heads)):
        numbers = {line.cells[i].text: leading(line.cells[i].text) for line in sheet.lines}
        bare = dict.fromkeys((text for text, number in numbers.items() if math.isnan(number)), "")
        sortable = len(bare) < len(numbers) and bare.keys() <= set(ABSENT)
        most = sys.float_info.max  # in place of ∞, so that the page has a number to sort by
        columns.append({text: min(max(n, -most), most) for text, n in numbers.items()} | bare if sortable else {})
    return columns


def _drawing(name: str, title: str, files: dict[str, str], caption: str = "") -> dict[str, Any]:
    """Return the drawing, title, caption and downloads of a figure for the template. ``wide``: it takes more than half
    the page.

    The title is the sentence on what the figure shows, if it has one, and ``kind`` is then the study's ``title``, with
    which its caption begins; otherwise the title is the study's and ``kind`` is "".
    """
    shown = embed.title(files[f"{name}.svg"]) or title
    drawing = embed.drawing(files[f"{name}.svg"], str(escape(shown)))
    kind = "" if shown == title else title if title.endswith(("?", ".")) else f"{title}."
    return {
        "name": name, "title": shown, "kind": kind, "drawing": Markup(drawing), "caption": caption,
        "wide": embed.width(drawing) > style.HALF * 72 * 1.1, **_downloads(name, files, FIGURE_FILES),
    }  # fmt: skip


def _downloads(name: str, files: dict[str, str], endings: tuple[str, ...]) -> dict[str, Any]:
    return {"downloads": [embed.download(files[name + ending]) for ending in endings if name + ending in files]}
