"""Verdicts on a scenario made by hand, as comparisons write them."""

import math

from unlearning_audit.evaluation import verdicts as files
from unlearning_audit.report.decisions import Decisions, Judged
from unlearning_audit.store import tables

NAN = math.nan


def rows(method, verdict, distance, half=0.02, *, p=1e-8, share=NAN, against="better", gap=0.0, note="", **distances):
    """(line of verdicts.csv, rows of distances.csv) of one method, by the advantage and two accuracies."""
    numbers = {"distance": distance, "ci_low": distance - half, "ci_high": distance + half, "against_none": against,
               "share_closed": share, "share_low": share - 0.1, "share_high": share + 0.1, "p_holm": p}  # fmt: skip
    line = {"method": method, "verdict": verdict, "found_by": "advantage kde/trained" if p <= 0.05 else "",
            "margin": 0.05, "retrain_spread": NAN, "note": note, **numbers}  # fmt: skip
    blank = {name: "" if name in ("attack", "against_none", "note") else NAN for name in files.DISTANCES}
    row = {**blank, "method": method, "metric": "advantage", "attack": "kde/trained", "deciding": 1, "from": "theory",
           "margin_far": -0.05, "margin_near": 0.05, "scale": "difference", "p": p, **numbers, **distances}  # fmt: skip
    if verdict == "equivalent":  # rests on its inner interval, and not on one for all numbers at once
        row |= {"inner_low": row["ci_low"], "inner_high": row["ci_high"], "ci_low": -0.5, "ci_high": 0.5}
    worth = [
        {**blank, "method": method, "metric": f"accuracy_{role}", "deciding": 0, "from": "retrain", "distance": gap,
         "ci_low": gap - 0.02, "ci_high": gap + 0.02, "broken": int(gap > 0.12), "scale": "difference"}
        for role in ("retain", "test")
    ]  # fmt: skip
    return line, [row, *worth]


def decisions_on(where, *methods, needs=(), spent=0.0):
    """`Decisions` on one place."""
    lines = {line["method"]: line for line, _ in methods}
    distances = [row for _, group in methods for row in group]
    costs = dict.fromkeys(lines, spent) if spent else {}
    return Decisions({where: Judged(where, lines, distances, resolution=list(needs), spent=costs)})


def need(method, target, times, **fields):
    """A row of resolution.csv."""
    row = dict.fromkeys(files.RESOLUTION, 0.0) | {
        "metric": "advantage", "attack": "kde/trained", "unit": "pairs", "outcome": "", "chance": "itself",
        "half_width": 0.02, "method": method, "what": target, "times": times, "units": 4 * times, "margin": 0.05,
    }  # fmt: skip
    return row | fields


def write_decisions(folder, decisions, where):
    """The entry of a study's comparisons for what `decisions_on` gives, in files."""
    judged = decisions.at(where)
    content = {
        "verdicts": (list(judged.verdicts.values()), files.VERDICTS), "distances": (judged.distances, files.DISTANCES),
        "ranks": (judged.ranks, files.RANKS), "resolution": (judged.resolution, files.RESOLUTION),
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    for name, (lines, columns) in content.items():
        tables.write_rows(folder / f"{name}.csv", lines, columns)
    paths = {name: str(folder / f"{name}.csv") for name in content}
    methods = list(judged.verdicts)
    return {"scenario": where[0], "setting": where[1], "methods": methods, "made": {m: [] for m in methods}, **paths}


#: References as they must be.
GOOD = (
    rows("none", "distinguishable", 0.4, against=""),
    rows("retrain", "equivalent", 0.0, p=1.0, share=1.0),
    rows("retrain_control", "equivalent", 0.01, p=1.0, share=1.0),
)
