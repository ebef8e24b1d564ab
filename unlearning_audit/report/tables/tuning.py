"""Make the table of tuning: each tuned method beside its published setting, on new pairs."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unlearning_audit.report.tables import Cell, Entry, Head, Line, Sheet, interval, lookup, naming, number, words
from unlearning_audit.store import cells

_TEXT = ("study", "scenario", "setting", "method", "changed", "dominated_by")
#: What `distances` returns of a method without any.
UNKNOWN = dict.fromkeys(("distance", "low", "high", "lost", "lost_low", "lost_high"), math.nan)
HEADS = ("setting", "tried", "tuned", "published", "closer by", "loses", "flat", "trials, s", "dominated by")


def distances(rows: list[dict[str, Any]], margins: dict[str, float]) -> dict[str, dict[str, Any]]:
    """Return method → its largest loss of utility (``lost``, with its interval ``lost_low`` to ``lost_high``), and its
    largest distance from retraining by a deciding metric of ``margins`` (``distance``, with ``low`` and ``high``).

    Both are in margins: 1 is as large as the margin of equivalence. A distance is without sign. A method without a
    deciding row on a metric of ``margins`` has no ``distance``. ``lost`` and ``lost_low`` are 0 for a method that loses
    no utility; ``lost_high`` is the largest upper limit by any metric of utility, at least 0.

    Parameters
    ----------
    rows
        The rows of distances.csv on the audited pairs; rows that do not decide are on utility.
    margins
        Metric → the study's margin, by which numbers are divided even if a row has a smaller margin because doing
        nothing leaves a small distance. Numbers by any other metric are divided by the row's own margin.
    """
    methods: dict[str, dict[str, Any]] = {}
    for row in rows:
        largest = methods.setdefault(row["method"], {"lost": 0.0, "lost_low": 0.0, "lost_high": 0.0})
        own_margin = row["margin_near"] if row["distance"] > 0 else -row["margin_far"]
        margin = margins.get(row["metric"], own_margin)
        value, low, high = (row[name] / margin for name in ("distance", "ci_low", "ci_high"))
        if not row["deciding"]:
            largest["lost_high"] = max(largest["lost_high"], high)
            if value > largest["lost"]:
                largest.update({"lost": value, "lost_low": low})
        elif row["metric"] in margins and abs(value) > largest.get("distance", -1.0):
            near, far = (low, high) if value > 0 else (-high, -low)  # limits of the distance without sign
            largest.update({"distance": abs(value), "low": max(near, 0.0), "high": far})
    return methods


def lines(campaigns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row of numbers for each tuned method of each scenario.

    "tuned" and "published": the distances from retraining, on the audited pairs, of the method at its tuned setting and
    of its copy at the published setting; "closer": the published minus the tuned distance; "tried": the distance by the
    trials that chose the setting; "regret": the tuned minus the tried distance.

    Parameters
    ----------
    campaigns
        For each tuned method: scenario, setting, method, ``chosen`` (content of chosen.json), ``trials`` (rows of
        trials.csv), ``seconds`` of the job, and ``distances``, method → its numbers, from the function `distances`.
    """
    rows = []
    for campaign in campaigns:
        method, options = campaign["method"], campaign["chosen"]["options"]
        # What chosen.json has as null is unknown.
        chosen = {name: math.nan if value is None else value for name, value in campaign["chosen"].items()}
        tuned = UNKNOWN | campaign["distances"].get(method, {})
        published = UNKNOWN | campaign["distances"].get(f"{method}_published", {})
        closer = published["distance"] - tuned["distance"]
        # Trial 0 is the study's own setting. If it was chosen, both distances are those of one setting.
        own_options = json.loads(next(row["options"] for row in campaign["trials"] if row["trial"] == 0))
        changed = {name: value for name, value in options.items() if own_options.get(name) != value}
        # The half-width of the difference, as if both distances were independent.
        half_width = math.hypot(*((each["high"] - each["low"]) / 2 for each in (tuned, published))) if changed else 0.0
        rows.append({
            "scenario": campaign["scenario"], "setting": campaign["setting"], "method": method,
            "changed": json.dumps(changed, sort_keys=True), "trials": chosen["trials"], "tried": chosen["distance"],
            "tried_error": chosen["error"], "tuned": tuned["distance"], "tuned_low": tuned["low"],
            "tuned_high": tuned["high"], "lost": tuned["lost"], "lost_low": tuned["lost_low"],
            "lost_high": tuned["lost_high"], "published_lost": published["lost"], "published": published["distance"],
            "published_low": published["low"], "published_high": published["high"], "closer": closer,
            "closer_low": closer - half_width, "closer_high": closer + half_width,
            "regret": tuned["distance"] - chosen["distance"], "flatness": chosen["flatness"],
            "seconds": campaign["seconds"],
            "method_seconds": _seconds(row for row in campaign["trials"] if row["chosen"]),
            "published_seconds": _seconds(row for row in campaign["trials"] if row["trial"] == 0),
        })  # fmt: skip
    for row in rows:
        row["dominated_by"] = " ".join(rival["method"] for rival in rows if dominates(rival, row))
    return rows


