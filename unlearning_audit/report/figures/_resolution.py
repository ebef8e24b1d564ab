"""What more computing would buy: the half-width of a distance from retraining, in margins, and the hours it takes."""

from unlearning_audit.report import decisions, lookup, style
from unlearning_audit.report.decisions import Decisions, Place
from unlearning_audit.report.tables.cost import duration
from unlearning_audit.report.tables.verdicts import spokesman

#: Rows beyond which only the first setting of each scenario is drawn.
ROWS = 24


def draw(judgements: Decisions) -> "style.Figure":
    """A row for each scenario and setting, of its widest deciding metric: a dot for this study, then rings for 2, 4, 8
    and 16 times as many pairs; half-widths as shares of the margin, so that below 1 what is as retrained can be shown
    to be. The narrowest first."""
    rows = [row for where in judgements.resolution if (row := _widest(judgements, where))]
    if len(rows) > ROWS:
        first = {where[0]: where for where in reversed(judgements.resolution)}
        rows = [row for where in reversed(first.values()) if (row := _widest(judgements, where))]
    rows.sort(key=lambda row: row[1][0])
    if not rows:
        return style.blank("Nothing is known of what larger studies would tell or take.", style.WHOLE)
    figure, (axis,) = style.panels(1, height=0.6 + 0.15 * len(rows), width=style.WHOLE)
    able = sum(widths[0] < 1 for _, widths, _ in rows)
    figure.set_label(f"{able} of {len(rows)} comparisons are large enough to show that a method is like retraining")
    for at, (_, widths, hours) in enumerate(rows):
        colour = style.PALETTE[0] if widths[0] < 1 else style.PALETTE[1]
        axis.plot(widths, [at] * len(widths), color=colour, lw=0.9, zorder=2)
        axis.plot(widths[1:], [at] * (len(widths) - 1), "o", color=colour, mfc=style.PAPER, ms=2.6, mew=0.8, zorder=3)
        axis.plot(widths[0], at, "o", color=colour, ms=4.5, zorder=4)
        beside = axis.get_yaxis_transform()
        axis.text(1.01, at, duration(3600 * hours), transform=beside, va="center", size=6, color=style.MUTED)
    axis.text(1.01, -1, "took", transform=axis.get_yaxis_transform(), va="center", size=6, color=style.MUTED)
    axis.axvline(1, color=style.INK, lw=0.7, ls=(0, (4, 2)), zorder=0.5)
    axis.set_yticks(range(len(rows)), [label for label, _, _ in rows])
    axis.tick_params(axis="y", length=0, labelsize=6.5)
    axis.set(xscale="log", xlabel="half-width of the interval, in margins", ylim=(len(rows) - 0.4, -1.4))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter("")
    axis.spines["left"].set_visible(False)
    axis.set_axisbelow(True)
    axis.grid(axis="x")
    return figure


def _widest(judgements: Decisions, where: Place) -> tuple[str, list[float], float] | None:
    """(label, half-widths in margins today and with more pairs, hours that this study took) of the deciding metric that
    is known least; None where nothing is."""
    deciding = {row["metric"] for row in judgements.distances[where] if row["deciding"]}
    spent = judgements.total.get(where, 0.0) / 3600
    lines = []
    for metric in sorted(deciding):
        rows = [row for row in judgements.resolution[where] if row["metric"] == metric]
        plans = [row for row in rows if row["method"] == spokesman(rows) and row["what"] in ("today", "pairs")]
        # Models that do not differ show no width.
        widths = [row["half_width"] / row["margin"] for row in plans if row["half_width"] > 0]
        if spent and widths:
            lines.append((f"{lookup.label(where)}: {decisions.label(metric)}", widths, spent))
    return max(lines, key=lambda line: line[1][0], default=None)
