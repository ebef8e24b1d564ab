"""Make the report: verdicts, numbers, figures, tables, controls, costs and settings in one file that needs no
network."""

import ast
import itertools
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from unlearning_audit.plugins import registry
from unlearning_audit.report import answer, compare, lookup, naming, style, templates, words
from unlearning_audit.report.decisions import Decisions
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.page import copies, details, embed, recognised, sentences
from unlearning_audit.report.tables import cost, grid, standings
from unlearning_audit.report.tables import meta as worth
from unlearning_audit.report.tables import tuning as tuned
from unlearning_audit.report.tables import verdicts as judged
from unlearning_audit.report.tables.formats import spans
from unlearning_audit.report.tables.typeset import ABSENT, Sheet, decimals, interval, leading
from unlearning_audit.store.files import read_json


def render(
    numbers: Numbers,
    judgements: Decisions,
    ledger: list[dict[str, Any]],
    records: str,
    specs: list[str],
    displays: list[str],
    order: dict[str, Any],
) -> str:
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
    study, folder = order["study"], templates.FOLDER
    makers = {"standings.csv": standings, "tuning.csv": tuned}  # only of a study with tuned methods
    return templates.render(
        "page.html",
        **_first_screen(numbers, judgements, order, ledger, found),
        # What the template shows.
        order=order,
        numbers=numbers,
        judgements=judgements,
        found=found,
        files=files,
        verdicts=[[make(judgements, study)] for make in (judged.verdicts, judged.ranks, judged.resolution)],
        headline=grid.sheets_of(numbers.narrowed(order["headline"]["cases"]), order["headline"]),
        tables=[grid.sheets_of(numbers.narrowed(table["cases"]), table) for table in order["tables"]],
        tuning=[[make.sheet(make.read(files[name]), study)] for name, make in makers.items() if name in files],
        meta=worth.sheets(worth.read(files["meta.csv"])),
        copies=copies.read(order["copies"]),
        cost=cost.sheets(ledger, order["cost"]),
        settings=settings(order["scenarios"]),
        software=software(specs),
        example=example(numbers),
        half=1.1 * 72 * style.HALF,
        script=Markup(templates.read(folder / "page.js")),
        datatables=embed.packed(templates.read(folder / "vendor/datatables.min.js").encode()),
        # What the template calls.
        embed=embed,
        lookup=lookup,
        naming=naming,
        recognised=recognised,
        sentences=sentences,
        words=words,
        sort_numbers=sort_numbers,
        paragraphs=paragraphs,
        spans=spans,
    )


def _first_screen(
    numbers: Numbers, judgements: Decisions, order: dict[str, Any], ledger: list[dict[str, Any]], found: dict[Any, Any]
) -> dict[str, Any]:
    """Return what the template shows at the top of the page: the answer in one scenario and setting, the matrix of
    verdicts, the sentences above it, what would decide open verdicts, and the compressed details of the squares. If no
    scenario has methods besides references, ``answer`` and ``pictured`` are None, and ``times`` is {}.

    Parameters
    ----------
    ledger
        The seconds of each job.
    found
        (method, "scenario|setting") → its recognised records.
    """
    answers = answer.answers(numbers, judgements)
    # The first screen shows, of the scenarios with methods, the one that most systems of evaluation judge, if possible
    # one whose checks passed.
    with_methods = [column for column in answers if column.lines]
    passed = [column for column in with_methods if column.passed]
    shown = max(passed or with_methods, key=lambda column: len(column.judges), default=None)
    times: dict[str, float] = {}  # method → its time divided by that of retraining, where it is known
    pictured = None
    if shown:
        ratios = cost.ratios(ledger, order["cost"]["cases"])  # (scenario, setting, method) → (seconds, time ratio)
        times = {key[2]: r for key, (_, r) in ratios.items() if key[:2] == shown.judged.place and not math.isnan(r)}
        pictured = recognised.pictured(found, shown.key, [line.method for line in shown.lines])
    behind = details.build(answers, order["cases"], order["command"])
    content = json.dumps(behind, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    squares = [line for column in answers for line in column.squares.values()]
    rank = {name: number for number, name in enumerate(naming.BASELINES, start=1)}  # references come last
    return {
        "columns": answers,
        "methods": sorted(dict.fromkeys(line.method for line in squares), key=lambda name: rank.get(name, 0)),
        "scenarios": [(name, [*group]) for name, group in itertools.groupby(answers, lambda column: column.scenario)],
        "squares": squares,
        "answer": shown,
        "times": times,
        "pictured": pictured,
        "about": {case["method"]: about(case["plugin"], case.get("file")) for case in numbers.cases},
        "details": embed.packed(content.encode()),
    }


def about(plugin: str, file: str | None) -> str:
    """Return the first line of the docstring of a method's file: the user's ``file``, or that of the library's
    ``plugin``.

    "" for imported methods, which have no file, and for a file that does not exist or has no docstring.
    """
    if not file and plugin not in registry.names("methods"):
        return ""
    path = Path(file) if file else registry.source_file("methods", plugin)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return next(iter((ast.get_docstring(ast.parse(text)) or "").splitlines()), "")


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a caption as markup; *emphasis* is the only formatting."""
    plain = [str(escape(" ".join(part.split()))) for part in text.split("\n\n")]
    return [Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", part)) for part in plain]


def settings(scenarios: list[dict[str, Any]]) -> dict[str, Any]:
    """Return for a table the settings that all ``scenarios`` share, each as (name, value), the ``labels`` of the
    scenarios, and the settings that ``differ`` between scenarios, each as (name, its value in each scenario).

    The options of methods and attacks are settings, and so are the lists of their names. An option differs only if two
    scenarios that use the method or attack have different values; in scenarios that do not use it, its value is "". Any
    other setting that a scenario lacks, or that is None or [] there, is "—".
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


def sort_numbers(sheet: Sheet) -> list[dict[str, float | str]]:
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
