"""Draw the trade-off between distance from retraining and seconds, for a study's methods at their audited settings."""

import math
from typing import Any

from unlearning_audit.report import lookup, naming, style, words

#: The largest loss of utility, in margins, of a method on the front.
TOLERABLE = 1.0

#: In points: the height of a line of text, and the space beside a marker.
LINE, SPACE = 6.5, 3.0


def undominated(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the methods on the Pareto front of one scenario, from the fastest to the nearest to retraining.

    Methods that lose more utility than `TOLERABLE` are left out. Of the others, a method is on the front if it is
    nearer to retraining than every faster one. Intervals are not considered.

    Parameters
    ----------
    rows
        A row for each method. "tuned" is the distance from retraining and "lost" the loss of utility, both in margins;
        "method_seconds" is the time on one pair.
    """
    usable = [row for row in rows if row["lost"] <= TOLERABLE and not math.isnan(row["tuned"])]
    front, nearest = [], math.inf
    for row in sorted(usable, key=lambda row: (row["method_seconds"], row["tuned"])):
        if row["tuned"] < nearest:
            front.append(row)
            nearest = row["tuned"]
    return front


def draw(rows: list[dict[str, Any]]) -> "style.Figure":
    """Draw a panel for each scenario: a point for each tuned method, with its interval on the audited pairs.

    The horizontal direction shows seconds, the vertical one the distance from retraining in margins. A point is hollow
    if the method loses more utility than the margin. A line joins the methods on the Pareto front (`undominated`: of
    the methods that keep utility, none is nearer to retraining and as fast), which are named. A cross marks each method
    at its published setting.

    Parameters
    ----------
    rows
        The table of tuning, as `unlearning_audit.report.tables.tuning.lines` returns it.
    """
    places = list(dict.fromkeys((row["scenario"], row["setting"]) for row in rows))
    figure, axes = style.panels(max(len(places), 1), height=2.4, columns=2, width=style.WHOLE, share_y=False)
    fronts = []
    for axis, place in zip(axes, places, strict=False):  # without scenarios, one axis stays empty
        methods = [row for row in rows if (row["scenario"], row["setting"]) == place]
        front = undominated(methods)
        for row in methods:
            if not math.isnan(row["tuned"]):
                mark(axis, row, style.PALETTE[1] if row in front else style.PALETTE[0])
        times = [seconds(row["method_seconds"]) for row in front]
        if times:
            axis.plot(times, [row["tuned"] for row in front], color=style.PALETTE[1], linewidth=0.8)
        axis.axhline(1, color=style.MUTED, linewidth=0.6, linestyle=":")  # a distance of one margin
        style.logarithmic(axis)
        axis.set_ylim(bottom=0)
        axis.set_title(lookup.label(place), loc="left")
        fronts.append((axis, front))
    figure.supxlabel("seconds of the method on a pair", fontsize=7)
    figure.supylabel("distance, margins", fontsize=7)
    names = [[naming.method(row["method"]) for row in front] for _, front in fronts if front]
    if len(names) == 1 and len(names[0]) < 5:  # of several scenarios, or with more names, the sentence is too long
        figure.set_label(f"No other method that keeps utility is nearer and as fast as {words.joined(names[0], 'or')}")
    style.arrange(figure)  # the layout is final: data can be converted to positions on the page
    for axis, front in fronts:
        write_names(axis, front)
    return figure


def seconds(value: float) -> float:
    """Return ``value``, at least 0.001, so that it can be drawn on a logarithmic axis."""
    return max(value, 1e-3)


def mark(axis: "style.Axes", row: dict[str, Any], color: str) -> None:
    """Draw a tuned method as a point with its interval, hollow if it loses too much utility, and its published setting
    as a cross. ``row``: the method's row in the table of tuning."""
    x = seconds(row["method_seconds"])
    axis.plot([x, x], [row["tuned_low"], row["tuned_high"]], color=color, linewidth=0.6, alpha=0.5)
    fill = "full" if row["lost"] <= TOLERABLE else "none"
    axis.plot(x, row["tuned"], "o", markersize=3, color=color, fillstyle=fill)
    x = seconds(row["published_seconds"])
    axis.plot(x, row["published"], "x", markersize=2.5, color=style.MUTED, markeredgewidth=0.6)


def write_names(axis: "style.Axes", front: list[dict[str, Any]]) -> None:
    """Write the names of the methods on a Pareto front below and left of their points, where no other method of
    the front lies.

    The name stands at the right of a point near the left edge, and above a point near the bottom. A name below its
    point is moved down where it would overlap the previous name with the same alignment. ``front``: rows of the table
    of tuning, from the fastest method.
    """
    points_of = 72 / axis.figure.dpi  # pixels to points
    left, bottom, width, _ = (value * points_of for value in axis.get_window_extent().bounds)
    last_height: dict[str, float] = {}  # alignment of a name → height of the last name with this alignment
    for row in front:
        point = seconds(row["method_seconds"]), row["tuned"]
        x, y = (value * points_of for value in axis.transData.transform(point))
        align, shift = ("left", SPACE) if x - left < width / 4 else ("right", -SPACE)
        height = y + SPACE
        if y - bottom > 2 * LINE:
            height = max(min(y - SPACE - LINE, last_height.get(align, math.inf) - LINE), bottom + 1)
        last_height[align] = height
        axis.annotate(naming.method(row["method"]), point, xytext=(shift, height - y),
                      textcoords="offset points", ha=align, va="bottom", fontsize=6, color=style.INK)  # fmt: skip
