"""The report: numbers, figures, tables, controls, costs and settings in one file that needs no network."""

import re
from pathlib import Path

from unlearning.artifacts.files import checked, read_json
from unlearning.artifacts.tables import UNION_COLUMNS, read_rows
from unlearning.display import decisions, lookup, naming, style
from unlearning.display.decisions import Decisions
from unlearning.display.lookup import Numbers
from unlearning.display.page import copies, dag, embed, sentences
from unlearning.display.tables import cost, grid
from unlearning.display.tables import meta as worth
from unlearning.display.tables import verdicts as judged
from unlearning.display.tables.formats import spans
from unlearning.display.tables.typeset import Sheet

TABLE_FILES, FIGURE_FILES = (".csv", ".md", ".tex"), (".svg", ".png")


def render(
    *, metrics: str, costs: str, published: str, template: str, stylesheet: str, specs: list[str],
    displays: list[str], order: dict,
) -> str:  # fmt: skip
    """The page's html.

    ``metrics`` and ``costs`` are the study's two csv files, ``displays`` those of all tables and figures,
    ``specs`` of all nodes; ``order`` is that of `workflow.parameters.report`. Text from studies and plug-ins is
    escaped.
    """
    import jinja2
    from markupsafe import Markup

    union = read_rows(metrics, UNION_COLUMNS)
    numbers = Numbers(union, order["cases"])
    rows, files = cost.read(costs), {Path(path).name: path for path in displays}
    boxes = dag.stages(cost.stages(rows), len(order["tables"]) + len(order["figures"]) + 6)
    found = decisions.read(order["verdicts"]["comparisons"], rows)
    last = "comparisons" if order["verdicts"]["comparisons"] else "metrics"
    edges = [*order["edges"], [last, "report"]]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["paragraphs"] = paragraphs
    context = {
        "order": order,
        "opening": opening(numbers),
        "summary": summary(numbers, found),
        "verdicts": _verdicts(found, order["verdicts"], files),
        "headline": _table(numbers, order["headline"], files, published),
        "tables": [_table(numbers, wish, files, published) for wish in order["tables"]],
        "figures": [_figure(wish, files) for wish in order["figures"]],
        "controls": controls(numbers, found),
        "copies": _copies(order["copies"]),
        "dag": Markup(dag.across(boxes, edges) + dag.down(boxes, edges)),
        "cost": {
            "sheets": [_sheet(sheet) for sheet in cost.sheets(rows, order["cost"])],
            **_downloads("cost", files, TABLE_FILES),
        },
        "meta": _worth(files),
        "settings": settings(order["scenarios"]),
        "software": software(specs),
        "example": example(numbers),
        "artifacts": [
            {**c, "where": lookup.label(lookup.place(c)), "who": naming.method(c["method"])} for c in order["cases"]
        ],
        "style": Markup(_text(stylesheet)),
    }
    return environment.from_string(_text(template)).render(context)


