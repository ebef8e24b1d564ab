"""A page made by hand, for the tests of its text and for those in a browser."""

import json
from pathlib import Path

from unlearning_audit.comparisons.meta import evaluate
from unlearning_audit.evaluation import records
from unlearning_audit.evaluation.rows import write_union
from unlearning_audit.report import naming, style
from unlearning_audit.report.figures import _meta, _verdicts, quality
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.page import page
from unlearning_audit.report.tables import cost, formats, grid, verdicts
from unlearning_audit.report.tables import meta as worth
from unlearning_audit.store import tables
from unlearning_audit.store.files import write_json, write_spec
from unlearning_audit.workflow import parameters

from decision_cases import GOOD, decisions_on, write_decisions
from decision_cases import rows as rows_of
from display_cases import case, row, study

ROOT = Path(__file__).resolve().parents[2]
PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAA"
    "AfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
NASTY = "<img src=x onerror=alert(1)>&\"'\\1{{ 7*7 }}"


def budgets(folder):
    """What was compared at two privacy budgets: fisher is broken at one, inconclusive at the other."""
    verdicts_on = {
        "8": rows_of("fisher", "broken", 0.0, share=0.9, gap=0.4),
        "inf": rows_of("fisher", "inconclusive", 0.03, p=0.2, share=0.7, note="4 times as many pairs would decide"),
    }
    compared = []
    for step, fisher in verdicts_on.items():
        place = ("budget", f"epsilon={step}")
        decisions = decisions_on(place, GOOD[0], GOOD[1], fisher)
        compared.append(write_decisions(folder / f"judged-{step}", decisions, place))
    return compared


def exposed(path):
    """Records of scrub: a picture, a passage of nasty text and what only claims to be a picture."""
    common = dict.fromkeys(records.COLUMNS, 0) | {"label": 3, "person": "", "person_recognised": "", "recognised": 1,
              "rate": 0.1, "p": 1e-3, "beside": ""}  # fmt: skip
    place = {"study": "s", "scenario": "plain", "setting": "", "method": "scrub"}
    contents = [("picture", PICTURE), ("text", NASTY), ("picture", "data:image/png;base64,x\" onload=\"y"),
                ("picture", "https://example.org/x.png"), ("picture", "data:image/svg+xml;base64,AAAA")]  # fmt: skip
    lines = [{**place, **common, "sample": i, "kind": kind, "content": text} for i, (kind, text) in enumerate(contents)]
    lines.append({**place, **common, "recognised": 0, "p": 0.5, "kind": "", "content": ""})
    lines.append({**lines[-1], "method": "ssd"})
    tokens = json.dumps([["New ", None], [NASTY, 0.1], [" 3.5", 4.25]])
    of_none = {**lines[0], "method": "none", "kind": "tokens", "content": tokens}
    unseen = {
        **of_none,
        "sample": 9,
        "recognised": 0,
        "p": "",
        "beside": of_none["sample"],
        "kind": "values",
        "content": "1, 2",
    }
    lines += [of_none, unseen]
    records.write(path, lines, records.UNION)
    return str(path)


def large(folder, methods, scenarios):
    """(cases, what was compared) of so many methods, all distinguishable, in so many scenarios more."""
    names = [f"method_{i}" for i in range(methods)]
    cases, compared = [], []
    for i in range(scenarios):
        place = (f"scenario_{i}", "")
        verdicts_on = [rows_of(name, "distinguishable", 0.2, share=0.22) for name in names]
        compared.append(write_decisions(folder / f"many-{i}", decisions_on(place, *GOOD, *verdicts_on), place))
        cases += [case(place[0], name) for name in ("none", "retrain", "retrain_control", *names)]
    return cases, compared


