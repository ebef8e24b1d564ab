"""Predict what a study costs and what it will be able to detect, without measuring anything."""

import math
from pathlib import Path
from typing import Any

from unlearning_audit.comparisons import planning
from unlearning_audit.evaluation import verdicts as files
from unlearning_audit.report import decisions, lookup, words
from unlearning_audit.report.tables import formats, number, verdicts
from unlearning_audit.report.tables.cost import duration
from unlearning_audit.workflow import announcement, compared
from unlearning_audit.workflow import costs as costs_of
from unlearning_audit.workflow.forecast import pilots
from unlearning_audit.workflow.nodes import ROOT, Plan

#: The heads of the table for the terminal.
HEADS = ("scenario", "metric", "units", "models", "half-width", "least distance", "margin", "time", "from")
#: What is predicted for a metric.
FORETOLD = ("unit", "units", "models", "half_width", "least_distance", "margin")


def predict(plan: Plan) -> dict[str, Any]:
    """Predict what a study will cost and what it will detect, before it is run; return JSON values.

    The time of a missing job is predicted by the finished jobs of its stage, or by the shipped rate of the stage where
    there are none. ``seconds``: the sum of these times, as if one job ran after the other; None unless the finished
    jobs suffice (`costs.finished_suffice`) or all models are small. ``rates``: "finished jobs" if these suffice, else
    "small models". ``missing``: how many jobs are missing. ``telling``: what each comparison will detect (`foretold`),
    [] for a study without comparisons; its costs are NaN unless the finished jobs suffice.
    """
    specs = plan.specs()
    done = costs_of.measured(specs)
    costs = costs_of.expected(specs, done)
    enough = costs_of.finished_suffice(specs, done)
    known = enough or announcement.small(plan)
    missing = sum(seconds for path, seconds in costs.items() if path not in done)
    of_jobs = {(job.stage, job.name): costs[job.outputs["spec"]] if enough else math.nan for job in plan.all()}
    return {
        "seconds": missing if known else None, "rates": "finished jobs" if enough else "small models",
        "missing": len(costs) - len(done), "telling": foretold(plan, of_jobs) if plan.comparisons else [],
    }  # fmt: skip


def foretold(plan: Plan, costs: dict[tuple[str, str], float]) -> list[dict[str, Any]]:
    """Predict, before a study runs, what each of its comparisons costs and which distances it can detect.

    A prediction scales the intervals of a pilot: the largest comparison on record with the same data, model, recipe and
    protocol. Returns one record for each comparison and each metric on which verdicts of the pilot rest: scenario,
    setting, seconds, metric, the fields `FORETOLD`, and basis (the size of the pilot, or "done" for a comparison that
    has been run, and so has its own numbers). A comparison without a pilot has one record, of scenario, setting and
    seconds. A comparison of imported models has none.

    Parameters
    ----------
    costs
        (stage, job) → seconds, NaN if unknown.
    """
    planned, recorded = pilots.planned(plan), pilots.recorded(ROOT)
    predictions: list[dict[str, Any]] = []
    for comparison in compared.comparisons(plan):
        # The folder of a comparison's files has the name of its job. ``size`` says how many models are planned.
        size = planned.get(Path(comparison["resolution"]).parent.name)
        if size is None:  # of imported models
            continue
        # (stage, job) of everything that made the compared models, each once.
        jobs = dict.fromkeys(tuple(node) for nodes in comparison["made"].values() for node in nodes)
        seconds = sum(map(costs.__getitem__, jobs)) if jobs else math.nan
        common = {"scenario": comparison["scenario"], "setting": comparison["setting"], "seconds": seconds}
        pilot = pilots.pilot(size, recorded)
        if pilot is None:
            predictions.append(common)
            continue
        folder = Path(ROOT, "comparisons", pilot.node)
        deciding = {row["metric"] for row in files.read(folder / "distances.csv", files.DISTANCES) if row["deciding"]}
        basis = "done" if pilot.node == size.node else f"{pilot.blocks} × {pilot.models} models"
        resolution = files.read(folder / "resolution.csv", files.RESOLUTION)
        for metric in sorted(deciding):
            of_metric = [row for row in resolution if row["metric"] == metric]
            method = verdicts.representative(of_metric)  # the one whose errors stand for those of all methods
            rows = [row for row in of_metric if row["method"] == method]
            # How many times as many as the pilot has. All rows have one unit.
            pairs, models = size.times(pilot, rows[0]["unit"])
            scaled = planning.forecast(rows, pairs=pairs, models=models)
            fields = {name: scaled[name] for name in FORETOLD}
            predictions.append({**common, "metric": metric, **fields, "basis": basis})
    return predictions


def text(outlook: dict[str, Any]) -> str:
    """Return the prediction of a study (``outlook``, from `predict`) as text for a terminal: how long the missing jobs
    take, a table of the distances that can be detected, and a sentence if these are unknown for some comparison."""
    lines = []
    if outlook["seconds"] is None:
        lines.append("The time is known once models are trained: run the study with few pairs, then forecast again.")
    elif outlook["missing"]:
        rates = f"by the rates of {outlook['rates']}"
        lines.append(f"The missing jobs take about {duration(outlook['seconds'])}, one after the other, {rates}.")
    else:
        lines.append("Nothing is missing: all results that the study needs are there.")
    known = [record for record in outlook["telling"] if "metric" in record]
    if known:
        lines += ["", f"{words.TELLING_TITLE}. {words.TELLING}", "", *formats.aligned(_rows(known)), ""]
    if len(known) < len(outlook["telling"]):
        lines.append("What the study can distinguish is predicted after a first run with few pairs.")
    return "\n".join(lines)


def _rows(predictions: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return a table for the terminal as rows: the head, then a row for each of ``predictions``, records of `foretold`
    that each predict one metric of one comparison."""
    return [HEADS, *(
        (lookup.label_of(row), decisions.label(row["metric"]), f"{row['units']:g} {row['unit']}",
         f"{row['models']:g}", *(number(row[name], places=3) for name in ("half_width", "least_distance")),
         number(row["margin"], decisions.decimals_of_margin(row["margin"])), duration(row["seconds"]), row["basis"])
        for row in predictions
    )]  # fmt: skip
