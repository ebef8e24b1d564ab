"""What more computing would buy: the half-width of a distance from retraining against the hours that it takes."""

import math

from unlearning_audit.display import decisions, lookup, style
from unlearning_audit.display.decisions import Decisions
from unlearning_audit.display.tables.verdicts import spokesman


def draw(judgements: Decisions):
    """A line for each scenario (at its first setting) and deciding metric: this study, then 2, 4, 8 and 16 times as
    many pairs; half-widths as shares of the margin, so that below 1 what is as retrained can be shown to be."""
    figure, (axis,) = style.panels(1, height=3.2, width=style.WHOLE)
    labels: set[str] = set()
    ends: list[tuple[float, float, str]] = []
    for where in judgements.resolution:
        if where[0] in labels:
            continue
        labels.add(where[0])
        deciding = {row["metric"] for row in judgements.distances[where] if row["deciding"]}
        spent = sum(seconds for (place, _), seconds in judgements.spent.items() if place == where) / 3600
        for metric in sorted(deciding):
            rows = [row for row in judgements.resolution[where] if row["metric"] == metric]
            plans = [row for row in rows if row["method"] == spokesman(rows) and row["what"] in ("today", "pairs")]
            plans = [row for row in plans if row["half_width"] > 0]  # models that do not differ show no width
            if not spent or not plans:
                continue
            hours = [spent * row["times"] for row in plans]
            widths = [row["half_width"] / row["margin"] for row in plans]
            colour = style.PALETTE[len(ends) % len(style.PALETTE)]
            axis.plot(hours, widths, color=colour, lw=1.2, zorder=2)
            axis.plot(hours[0], widths[0], "o", color=colour, ms=4.5, zorder=3)
            ends.append((hours[-1], widths[-1], f"{lookup.label((where[0], ''))}: {decisions.label(metric)}"))
    axis.set_axisbelow(True)
    axis.grid()
    if not ends:
        axis.set_axis_off()
        axis.text(0, 0.5, "Nothing is known of what larger studies would tell or take.", va="center", color=style.MUTED)
        return figure
    axis.set(xscale="log", yscale="log", xlabel="hours of computing for the scenario", ylabel="half-width / margin")
    axis.axhline(1, color=style.INK, lw=0.7, ls=(0, (4, 2)), zorder=0.5)
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter("")
    low, high = (math.log10(end) for end in axis.get_ylim())
    heights = style.spread([math.log10(y) for _, y, _ in ends], 0.05 * (high - low), low, high)
    right = max(x for x, _, _ in ends)
    for i, ((x, y, text), height) in enumerate(zip(ends, heights, strict=True)):
        colour = style.PALETTE[i % len(style.PALETTE)]
        axis.plot([x, 1.3 * right], [y, 10**height], color=colour, lw=0.5, alpha=0.5)
        axis.text(1.4 * right, 10**height, text, va="center", size=6, color=colour)
    axis.set_xlim(right=right * 1.5)
    return figure
