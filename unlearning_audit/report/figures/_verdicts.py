"""Draw every method between doing nothing (0) and retraining (1), by every deciding metric at once."""

import itertools
import math
from typing import Any

from unlearning_audit.report import decisions, naming, style, words
from unlearning_audit.report.decisions import Decisions, Judged
from unlearning_audit.stats import decide

#: The limits of a panel, as shares of traces removed: 0 is doing nothing, 1 is retraining.
LIMITS = (-0.35, 1.35)
#: How many panels stand beside each other.
ACROSS = 3


def draw(judgements: Decisions) -> "style.Figure":
    """Draw which share of traces each method removes: a panel for each scenario and setting, a row for each method, and
    a mark with its interval for each metric.

    A mark is hollow if the method is not distinguishable from retraining by that metric. Without a verdict on any
    method, the figure holds a sentence that says so. The figure's label counts the verdicts.
    """
    places = [judged for judged in judgements.places.values() if judged.compared]
    if not places:
        return style.blank("No method of this study was compared with none.")
    points = [row for judged in places for row in _rows(judged) if not math.isnan(row["share_closed"])]
    metrics = list(dict.fromkeys(row["metric"] for row in points))
    colours, markers = itertools.cycle(style.PALETTE), itertools.cycle(style.MARKERS)
    # Metric → (colour, marker); both cycles are endless.
    look_of = dict(zip(metrics, zip(colours, markers, strict=False), strict=False))
    # Every row of panels is as high as the longest list of methods in it.
    counts = [len(judged.compared) for judged in places]
    most = [max(counts[first : first + ACROSS]) for first in range(0, len(counts), ACROSS)]
    heights = [0.5 + 0.16 * count for count in most]
    figure, axes = style.panels(len(places), height=heights, columns=ACROSS, share_y=False, width=style.WHOLE)
    for i, (axis, judged) in enumerate(zip(axes, places, strict=True)):
        for row, method in enumerate(judged.compared):
            distances = [distance for distance in _rows(judged) if distance["method"] == method]
            _row(axis, row, distances, look_of, judged.verdicts[method])
        for x in (0, 1):
            axis.axvline(x, color=style.INK, lw=0.7, ls=(0, (4, 2)), zorder=0.5)
        axis.set_title(judged.label.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"))
        style.rows(axis, [naming.method(name) for name in judged.compared], most[i // ACROSS])
        axis.set_xlim(*LIMITS)
        axis.set_xticks((0, 0.5, 1), ("did nothing", "", "retraining"))
        axis.tick_params(axis="x", labelbottom=i + ACROSS >= len(places))  # only where no panel is below
    verdicts = [judged.verdicts[method]["verdict"] for judged in places for method in judged.compared]
    states = [*map(words.state, verdicts)]
    summary = ", ".join(f"{state.word} {states.count(state)}" for state in words.STATES if state in states)
    figure.set_label(f"Of {naming.count(len(states), 'verdict')}: {summary}")
    entries: list[dict[str, Any]] = [{"label": decisions.label(metric), "color": colour, "marker": marker}
                                     for metric, (colour, marker) in look_of.items()]  # fmt: skip
    if any(not row["p_holm"] <= decide.ALPHA for row in points):  # "not at most" is also true without a p-value
        hollow = {"ls": "", "color": style.MUTED, "marker": "o", "mfc": style.PAPER}
        entries.append({**hollow, "label": "not distinguishable from retraining"})
    figure.set_figheight(figure.get_figheight() + style.legend(figure, entries))
    return figure


def _rows(judged: Judged) -> list[dict[str, Any]]:
    """Return the rows of distances.csv of the metrics that decide verdicts in a scenario and setting, without
    references (none, retrain, …)."""
    return [row for row in judged.distances if row["deciding"] and row["method"] not in naming.BASELINES]


def _row(
    axis: "style.Axes", row: int, distances: list[dict[str, Any]], look_of: dict[str, Any], verdict: dict[str, Any]
) -> None:
    """Draw the share of traces removed by one method in a ``row`` of the panel: a mark with its interval for each
    metric. The marks lie one below the other. A value outside the panel is an arrow at the panel's edge.

    A mark is hollow if the distance is not significant. Without any share, the row has the word for the method's
    verdict if the scenario could not be judged (`decide.STATES`) or the method failed, else "no share".

    Parameters
    ----------
    distances
        The method's rows of distances.csv, one for each metric.
    look_of
        Metric → (colour, marker).
    verdict
        The method's row of verdicts.csv.
    """
    finite = [distance for distance in distances if not math.isnan(distance["share_closed"])]
    if not finite:
        is_state = verdict["verdict"] in (decide.FAILED, *decide.STATES)
        style.absent(axis, row, words.state(verdict["verdict"]).word if is_state else "no share")
        return
    left, right = LIMITS
    for i, distance in enumerate(finite):
        colour, marker = look_of[distance["metric"]]
        value, low, high = (min(max(distance[f"share_{end}"], left), right) for end in ("closed", "low", "high"))
        if value != distance["share_closed"]:  # it was outside
            marker = "<" if value == left else ">"
        y = row + 0.22 * (i - (len(finite) - 1) / 2)  # centred on the row
        # "Not at most" is also true without a p-value.
        style.mark(axis, y, value, (low, high), colour, marker, hollow=not distance["p_holm"] <= decide.ALPHA)
