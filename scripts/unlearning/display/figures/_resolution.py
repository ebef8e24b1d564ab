"""What more computing would buy: the half-width of a distance from retraining against the hours that it takes."""

from unlearning.display import decisions, lookup, style
from unlearning.display.decisions import Decisions
from unlearning.display.tables.verdicts import spokesman


def draw(found: Decisions):
    """A line for each scenario (at its first setting) and deciding metric: this study, then 2, 4, 8 and 16 times as
    many pairs; half-widths as shares of the margin, so that below 1 what is as retrained can be shown to be."""
    figure, (axis,) = style.panels(1, height=3.0, width=style.WHOLE * 0.62)
    seen: set[str] = set()
    ends: list[tuple[float, float, str]] = []
    for where in found.resolution:
        if where[0] in seen:
            continue
        seen.add(where[0])
        deciding = {row["metric"] for row in found.distances[where] if row["deciding"]}
        spent = sum(seconds for (place, _), seconds in found.spent.items() if place == where) / 3600
        for metric in sorted(deciding):
            own = [row for row in found.resolution[where] if row["metric"] == metric]
            plans = [row for row in own if row["method"] == spokesman(own) and row["what"] in ("today", "pairs")]
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
    for (x, y, text), colour in zip(ends, _colours(len(ends)), strict=True):
        axis.annotate(text, (x, y), (4, 0), textcoords="offset points", va="center", size=6, color=colour)
    axis.set_xlim(right=axis.get_xlim()[1] * 8)
    return figure


def _colours(count: int) -> list[str]:
    return [style.PALETTE[i % len(style.PALETTE)] for i in range(count)]
