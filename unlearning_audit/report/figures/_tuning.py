"""Draw, for every tuned method, the distance from retraining against seconds, of all settings that were tried."""

import math
from typing import Any

from unlearning_audit.report import lookup, naming, style


def draw(campaigns: list[dict[str, Any]]) -> "style.Figure":
    """Draw a panel for each tuned method. It has a point for each setting that was tried: its seconds for a pair, and
    its distance from retraining with the interval.

    A point is hollow if the setting loses more utility than the margin. The chosen setting has a colour of its own. A
    dotted line marks a distance of one margin, a solid line the distance of the study's own setting. The figure's label
    counts the methods whose chosen setting came nearer to retraining than the study's own.

    Parameters
    ----------
    campaigns
        For each tuned method its scenario, setting, method and ``trials``, the rows of trials.csv; the last row of each
        tried setting is drawn.
    """
    figure, axes = style.panels(max(len(campaigns), 1), height=1.5, columns=4, width=style.WHOLE)
    nearer: list[bool] = []  # whether a chosen setting came nearer to retraining than the study's own, which is trial 0
    for axis, campaign in zip(axes, campaigns, strict=False):  # without campaigns, one axis stays empty
        last = {row["trial"]: row for row in campaign["trials"]}  # number of a trial → its last row
        # The chosen setting comes last, so that it is drawn above the others. All are drawn in two calls, because there
        # may be thousands.
        rows = sorted((row for row in last.values() if not math.isnan(row["distance"])), key=lambda row: row["chosen"])
        seconds = [max(row["seconds"] / row["pairs"], 1e-3) for row in rows]
        colours = [style.PALETTE[1] if row["chosen"] else style.PALETTE[0] for row in rows]
        faces = [colour if row["lost"] <= 1 else "none" for row, colour in zip(rows, colours, strict=True)]
        low, high = [row["ci_low"] for row in rows], [row["ci_high"] for row in rows]
        axis.vlines(seconds, low, high, color=colours, linewidth=0.6, alpha=0.6)
        axis.scatter(seconds, [row["distance"] for row in rows], s=9, edgecolors=colours, facecolors=faces)
        axis.axhline(1, color=style.MUTED, linewidth=0.6, linestyle=":")  # one margin
        axis.axhline(last[0]["distance"], color=style.MUTED, linewidth=0.6)
        style.logarithmic(axis)
        axis.set_ylim(bottom=0)
        several = len({(other["scenario"], other["setting"]) for other in campaigns}) > 1
        where = f" · {lookup.label((campaign['scenario'], campaign['setting']))}" if several else ""
        axis.set_title(naming.method(campaign["method"]) + where)
        nearer += [row["distance"] < last[0]["distance"] for row in last.values() if row["chosen"]]
    figure.set_label(f"On the pairs of tuning, {sum(nearer)} of {len(nearer)} methods came nearer to retraining")
    figure.supxlabel("seconds of the method on a pair", fontsize=7)
    figure.supylabel("distance, margins", fontsize=7)
    return figure
