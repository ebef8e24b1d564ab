"""Draw the trade-off between distance from retraining and seconds, for a study's methods at their audited settings."""

import math
from typing import Any

from unlearning_audit.report import lookup, naming, style, words

#: The largest loss of utility, in margins, of a method on the front.
TOLERABLE = 1.0


def undominated(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the methods on the Pareto front of one scenario, from the fastest to the nearest to retraining.

    Methods that lose more utility than `TOLERABLE` are left out. Of the others, each method on the front is nearer than
    every faster one. Intervals are not considered.
    """
    usable = sorted(
        (row for row in rows if row["lost"] <= TOLERABLE and not math.isnan(row["tuned"])),
        key=lambda row: (row["method_seconds"], row["tuned"]),
    )
    corners, nearest = [], math.inf
    for row in usable:
        if row["tuned"] < nearest:
            corners.append(row)
            nearest = row["tuned"]
    return corners


def draw(rows: list[dict[str, Any]]) -> "style.Figure":
    """Draw a panel for each scenario: a point for each tuned method, with its interval on the audited pairs.

    A point is hollow if the method loses more utility than the margin. A line joins the methods on the front, which are
    named. A cross marks each method at its published setting. ``rows``: as
    `unlearning_audit.report.tables.tuning.lines` returns them.
    """
    places = list(dict.fromkeys((row["scenario"], row["setting"]) for row in rows))
    figure, axes = style.panels(max(len(places), 1), height=2.4, columns=2, width=style.WHOLE, share_y=False)
    fronts: list[dict[str, Any]] = []
    for axis, place in zip(axes, places, strict=False):
        methods = [row for row in rows if (row["scenario"], row["setting"]) == place]
        corners = undominated(methods)
        for row in methods:
            if not math.isnan(row["tuned"]):
                mark(axis, row, style.PALETTE[1] if row in corners else style.PALETTE[0])
        steps = [seconds(row["method_seconds"]) for row in corners]
        axis.plot(steps, [row["tuned"] for row in corners], color=style.PALETTE[1], linewidth=0.8) if steps else None
        axis.axhline(1, color=style.MUTED, linewidth=0.6, linestyle=":")
        style.logarithmic(axis)
        axis.set_ylim(bottom=0)
        axis.set_title(lookup.label(place), loc="left")
        for row in corners:
            axis.annotate(naming.method(row["method"]), (seconds(row["method_seconds"]), row["tuned"]), (3, 3),
                          textcoords="offset points", fontsize=6, color=style.INK)  # fmt: skip
        fronts += corners
    figure.supxlabel("seconds of the method on a pair", fontsize=7)
    figure.supylabel("distance, margins", fontsize=7)
    names = dict.fromkeys(naming.method(row["method"]) for row in fronts)
    if 0 < len(names) < 5:
        figure.set_label(f"No other method is nearer and as fast as {words.joined(list(names), 'or')}")
    return figure


def seconds(value: float) -> float:
    """Return ``value``, at least 0.001, so that it can be drawn on a logarithmic axis."""
    return max(value, 1e-3)


def mark(axis: "style.Axes", row: dict[str, Any], color: str) -> None:
    """Draw a tuned method as a point with its interval, hollow if it loses too much utility, and its published setting
    as a cross. ``row``: the method's row in the table of tuning."""
    at = seconds(row["method_seconds"])
    axis.plot([at] * 2, [row["tuned_low"], row["tuned_high"]], color=color, linewidth=0.6, alpha=0.5)
    fill = "full" if row["lost"] <= TOLERABLE else "none"
    axis.plot(at, row["tuned"], "o", markersize=3, color=color, fillstyle=fill)
    axis.plot(
        seconds(row["published_seconds"]), row["published"], "x", markersize=2.5, color=style.MUTED, markeredgewidth=0.6
    )
