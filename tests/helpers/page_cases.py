"""A page made by hand, for the tests of its text and for those in a browser."""

import json

from unlearning_audit.comparisons.meta import evaluate
from unlearning_audit.evaluation import records
from unlearning_audit.report import decisions, naming, style
from unlearning_audit.report.figures import _meta, _verdicts, quality
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.page import page
from unlearning_audit.report.tables import cost, formats, grid, verdicts
from unlearning_audit.report.tables import meta as worth
from unlearning_audit.store.files import write_json, write_spec
from unlearning_audit.store.tables import write_rows
from unlearning_audit.workflow import parameters

from decision_cases import GOOD, decisions_on, write_decisions
from decision_cases import rows as rows_of
from display_cases import case, row, study, wish

PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAA"
    "AfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
NASTY = "<img src=x onerror=alert(1)>&\"'\\1{{ 7*7 }}"


def exposed(path):
    """Records of scrub: a picture, a passage of nasty text and what only claims to be a picture; tokens of none."""
    common = dict.fromkeys(records.COLUMNS, 0) | {
        "study": "s", "scenario": "plain", "setting": "", "method": "scrub", "label": 3, "person": "",
        "person_recognised": "", "recognised": 1, "rate": 0.1, "p": 1e-3, "beside": "", "content": "", "kind": "",
    }  # fmt: skip
    contents = [("picture", PICTURE), ("text", NASTY), ("picture", "data:image/png;base64,x\" onload=\"y"),
                ("picture", "https://example.org/x.png"), ("picture", "data:image/svg+xml;base64,AAAA")]  # fmt: skip
    tokens = json.dumps([["New ", None], [NASTY, 0.1], [" 3.5", 4.25]])
    lines = [{"sample": i, "kind": kind, "content": content} for i, (kind, content) in enumerate(contents)]
    lines += [{"recognised": 0, "p": 0.5}, {"recognised": 0, "p": 0.5, "method": "ssd"}]
    lines.append({"method": "none", "kind": "tokens", "content": tokens})
    unseen = {"sample": 9, "recognised": 0, "p": "", "beside": 0, "kind": "values", "content": "1, 2"}
    lines.append({"method": "none", **unseen})
    write_rows(path, [common | line for line in lines], records.UNION)
    return str(path)


def render(folder):
    """(text, files by name) of the page of the study made by hand, with one method and one scenario of nasty names,
    whose first scenario grew without a plan."""
    cases, rows = study()
    efficacy = {"finetune": 0.1, "scrub": 0.9, "ssd": 0.2}  # a second system, which puts the first one last
    plain = [entry for entry in cases if entry["scenario"] == "plain" and entry["method"] in efficacy]
    rows += [row(entry, "efficacy_median", value := efficacy[entry["method"]], value, value) for entry in plain]
    cases.append(case(NASTY, NASTY.lower()))
    rows.append(row(cases[-1], "q", 0.5, 0.47, 0.53, "paper", note=NASTY))
    for entry in cases:
        entry |= {"metrics": f"results/metrics/{entry['scenario']}/metrics.csv", "scores": ""}
    nodes = []
    for stage, models in (("train", 2), ("unlearn", 2), ("metrics", 0)):
        path = folder / stage / "x-0123456789" / "spec.json"
        write_spec(path, {"seconds": {"function": 61.0, "process": 5.0}, "models": models, "unlearn_seconds": 3.0,
                          "packages": {"numpy": NASTY}, "python": "3.11"})  # fmt: skip
        nodes.append({"stage": stage, "node": path.parent.name, "spec": str(path)})

    request = wish(title=NASTY, scenarios=["plain", NASTY], footer=["accuracy"])
    head = {"name": "headline", "title": "Study s", "table": None, "cases": cases, "caption": "One.\n\nTwo."}
    table = {"name": "t1", "table": request, "cases": cases[:7] + cases[-1:], "caption": ""}
    figure = {"name": "f1", "figure": {"kind": "quality", "title": NASTY, "attack": ""}, "caption": NASTY,
              "cases": cases[:7], "methods": [entry["method"] for entry in cases]}  # fmt: skip
    numbers = Numbers(rows, cases)
    evaluation = evaluate(rows, naming.quantities().values(), breaking_loss=0.1)
    judged = decisions_on(("plain", ""), *GOOD, rows_of("scrub", "distinguishable", 0.2, share=0.5))
    drawings = {"f1": quality.draw(numbers.narrowed(cases[:7]), figure), "meta": _meta.draw(evaluation),
                "verdicts": _verdicts.draw(judged)}  # fmt: skip
    sheets = {order["name"]: grid.sheets_of(numbers.narrowed(order["cases"]), order) for order in (head, table)}
    sheets |= {"meta": worth.sheets(evaluation)}
    sheets |= {name: [getattr(verdicts, name)(judged, "s")] for name in ("verdicts", "ranks", "resolution")}
    for name, drawing in drawings.items():
        style.save(drawing, **{kind: folder / f"{name}.{kind}" for kind in ("svg", "png")})
    for name, made in sheets.items():
        formats.write(made, **{kind: folder / f"{name}.{kind}" for kind in ("csv", "md", "tex")})
    files = {path.name: path for name in drawings | sheets for path in folder.glob(f"{name}.*")}

    extended = {"unit": "pairs", "from": [2, 4], "to": 8}
    compared = [write_decisions(folder / "judged", judged, ("plain", "")) | {"extended": extended}]
    for step, fisher in (
        ("8", rows_of("fisher", "broken", 0.0, share=0.9, gap=0.4)),
        ("inf", rows_of("fisher", "inconclusive", 0.03, p=0.2, share=0.7, note="4 times as many pairs would decide")),
    ):
        place = ("budget", f"epsilon={step}")
        compared.append(write_decisions(folder / f"judged-{step}", decisions_on(place, *GOOD[:2], fisher), place))
    scenario = {"scenario": "plain", "setting": "", "data": {"name": "digits"}, "methods": {"none": {"name": "none"}},
                "attacks": {}, "recipe": {"lr": 0.1, "dp": None}}  # fmt: skip
    counts = {"forgotten": 900, "forgotten_kept": 7, "forgotten_heldout": 0, "heldout": 900, "heldout_trained": 0}
    write_json(folder / "data.json", {"duplicates": {"groups": 4, "train_test_pairs": 0}})
    write_json(folder / "splits.json", {"copies": counts})
    copied = {"data": str(folder / "data.json"), "splits": [str(folder / "splits.json")]}
    order = {
        "study": NASTY, "verdicts": {"study": NASTY, "comparisons": compared}, "command": "snakemake --cores 1",
        "seed": 3, "bootstrap": 100, "cases": cases, "headline": head, "tables": [table], "figures": [figure],
        "scenarios": [scenario, {**scenario, "scenario": NASTY, "recipe": {"lr": 0.2}}],
        "captions": {path.stem: path.read_text() for path in parameters.CAPTIONS.glob("*.rst")},
        "cost": {"cases": [{**entry, "specs": [nodes[1]["spec"]]} for entry in cases]},
        "copies": [{"scenario": NASTY, "setting": "", **copied}],
    }  # fmt: skip
    specs, ledger = [node["spec"] for node in nodes], cost.rows(nodes)
    judgements, found = decisions.read(compared, ledger), exposed(folder / "records.csv")
    return page.render(numbers, judgements, ledger, found, specs, [*map(str, files.values())], order), files