def render(folder, methods=0, scenarios=0, extended=None):
    """(text, files by name) of the page of the study made by hand, with one method and one scenario of nasty names, and
    with so many ``methods`` in so many ``scenarios`` more; ``extended``: how its first scenario grew without a plan."""
    cases, rows = study()
    efficacy = {"finetune": 0.1, "scrub": 0.9, "ssd": 0.2}  # a second system, which puts the first one last
    plain = [entry for entry in cases if entry["scenario"] == "plain" and entry["method"] in efficacy]
    rows += [row(entry, "efficacy_median", value := efficacy[entry["method"]], value, value) for entry in plain]
    more, more_compared = large(folder, methods, scenarios)
    cases += more
    cases.append(case(NASTY, NASTY.lower()))
    rows.append(row(cases[-1], "q", 0.5, 0.47, 0.53, "paper", note=NASTY))
    for entry in cases:
        entry |= {"metrics": f"results/metrics/{entry['scenario']}/metrics.csv", "scores": ""}
    write_union(folder / "metrics.csv", "s", rows)
    nodes = []
    for stage, models in (("train", 2), ("unlearn", 2), ("metrics", 0)):
        path = folder / stage / "x-0123456789" / "spec.json"
        write_spec(path, {"seconds": {"function": 61.0, "process": 5.0}, "models": models, "unlearn_seconds": 3.0,
                          "packages": {"numpy": NASTY}, "python": "3.11"})  # fmt: skip
        nodes.append({"stage": stage, "node": path.parent.name, "spec": str(path)})
    tables.write_rows(folder / "cost.csv", cost.rows(nodes), cost.COLUMNS)
    wish = {"title": NASTY, "metric": "q", "scenarios": ["plain", NASTY], "columns": "scenario", "layout": "wide",
            "attack": "", "where": {}, "footer": ["accuracy"], "published": None}  # fmt: skip
    head = {"name": "headline", "title": "Study s", "table": None, "cases": cases, "caption": "One.\n\nTwo."}
    table = {"name": "t1", "table": wish, "cases": cases[:7] + cases[-1:], "caption": ""}
    figure = {"name": "f1", "figure": {"kind": "quality", "title": NASTY, "attack": ""}, "caption": NASTY,
              "cases": cases[:7], "methods": [entry["method"] for entry in cases]}  # fmt: skip
    numbers = Numbers(rows, cases)
    files = {kind: folder / f"f1.{kind}" for kind in ("svg", "png")}
    style.save(quality.draw(numbers.narrowed(cases[:7]), figure), **files)
    for order in (head, table):
        paths = {kind: folder / f"{order['name']}.{kind}" for kind in ("csv", "md", "tex")}
        formats.write(grid.sheets_of(numbers.narrowed(order["cases"]), order, ""), **paths)
        files |= {f"{order['name']}.{kind}": path for kind, path in paths.items()}
    paths = {kind: folder / f"meta.{kind}" for kind in ("csv", "md", "tex", "svg", "png")}
    evaluation = evaluate(rows, naming.quantities().values(), broken=0.1)
    formats.write(worth.sheets(evaluation), **{kind: paths[kind] for kind in ("csv", "md", "tex")})
    style.save(_meta.draw(evaluation), **{kind: paths[kind] for kind in ("svg", "png")})
    files |= {f"meta.{kind}": path for kind, path in paths.items()}
    judged = decisions_on(("plain", ""), *GOOD, rows_of("scrub", "distinguishable", 0.2, share=0.5))
    for i, name in enumerate(("verdicts", "ranks", "resolution")):
        paths = {kind: folder / f"{name}.{kind}" for kind in ("csv", "md", "tex")}
        sheet = (verdicts.verdicts, verdicts.ranks, verdicts.resolution)[i](judged, "s")
        formats.write([sheet], **paths)
        files |= {f"{name}.{kind}": path for kind, path in paths.items()}
    paths = {kind: folder / f"verdicts.{kind}" for kind in ("svg", "png")}
    style.save(_verdicts.draw(judged), **paths)
    files |= {f"verdicts.{kind}": path for kind, path in paths.items()}
    first = write_decisions(folder / "judged", judged, ("plain", "")) | ({"extended": extended} if extended else {})
    compared = [first, *budgets(folder), *more_compared]
    comparison = {"study": NASTY, "comparisons": compared}
    captions = {path.stem: path.read_text() for path in parameters.CAPTIONS.glob("*.rst")}
    scenario = {"scenario": "plain", "setting": "", "data": {"name": "digits"}, "methods": {"none": {"name": "none"}},
                "attacks": {}, "recipe": {"lr": 0.1, "dp": None}}  # fmt: skip
    scenarios = [scenario, {**scenario, "scenario": NASTY, "recipe": {"lr": 0.2}}]
    order = {"study": NASTY, "verdicts": comparison, "command": "snakemake --cores 1", "seed": 3,
             "bootstrap": 100, "scenarios": scenarios, "cases": cases, "headline": head,
             "tables": [table], "figures": [figure], "captions": captions,
             "cost": {"cases": [{**entry, "specs": [nodes[1]["spec"]]} for entry in cases]}}  # fmt: skip
    counts = {"forgotten": 900, "forgotten_kept": 7, "forgotten_heldout": 0, "heldout": 900, "heldout_trained": 0}
    doubled = {"data": {"duplicates": {"groups": 4, "train_test_pairs": 0}}, "splits": {"copies": counts}}
    for name, spec in doubled.items():
        write_json(folder / f"{name}.json", spec)
    copied = {"data": str(folder / "data.json"), "splits": [str(folder / "splits.json")]}
    order["copies"] = [{"scenario": NASTY, "setting": "", **copied}]
    text = page.render(
        metrics=str(folder / "metrics.csv"), costs=str(folder / "cost.csv"),
        records=exposed(folder / "records.csv"), published="", resources=str(ROOT / "resources/page"),
        specs=[node["spec"] for node in nodes], displays=[str(path) for path in files.values()], order=order,
    )  # fmt: skip
    return text, files
