"""The front of a study's methods: distance from retraining against seconds, at the settings that are audited."""

import math

from unlearning_audit.display import lookup, naming, style

#: A method loses more worth than this many margins: too much.
KEPT = 1.0


def undominated(rows: list[dict]) -> list[dict]:
    """Those of a place than which no other is at once nearer, as fast and no worse in what it keeps, by the numbers as
    they are: the corners of the front, from the fastest to the nearest."""
    usable = sorted(
        (row for row in rows if row["worth"] <= KEPT and not math.isnan(row["tuned"])),
        key=lambda row: (row["method_seconds"], row["tuned"]),
    )
    corners, nearest = [], math.inf
    for row in usable:
        if row["tuned"] < nearest:
            corners.append(row)
            nearest = row["tuned"]
    return corners


def draw(rows: list[dict]):
    """A panel for each scenario: every tuned method with its interval on the audited pairs, hollow where it loses more
    worth than the margin, a line along the corners of the front, whose methods are named, and a cross where a method
    stands at its published setting. ``rows`` as `unlearning_audit.display.tables.tuning.lines` gives them."""
    places = list(dict.fromkeys((row["scenario"], row["setting"]) for row in rows))
    figure, axes = style.panels(max(len(places), 1), height=2.4, columns=2, width=style.WHOLE, share_y=False)
    for axis, where in zip(axes, places, strict=False):
        here = [row for row in rows if (row["scenario"], row["setting"]) == where]
        corners = undominated(here)
        for row in here:
            if math.isnan(row["tuned"]):
                continue
            seconds = max(row["method_seconds"], 1e-3)
            color = style.PALETTE[1] if row in corners else style.PALETTE[0]
            axis.plot([seconds] * 2, [row["tuned_low"], row["tuned_high"]], color=color, linewidth=0.6, alpha=0.5)
            kept = "full" if row["worth"] <= KEPT else "none"
            axis.plot(seconds, row["tuned"], "o", markersize=3, color=color, fillstyle=kept)
            axis.plot(seconds, row["published"], "x", markersize=2.5, color=style.MUTED, markeredgewidth=0.6)
        steps = [(max(row["method_seconds"], 1e-3), row["tuned"]) for row in corners]
        axis.plot(*zip(*steps, strict=True), color=style.PALETTE[1], linewidth=0.8) if steps else None
        for row, (seconds, distance) in zip(corners, steps, strict=True):
            axis.annotate(naming.method(row["method"]), (seconds, distance), xytext=(3, -7), fontsize=6,
                          textcoords="offset points", color=style.INK)  # fmt: skip
        axis.axhline(1, color=style.MUTED, linewidth=0.6, linestyle=":")
        axis.set_xscale("log")
        axis.set_ylim(bottom=0)
        axis.set_title(lookup.label(where), loc="left")
    figure.supxlabel("seconds of the method on a pair", fontsize=7)
    figure.supylabel("distance, margins", fontsize=7)
    return figure
