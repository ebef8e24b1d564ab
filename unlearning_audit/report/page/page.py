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
from unlearning_audit.report.page import answered, copies, details, embed, recognised, sentences
from unlearning_audit.report.tables import cost, grid, standings
from unlearning_audit.report.tables import meta as worth
from unlearning_audit.report.tables import tuning as tuned
from unlearning_audit.report.tables import verdicts as judged
from unlearning_audit.report.tables.formats import spans
from unlearning_audit.report.tables.typeset import ABSENT, Sheet, decimals, interval, leading
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
    """Return the page as HTML.

    Text from studies and plug-ins is escaped.

    Parameters
    ----------
    numbers, judgements
        All numbers and verdicts of the study.
    ledger
        The seconds of each job.
    records
        Path of the study's table of recognised records.
    specs
        Paths of the jobs' ``spec.json``.
    displays
        Paths of all tables and figures.
    order
        What the page shows, as `workflow.parameters.report` returns it.
    """
    found, files = recognised.read(records), {Path(path).name: path for path in displays}
    verdict_tables = {"verdicts": judged.verdicts, "ranks": judged.ranks, "resolution": judged.resolution}
    evaluated, folder = worth.read(files["meta.csv"]), templates.FOLDER
    context = {
        "order": order, **_first_screen(numbers, judgements, order, ledger, found), "recognised": found,
        "script": Markup(templates.read(folder / "page.js")),
        "libraries": {name: embed.packed(templates.read(folder / f"vendor/{name}.min.js").encode())
                      for name in LIBRARIES},
        "verdicts": [_table(name, [make(judgements, order["study"])], files) for name, make in verdict_tables.items()],
        "references": naming.BASELINES, "between": _drawing("verdicts", words.TITLES["verdicts"], files),
        "headline": _metric_table(numbers, order["headline"], files),
        "tables": [_metric_table(numbers, table, files) for table in order["tables"]],
        "figures": [_drawing(figure["name"], figure["figure"]["title"], files, figure["caption"])
                    for figure in order["figures"]],
        "controls": controls(numbers, judgements), "copies": copies.sheet(copies.read(order["copies"])),
        "cost": _table("cost", cost.sheets(ledger, order["cost"]), files),
        "meta": _table("meta", worth.sheets(evaluated), files),
        "worth": _drawing("meta", words.TITLES["meta"], files) if len(worth.metrics(evaluated)) > 1 else None,
        "tuning": _tuning(files, order["study"]), "settings": settings(order["scenarios"]),
        "software": software(specs), "example": example(numbers),
    }  # fmt: skip
    filters = {
        "paragraphs": paragraphs,
        "named": naming.method,
        "label_of": lookup.label_of,
        "where": lookup.about,
        "orders": orders,
        "spans": spans,
        "ordinal": words.ordinal,
        "card": recognised.card,
    }
    return templates.render("page.html", filters, **context)


