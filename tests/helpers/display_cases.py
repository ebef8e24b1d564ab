"""A study made by hand: two scenarios, one axis, a method that failed and one that changed nothing."""

import math
from importlib import import_module

from matplotlib.text import Text
from unlearning_audit.evaluation.rows import Failure, Record, Row
from unlearning_audit.report import style
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.tables import formats

NAN = math.nan
REASON = "results/unlearn/x/logits.npz: field 'logits' has 12 values that are NaN or infinite"


def case(scenario, method, axes=None, protocol="swap", **facts):
    axes = axes or {}
    return {
        "scenario": scenario,
        "setting": ";".join(f"{k}={v}" for k, v in axes.items()),
        "axes": axes,
        "protocol": protocol,
        "method": method,
        "plugin": "retrain" if method == "retrain_control" else method,
        "facts": {"dataset": "cifar10", "model": "resnet18", "alpha": 0.1, "epsilon": "inf"} | facts,
    }


def row(of, metric, value, low=NAN, high=NAN, attack="", n=320, note="", **place):
    numbers = Row(metric, value, low, high, n, note, attack, **place)
    return Record(of["scenario"], of["protocol"], of["method"], of["axes"], numbers)


def failed(of, kind, name, sentence):
    return Record(of["scenario"], of["protocol"], of["method"], of["axes"], Failure(kind, name, sentence))


def q(of, value, half=0.03, attack="adaptive", **place):
    return row(of, "q", value, value - half, min(value + half, 1.0), attack, **place)


def study():
    """(cases, rows): scenario plain, then scenario budget at epsilon 8 and inf."""
    cases, rows = [], []
    plain = {"none": 0.6, "retrain": 0.98, "finetune": 0.63, "scrub": 0.95, "ssd": 0.6, "retrain_control": 0.97}
    for name, value in plain.items():
        entry = case("plain", name)
        cases.append(entry)
        rows += [q(entry, value), q(entry, value - 0.02, attack="extended")]
        rows += [q(entry, value + d, pair=i) for i, d in enumerate((-0.01, 0.0, 0.01))]
        rows.append(row(entry, "accuracy", 0.875, 0.85, 0.9, role="test"))
    rows.append(row(cases[4], "unchanged", 1.0, n=2))
    cases.append(case("plain", "neggrad"))
    rows.append(failed(cases[-1], "diverged", "", REASON))
    for epsilon, shift in (("8", 0.3), ("inf", 0.0)):
        privacy = {"epsilon": float(epsilon), "delta": 1e-5} if epsilon == "8" else {"epsilon": "inf"}
        for name, value in (("none", 0.6), ("retrain", 0.99), ("fisher", 0.709)):
            entry = case("budget", name, {"epsilon": epsilon}, **privacy)
            cases.append(entry)
            rows += [q(entry, min(value + shift, 1.0)), row(entry, "accuracy", 0.5, 0.4, 0.6, role="test")]
    return cases, rows


def wish(**changes):
    """The fields of a table."""
    fields = {"title": "A table", "metric": "q", "scenarios": ["plain"], "columns": "scenario", "layout": "wide",
              "attack": "", "where": {}, "footer": [], "published": None}  # fmt: skip
    return fields | changes


def order(cases, scenarios, name="t", **changes):
    """What the table's script is given."""
    subset = [entry for entry in cases if entry["scenario"] in scenarios]
    return {"name": name, "table": wish(scenarios=scenarios, **changes), "cases": subset, "caption": ""}


def figure(kind, cases, rows, scenarios=None, **fields):
    """The drawing of one kind, of all scenarios or of some."""
    subset = [{"files": {}, **entry} for entry in cases if scenarios is None or entry["scenario"] in scenarios]
    request = {"name": kind, "figure": {"kind": kind, "title": kind, "axis": None, "attack": ""} | fields,
               "methods": list(dict.fromkeys(entry["method"] for entry in cases)), "cases": subset}  # fmt: skip
    return import_module(f"unlearning_audit.report.figures.{kind}").draw(Numbers(rows, subset), request)


def written(sheets, folder, **more):
    """The files of these tables, by their kinds."""
    files = {kind: folder / f"t.{kind}" for kind in ("csv", "md", "tex")}
    formats.write(sheets, **files, **more)
    return files


def words_of(drawing):
    """All lines of text in a drawing."""
    labels = [label for axis in drawing.axes for label in axis.get_yticklabels()]
    return [line for text in [*drawing.findobj(Text), *labels] for line in text.get_text().split("\n")]


def svg_of(drawing, folder, name="f"):
    """The text of a drawing's svg, which is written beside its png."""
    style.save(drawing, svg=folder / f"{name}.svg", png=folder / f"{name}.png")
    return (folder / f"{name}.svg").read_text()
