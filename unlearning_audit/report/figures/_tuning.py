"""Draw, for every tuned method, the distance from retraining against seconds, of all settings that were tried."""

import math
from itertools import product
from typing import Any

from unlearning_audit.report import lookup, naming, style


def draw(campaigns: list[dict[str, Any]]) -> "style.Figure":
    """Draw a panel for each tuned method, with its time and distance from retraining: a point with an interval for each
    setting that was tried.

    A point is hollow if the setting loses more utility than the margin. The chosen setting has a colour of its own, and
    a line marks the distance of the study's own setting. ``campaigns``: for each tuned method its scenario, setting,
    method and ``trials``, the rows of trials.csv; the last row of each tried setting is drawn.
    """
    figure, axes = style.panels(max(len(campaigns), 1), height=1.5, columns=4, width=style.WHOLE)
    for axis, campaign in zip(axes, campaigns, strict=False):
        last = {row["trial"]: row for row in campaign["trials"]}
        for is_choice, usable in product((False, True), repeat=2):
            mark(axis, [row for row in last.values() if is_like(row, is_choice, usable)], is_choice, usable)
        axis.axhline(1, color=style.MUTED, linewidth=0.6, linestyle=":")
        axis.axhline(last[0]["distance"], color=style.MUTED, linewidth=0.6)
        style.logarithmic(axis)
        axis.set_ylim(bottom=0)
        several = len({(c["scenario"], c["setting"]) for c in campaigns}) > 1
        where = f" · {lookup.label((campaign['scenario'], campaign['setting']))}" if several else ""
        axis.set_title(naming.method(campaign["method"]) + where)
    chosen = [(row["distance"], c["trials"][0]["distance"]) for c in campaigns for row in c["trials"] if row["chosen"]]
    nearer = sum(tuned < own for tuned, own in chosen)
    figure.set_label(f"On the pairs of tuning, {nearer} of {len(chosen)} methods came nearer to retraining")
    figure.supxlabel("seconds of the method on a pair", fontsize=7)
    figure.supylabel("distance, margins", fontsize=7)
    return figure


def is_like(row: dict[str, Any], is_choice: bool, usable: bool) -> bool:
    """Return whether a setting has a distance, is the chosen one (``is_choice``), and keeps its utility
    (``usable``)."""
    return not math.isnan(row["distance"]) and bool(row["chosen"]) == is_choice and (row["lost"] <= 1) == usable


def mark(axis: "style.Axes", rows: list[dict[str, Any]], is_choice: bool, usable: bool) -> None:
    """Draw the points and intervals of trials, ``rows`` of trials.csv, in one call, because there may be thousands.

    ``is_choice``: draw them in the colour of the chosen setting; ``usable``: fill the points, because they lose little
    utility.
    """
    seconds = [max(row["seconds"] / row["pairs"], 1e-3) for row in rows]
    color = style.PALETTE[1] if is_choice else style.PALETTE[0]
    axis.vlines(seconds, [row["ci_low"] for row in rows], [row["ci_high"] for row in rows], color=color, linewidth=0.6,
                alpha=0.6)  # fmt: skip
    axis.plot(seconds, [row["distance"] for row in rows], "o", markersize=3, color=color,
              fillstyle="full" if usable else "none")  # fmt: skip