def _first_screen(
    numbers: Numbers, judgements: Decisions, order: dict[str, Any], ledger: list[dict[str, Any]], found: dict[Any, Any]
) -> dict[str, Any]:
    """Return what the template shows at the top of the page: the answer in one scenario and setting, the matrix of
    verdicts, the sentences above it, what would decide open verdicts, and the compressed details of the squares.

    Parameters
    ----------
    ledger
        The seconds of each job.
    found
        (method, "scenario|setting") → its recognised records.
    """
    answers = answer.answers(numbers, judgements)
    shown = answered.chosen(answers)
    times: dict[str, float] = {}  # method → its time divided by that of retraining, where it is known
    pictured = None
    if shown:
        ratios = cost.ratios(ledger, order["cost"]["cases"])  # (scenario, setting, method) → (seconds, time ratio)
        times = {key[2]: r for key, (_, r) in ratios.items() if key[:2] == shown.judged.place and not math.isnan(r)}
        pictured = recognised.pictured(found, shown.key, [line.method for line in shown.lines])
    behind = details.build(answers, order["cases"], order["command"])
    content = json.dumps(behind, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    methods = list(dict.fromkeys(method for column in answers for method in column.squares))
    references = [name for name in naming.BASELINES if name in methods]
    return {
        "columns": answers, "methods": [*(name for name in methods if name not in references), *references],
        "scenarios": [(name, [*group]) for name, group in itertools.groupby(answers, lambda column: column.scenario)],
        "squares": [line for column in answers for line in column.squares.values()], "answer": shown,
        "times": times, "pictured": pictured,
        "about": {case["method"]: answered.about(case["plugin"], case.get("file")) for case in numbers.cases},
        "states": words.MEANINGS,
        "lead": list(filter(None, [*answered.cautions(answers), judgements.extensions()])), "roomy": ROOMY,
        "details": embed.packed(content.encode()),
    }  # fmt: skip


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a caption as markup; *emphasis* is the only formatting."""
    plain = [str(escape(" ".join(part.split()))) for part in text.split("\n\n")]
    return [Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", part)) for part in plain]


def controls(numbers: Numbers, judgements: Decisions) -> dict[str, Any]:
    """Return the section of the page on checks: every scenario with its checks, a sentence for each failed check and
    for everything else that went wrong, and the remarks on result files."""
    rows, wrong, noted = [], [], []
    for where in lookup.places(numbers.cases):
        checks = sentences.checks(judgements.at(where)).values()
        rows.append((lookup.label(where), checks))
        wrong += [(lookup.label(where), check.text) for check in checks if check.tone == "bad"]
    for case in numbers.cases:
        label = lookup.label_of(case)
        wrong += [(label, text) for text in sentences.wrong(numbers, case)]
        noted += [(label, text.rstrip(".")) for text in numbers.noted(case, "remark")]
    return {"heads": list(words.CHECKS), "rows": rows, "wrong": wrong, "noted": noted}


def settings(scenarios: list[dict[str, Any]]) -> dict[str, Any]:
    """Return for a table the settings that all scenarios share, and the settings that differ, with their value in each
    scenario.

    The options of methods and attacks are settings, and so are the lists of their names. An option differs only if two
    scenarios that use the method or attack have different values; elsewhere, its value is "". Any other setting that a
    scenario lacks is "—".
    """
    flat = []  # for each scenario, dotted name → value as text
    for scenario in scenarios:
        fields = compare.flat({name: value for name, value in scenario.items() if name not in ("scenario", "setting")})
        texts = {name: str(value) for name, value in fields.items() if value not in (None, [])}
        texts |= {kind: ", ".join(scenario[kind]) or "none" for kind in ("methods", "attacks")}
        flat.append(texts)
    shared, differ = [], []
    for name in dict.fromkeys(name for texts in flat for name in texts):
        absent = "" if name.startswith(("methods.", "attacks.")) else "—"
        values = [texts.get(name, absent) for texts in flat]
        distinct = {value for value in values if value}
        if len(distinct) == 1:
            shared.append((name, distinct.pop()))
        else:
            differ.append((name, values))
    labels = [lookup.label_of(scenario) for scenario in scenarios]
    return {"shared": shared, "labels": labels, "differ": differ}


def software(specs: list[str]) -> list[tuple[str, str]]:
    """Return (name, all its versions) for Python and every package, processor and device that a job used. ``specs``:
    paths of the jobs' ``spec.json``."""
    versions: dict[str, set[str]] = {}
    for spec in map(read_json, specs):
        facts = {"python": spec.get("python"), **spec.get("packages", {}), **spec.get("machine", {})}
        for name, value in facts.items():
            if value not in (None, ""):
                versions.setdefault(name, set()).add(str(value))
    return [(name, ", ".join(sorted(values))) for name, values in versions.items()]


def example(numbers: Numbers) -> dict[str, Any] | None:
    """Return a case with its main number and the metric's name, with which the page explains how to look a number up;
    None if the study has no number. References are only taken if no other method has a number."""
    for case in sorted(numbers.cases, key=lambda case: case["method"] in naming.BASELINES):
        metric, cell = numbers.primary(case)
        if not cell.empty:
            shown = f"{naming.meaning(metric).display_name} {interval(cell, decimals([cell]))}"
            return {"case": case, "metric": metric, "cell": cell, "shown": shown}
    return None


def _metric_table(numbers: Numbers, order: dict[str, Any], files: dict[str, str]) -> dict[str, Any]:
    """Return the headline or an entry of the study's ``tables`` for the template. ``order``: its settings and cases."""
    return _table(order["name"], grid.sheets_of(numbers.narrowed(order["cases"]), order), files, order["caption"])


def _table(name: str, sheets: list[Sheet], files: dict[str, str], caption: str = "") -> dict[str, Any]:
    """Return the tables called ``name`` for the template, with their caption and downloads. ``files``: name of a file →
    its path."""
    return {"name": name, "sheets": sheets, "caption": caption, **_downloads(name, files, TABLE_FILES)}


def _tuning(files: dict[str, str], study: str) -> dict[str, Any]:
    """Return the figures of tuned methods, and the tables of standings and of tuning, from ``files`` (name → path); {}
    for a study without tuned methods."""
    if "tuning.csv" not in files:
        return {}
    makers = {"standings": standings, "tuning": tuned}
    tables = {name: [maker.sheet(maker.read(files[f"{name}.csv"]), study)] for name, maker in makers.items()}
    figures = [_drawing(name, words.TITLES[name], files) for name in ("front", "tuning")]
    return {"figures": figures, "tables": [_table(name, sheets, files) for name, sheets in tables.items()]}


def orders(sheet: Sheet) -> list[dict[str, float | str]]:
    """Return, for each column of a table, text of a cell → the number by which the page sorts it.

    A text that stands for a missing number (`ABSENT`) has "" in place of a number. If any other text has no number, or
    no text has one, the column is sorted as words: its mapping is empty.
    """
    most = sys.float_info.max  # in place of ∞, so that the page has a number to sort by
    columns: list[dict[str, float | str]] = []
    for i in range(len(sheet.heads)):
        numbers = {line.cells[i].text: leading(line.cells[i].text) for line in sheet.lines}
        missing = {text for text, number in numbers.items() if math.isnan(number)}
        columns.append({})
        if len(missing) < len(numbers) and missing <= set(ABSENT):
            for text, number in numbers.items():
                columns[i][text] = "" if text in missing else min(max(number, -most), most)
    return columns


def _drawing(name: str, title: str, files: dict[str, str], caption: str = "") -> dict[str, Any]:
    """Return the drawing, title, caption and downloads of a figure for the template. ``wide``: whether the figure takes
    more than half of the page.

    If the figure's file has a sentence on what the figure shows, that is the title, and the study's ``title`` is the
    ``kind``, with which the caption begins. Otherwise, the title is the study's, and ``kind`` is "".
    """
    shown = embed.title(files[f"{name}.svg"]) or title
    drawing = embed.drawing(files[f"{name}.svg"], str(escape(shown)))
    kind = ""
    if shown != title:
        kind = title if title.endswith(("?", ".")) else f"{title}."
    return {
        "name": name, "title": shown, "kind": kind, "drawing": Markup(drawing), "caption": caption,
        "wide": embed.width(drawing) > style.HALF * 72 * 1.1, **_downloads(name, files, FIGURE_FILES),
    }  # fmt: skip


def _downloads(name: str, files: dict[str, str], endings: tuple[str, ...]) -> dict[str, Any]:
    """Return the downloads of the files called ``name`` with one of the ``endings``, as far as ``files`` has them."""
    return {"downloads": [embed.download(files[name + ending]) for ending in endings if name + ending in files]}