def paragraphs(text: str) -> list[str]:
    """A caption's paragraphs as markup; *emphasis* is the only formatting."""
    from markupsafe import Markup, escape

    plain = [str(escape(" ".join(part.split()))) for part in text.split("\n\n")]
    return [Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", part)) for part in plain]


def opening(numbers: Numbers) -> str:
    """What was done, in one sentence."""
    names = [name for name in lookup.methods(numbers.cases) if name not in naming.BASELINES]
    scenarios = list(dict.fromkeys(case["scenario"] for case in numbers.cases))
    counted = f"{len(names)} unlearning method{'' if len(names) == 1 else 's'}"
    return (
        f"This page says how well {counted} made models forget samples that they had been trained on, measured in "
        f"{len(scenarios)} scenario{'' if len(scenarios) == 1 else 's'}, and how far the metrics themselves can be "
        "trusted."
    )


def summary(numbers: Numbers, found: Decisions) -> list[dict]:
    """For every scenario, what retraining and doing nothing read, and a sentence for each method.

    A scenario with axes gets one sentence per method that names the settings of each verdict.
    """
    said = sentences.methods(numbers, found)
    told = []
    for scenario in dict.fromkeys(case["scenario"] for case in numbers.cases):
        places = [where for where in lookup.places(numbers.cases) if where[0] == scenario]
        own = [verdict for verdict in said if verdict.place in places]
        names = dict.fromkeys(verdict.subject for verdict in own)
        lines = [_sentence([v for v in own if v.subject == name], len(places) > 1) for name in names]
        frame = _frame(numbers, places[0]) if len(places) == 1 else ""
        told.append({"where": scenario.replace("_", " "), "frame": frame, "verdicts": lines})
    return told


def _sentence(said: list[sentences.Verdict], varied: bool) -> dict:
    """What is said about one method in one scenario, in one line."""
    if not varied:
        text = ", ".join(filter(None, (said[0].value, said[0].text)))
        return {"subject": said[0].subject, "text": text, "tone": said[0].tone}
    groups: dict[str, list[str]] = {}
    for verdict in said:
        groups.setdefault(verdict.text, []).append(verdict.place[1])
    parts = [f"at {_settings_of(some)}: {text}" for text, some in groups.items()]
    tones = {verdict.tone for verdict in said}
    return {"subject": said[0].subject, "text": "; ".join(parts), "tone": tones.pop() if len(tones) == 1 else ""}


def _settings_of(settings: list[str]) -> str:
    """ "size = 400, 800" for settings of one axis, else the settings in turn."""
    names = {setting.split("=", 1)[0] for setting in settings}
    if len(names) == 1 and not any(";" in setting for setting in settings):
        return f"{names.pop()} = " + ", ".join(naming.value(setting.split("=", 1)[1]) for setting in settings)
    return "; ".join(map(naming.setting, settings))


def _frame(numbers: Numbers, where: tuple[str, str]) -> str:
    """What the yardstick and none read."""
    standard, best = sentences.yardstick(numbers, where)
    ground = lookup.at(numbers.cases, where, "none")
    metric, none = numbers.primary(ground) if ground else ("", lookup.missing(""))
    label = naming.meaning(metric).shown
    known = ((naming.method(standard), best), ("none", none))
    return "; ".join(f"{name} reads {sentences.shown(label, cell)}" for name, cell in known if not cell.empty)


def controls(numbers: Numbers, found: Decisions) -> dict:
    """A row for every scenario with a sign for each check, and a sentence for all that did not hold."""
    signs = {"good": "✓", "bad": "✗", "": "?"}
    said = sentences.controls(numbers, found)
    rows = []
    for where in lookup.places(numbers.cases):
        own = {verdict.subject: verdict for verdict in said if verdict.place == where}
        cells = [
            {"text": f"{signs[own[check].tone]} {own[check].value}".strip(), "tone": own[check].tone, "marks": []}
            for check in sentences.CHECKS
        ]
        rows.append({"label": lookup.label(where), "marks": [], "cells": cells})
    wrong = [{"where": lookup.label(v.place), "text": v.text} for v in said if v.tone == "bad"]
    return {"heads": list(sentences.CHECKS), "rows": rows, "wrong": wrong}


def settings(scenarios: list[dict]) -> dict:
    """Flat settings: what all scenarios share, and the fields in which they differ with each one's value.

    Options of a method or an attack differ only among scenarios that use it.
    """
    flat = []
    for one in scenarios:
        lists = {kind: ", ".join(one[kind]) or "none" for kind in ("methods", "attacks")}
        flat.append({**_flat({k: v for k, v in one.items() if k not in ("scenario", "setting")}), **lists})
    names = list(dict.fromkeys(name for one in flat for name in one))
    shared, differ = [], []
    for name in names:
        optional = name.startswith(("methods.", "attacks."))
        values = [one.get(name, "" if optional else "—") for one in flat]
        known = {value for value in values if value}
        if len(known) == 1:
            shared.append((name, known.pop()))
        else:
            differ.append((name, values))
    labels = [lookup.label((one["scenario"], one["setting"])) for one in scenarios]
    return {"shared": shared, "labels": labels, "differ": differ}


def software(specs: list[str]) -> list[tuple[str, str]]:
    """Every package, processor and device that some node was made with; several versions are all named."""
    found: dict[str, dict[str, None]] = {}
    for path in specs:
        spec = read_json(path)
        machine = spec.get("machine", {})
        facts = {"python": spec.get("python"), **spec.get("packages", {}), **machine}
        for name in facts:
            if facts[name] not in (None, ""):
                found.setdefault(name, {})[str(facts[name])] = None
    return [(name, ", ".join(sorted(values))) for name, values in found.items()]


def example(numbers: Numbers) -> dict | None:
    """One number of the study, and the file that it comes from: what a reader would look up first."""
    for case in sorted(numbers.cases, key=lambda case: case["method"] in naming.BASELINES):
        metric, cell = numbers.primary(case)
        if not cell.empty:
            row = {"metric": metric, "attack": cell.attack, "setting": cell.setting, "value": repr(cell.value)}
            shown = sentences.shown(naming.meaning(metric).shown, cell)
            return {
                **row,
                "who": naming.method(case["method"]),
                "where": lookup.label(lookup.place(case)),
                "shown": shown,
                "path": case["metrics"],
            }
    return None


def _table(numbers: Numbers, wish: dict, files: dict[str, str], published: str) -> dict:
    sheets = [_sheet(sheet) for sheet in grid.sheets_of(numbers.narrowed(wish["cases"]), wish, published)]
    shown = {"name": wish["name"], "sheets": sheets, "caption": wish["caption"]}
    return {**shown, **_downloads(wish["name"], files, TABLE_FILES)}


def _figure(wish: dict, files: dict[str, str]) -> dict:
    from markupsafe import Markup, escape

    title, name = wish["figure"]["title"], wish["name"]
    drawing = embed.drawing(files[f"{name}.svg"], str(escape(title)))
    wide = embed.width(drawing) > style.HALF * 72 * 1.1
    shown = {"name": name, "title": title, "caption": wish["caption"], "drawing": Markup(drawing), "wide": wide}
    return {**shown, **_downloads(name, files, FIGURE_FILES)}


def _verdicts(found: Decisions, order: dict, files: dict[str, str]) -> dict:
    """The tables and drawings of the rule that wrote the verdicts down."""
    from markupsafe import Markup

    makers = {"verdicts": judged.verdicts, "ranks": judged.ranks, "resolution": judged.resolution}
    titles = {"verdicts": "Between doing nothing and retraining", "resolution": "Hours against resolution"}
    tables = {
        name: {"sheet": _sheet(make(found, order["study"])), **_downloads(name, files, TABLE_FILES)}
        for name, make in makers.items()
    }
    drawings = {
        name: {
            "drawing": Markup(embed.drawing(files[f"{name}.svg"], title)),
            "title": title, **_downloads(name, files, FIGURE_FILES),
        }
        for name, title in titles.items()
    }  # fmt: skip
    return {"tables": tables, "drawings": drawings, "any": bool(order["comparisons"])}


def _worth(files: dict[str, str]) -> dict:
    """What every metric is worth, from the files of the rule meta; the figure only if there are metrics to compare."""
    from markupsafe import Markup

    rows = worth.read(files["meta.csv"])
    drawing = embed.drawing(files["meta.svg"], "What every metric is worth") if len(worth.metrics(rows)) > 1 else ""
    return {
        "sheets": [_sheet(sheet) for sheet in worth.sheets(rows)] if rows else [],
        "drawing": Markup(drawing),
        "figure": _downloads("meta", files, FIGURE_FILES),
        **_downloads("meta", files, TABLE_FILES),
    }


def _copies(order: list[dict]) -> dict:
    """What was found of samples that occur more than once: a sentence, and a table if there are any."""
    found = copies.sheet(copies.read(order))
    return {"reading": found.reading if found else copies.NONE, "sheet": _sheet(found) if found else None}


def _sheet(sheet: Sheet) -> dict:
    """A sheet with footnote markers in place, as the template wants it."""

    def cells(line):
        return [{"text": c.text, "marks": sheet.marks(c.notes), "tone": c.tone} for c in line.cells]

    def lines(some):
        return [{"label": line.label, "marks": sheet.marks(line.notes), "cells": cells(line)} for line in some]

    return {
        "name": sheet.name,
        "title": sheet.title,
        "reading": sheet.reading,
        "corner": sheet.corner,
        "groups": spans(sheet) if any(head.group for head in sheet.heads) else [],
        "heads": [{"label": head.label, "marks": sheet.marks(head.notes)} for head in sheet.heads],
        "sections": [(name, lines(some)) for name, some in sheet.sections()],
        "footer": lines(sheet.footer),
        "notes": sheet.explained(),
    }


def _downloads(name: str, files: dict[str, str], endings: tuple[str, ...]) -> dict:
    return {"downloads": [embed.download(files[name + ending]) for ending in endings if name + ending in files]}


def _flat(tree: object, path: str = "") -> dict[str, str]:
    """Nested settings as dotted names; what is empty is left out."""
    if isinstance(tree, dict):
        parts = (_flat(value, f"{path}.{name}" if path else str(name)) for name, value in tree.items())
        return {name: value for part in parts for name, value in part.items()}
    return {} if tree is None or tree == [] else {path: str(tree)}


def _text(path: str) -> str:
    return checked(path, lambda: Path(path).read_text(encoding="utf-8"))