def read(path: str | Path) -> list[dict[str, Any]]:
    """Return the rows of ``tuning.csv``, one for each tuned method of each scenario. Raises ArtifactError for a damaged
    file."""
    return cells.table(path, text=_TEXT)


def dominates(rival: dict[str, Any], row: dict[str, Any]) -> bool:
    """Return whether a ``rival`` dominates another method (``row``) of the same scenario and setting.

    The rival must be significantly nearer to retraining, not slower, and not inferior in utility: it loses less than
    one margin more of utility than the other method, by the upper limit of this difference. The limit combines those of
    both methods as if they were independent (Zou & Donner 2008).
    """
    more_lost = rival["lost"] - row["lost"]
    limit = more_lost + math.hypot(rival["lost_high"] - rival["lost"], row["lost"] - row["lost_low"])
    same_place = (rival["scenario"], rival["setting"]) == (row["scenario"], row["setting"])
    nearer, not_slower = rival["tuned_high"] < row["tuned_low"], rival["method_seconds"] <= row["method_seconds"]
    return bool(same_place and nearer and not_slower and limit < 1)


def sheet(rows: list[dict[str, Any]], study: str) -> Sheet:
    """Return the table of tuned methods: the changed options, distances at the tuned and the published setting, loss of
    utility, and which methods dominate a method: are nearer to retraining, not slower and not inferior in utility.

    The csv has these numbers and further ones.

    Parameters
    ----------
    rows
        The rows that `lines` returns, one for each line of the table.
    """
    entries = []
    for row in rows:
        changed = ", ".join(f"{name} {value}" for name, value in json.loads(row["changed"]).items())
        texts = (
            changed or "as published", _number(row["tried"]), _span(row, "tuned"), _span(row, "published"),
            _span(row, "closer") if changed else "",
            ", ".join(filter(None, map(_number, (row["lost"], row["published_lost"])))),
            _number(row["flatness"]), _number(row["seconds"], places=0),
            ", ".join(map(naming.method, row["dominated_by"].split())),
        )  # fmt: skip
        where = row["scenario"], row["setting"]
        entries.append(Line(naming.method(row["method"]), [*map(Entry, texts)], section=lookup.label(where)))
    records = [{"study": study, **row} for row in rows]
    return Sheet("tuning", "Tuned and published", words.TUNING, "method", [*map(Head, HEADS)], entries, records)


def _span(row: dict[str, Any], name: str) -> str:
    """Return the number of a column and its interval, from the columns with _low and _high, as text; "" for NaN."""
    cell = Cell(row[name], row[f"{name}_low"], row[f"{name}_high"])
    return "" if cell.empty else interval(cell, places=2)


def _number(value: float, places: int = 2) -> str:
    """Return a number as text; "" for NaN."""
    return "" if math.isnan(value) else number(value, places)


def _seconds(trials: Iterable[dict[str, Any]]) -> float:
    """Return the seconds of a setting for one pair, the largest of its ``trials``; NaN if it was not tried."""
    return max((row["seconds"] / row["pairs"] for row in trials), default=math.nan)
