"""Predict what a study will detect before it is run, from comparisons on record, and what it will cost."""

import math
from pathlib import Path
from typing import Any

from unlearning_audit.comparisons import planning
from unlearning_audit.evaluation import verdicts as files
from unlearning_audit.report import decisions, lookup
from unlearning_audit.report.tables import verdicts
from unlearning_audit.report.tables.cost import duration
from unlearning_audit.report.tables.typeset import number
from unlearning_audit.workflow.forecast import pilots
from unlearning_audit.workflow.nodes import ROOT

HEADS = ("scenario", "metric", "units", "models", "half-width", "least distance", "margin", "time", "from")
#: What is predicted for a metric.
FORETOLD = ("unit", "units", "models", "half_width", "least_distance", "margin")
#: Basis of a comparison that has been run, and so has its own numbers.
BASIS_DONE = "done"


def records(
    order: list[dict[str, Any]], planned: dict[str, pilots.Size], costs: dict[tuple[str, str], float], root: str = ROOT
) -> list[dict[str, Any]]:
    """Predict, before a study runs, what each of its comparisons costs and which distances it can detect.

    A prediction scales the intervals of a pilot: the largest comparison on record in ``root`` with the same data,
    model, recipe and protocol. Returns one record for each comparison and deciding metric: scenario, setting, seconds,
    metric, the fields `FORETOLD`, and basis (which pilot). A comparison without a pilot has one record, without a
    metric. A comparison of imported models has none.

    ``order``: the study's comparisons, as `decisions.read` takes them; ``planned``: their sizes, as `pilots.planned`
    returns them; ``costs``: (stage, job) → seconds.
    """
    recorded = pilots.recorded(root)
    told: list[dict[str, Any]] = []
    for comparison in order:
        jobs = {tuple(node): None for nodes in comparison["made"].values() for node in nodes}
        place = {name: comparison[name] for name in ("scenario", "setting")}
        place["seconds"] = sum(map(costs.__getitem__, jobs)) if jobs else math.nan
        size = planned.get(Path(comparison["resolution"]).parent.name)
        if size is None:
            continue
        pilot = pilots.pilot(size, recorded)
        if pilot is None:
            told.append(place)
            continue
        folder = Path(root, "comparisons", pilot.node)
        deciding = {row["metric"] for row in files.read(folder / "distances.csv", files.DISTANCES) if row["deciding"]}
        basis = BASIS_DONE if pilot.node == size.node else f"{pilot.blocks} × {pilot.models} models"
        plans = files.read(folder / "resolution.csv", files.RESOLUTION)
        for metric in sorted(deciding):
            candidates = [row for row in plans if row["metric"] == metric]
            candidates = [row for row in candidates if row["method"] == verdicts.spokesman(candidates)]
            pairs, models = size.times(pilot, candidates[0]["unit"])
            foretold = planning.foretold(candidates, pairs=pairs, models=models)
            told.append({**place, "metric": metric, **{name: foretold[name] for name in FORETOLD}, "basis": basis})
    return told


def rows(told: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return the predictions as rows of a table for the terminal, its head first. ``told``: as `records` returns
    them."""
    return [HEADS, *(
        (lookup.label(lookup.place(record)), decisions.label(record["metric"]), f"{record['units']:g} {record['unit']}",
         f"{record['models']:g}", number(record["half_width"], 3), number(record["least_distance"], 3),
         number(record["margin"], decisions.places(record["margin"])), duration(record["seconds"]), record["basis"])
        for record in told
    )]  # fmt: skip
