"""The front of every tuned method: distance from retraining against seconds, of all settings that were tried."""

import math

from unlearning_audit.display import lookup, naming, style


def draw(campaigns: list[dict]):
    """A panel for each tuned method: a point for each setting with its interval, hollow where it loses more worth than
    the margin; the chosen one in colour, and the distance of the study's own as a line. ``campaigns``: scenario,
    setting, method, ``trials`` (rows of trials.csv, of which the last of each setting is shown)."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    figure, axes = style.panels(max(len(campaigns), 1), height=1.5, columns=4, width=style.WHOLE)
    for axis, campaign in zip(axes, campaigns, strict=False):
        last = {row["trial"]: row for row in campaign["trials"]}
        for row in last.values():
            if math.isnan(row["distance"]):
                continue
            seconds, kept = max(row["seconds"] / row["pairs"], 1e-3), row["worth"] <= 1
            color = "#d55e00" if row["chosen"] else "#0072b2"
            axis.plot([seconds] * 2, [row["ci_low"], row["ci_high"]], color=color, linewidth=0.6, alpha=0.6)
            axis.plot(seconds, row["distance"], "o", markersize=3, color=color, fillstyle="full" if kept else "none")
        axis.axhline(1, color=style.MUTED, linewidth=0.6, linestyle=":")
        axis.axhline(last[0]["distance"], color=style.MUTED, linewidth=0.6)
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        axis.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_ylim(bottom=0)
        several = len({(c["scenario"], c["setting"]) for c in campaigns}) > 1
        where = f" · {lookup.label((campaign['scenario'], campaign['setting']))}" if several else ""
        axis.set_title(naming.method(campaign["method"]) + where)
    figure.supxlabel("seconds of the method on a pair", fontsize=7)
    figure.supylabel("distance, margins", fontsize=7)
    return figure
