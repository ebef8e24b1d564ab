"""Draw Q of every method with its interval, one panel per scenario, and the interval of retraining as a band."""

from typing import Any

from unlearning_audit.report.figures import Numbers, lookup, missing, naming, style, words
from unlearning_audit.report.page import sentences

#: Fields of a figure in a study that this kind reads.
READS = ("attack",)

#: Title of the figure in a study that lists no figures.
TITLE = "Unlearning Quality of every method"


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw the main metric as a forest plot: for each method a dot with its 95 % interval, a line at the ideal, and a
    band for the interval of retraining.

    There is a panel for each scenario. The marks of the control and of methods that changed nothing are hollow. A
    method without a number has a reason in its row.

    Parameters
    ----------
    order
        The ``figure`` as the study states it, and the names of all ``methods``, which decide colours and markers.
    """
    attack, places, methods = order["figure"]["attack"], lookup.places(numbers.cases), lookup.methods(numbers.cases)
    figure, axes = style.panels(len(places), height=0.75 + 0.2 * len(methods))
    colours, markers = style.colours(order["methods"]), style.markers(order["methods"])
    reach: dict[str, list[float]] = {}  # metric → all numbers and ends of intervals that its panels must show
    panels = []  # panels with at least one number, each with its metric
    for axis, where in zip(axes, places, strict=True):
        metric = numbers.main_metric([case for case in numbers.cases if lookup.place(case) == where])
        # Panels of one metric share their limits; those of Q and of the IC score, which are 1 at best, include 1.
        ends = reach.setdefault(metric, [1.0] if metric in ("q", "ic_score") else [])
        before = len(ends)  # unchanged below if no method of this panel has a number
        _, retrained = sentences.reference(numbers, where, attack)  # the number of retraining
        if retrained.bounded:
            axis.axvspan(retrained.low, retrained.high, color=style.GRID, alpha=0.55, lw=0, zorder=0)
        for row, (name, case) in enumerate(numbers.by_method(where).items()):
            _, cell = numbers.primary(case, attack) if case else ("", missing(""))  # of the main metric
            if cell.empty:
                style.absent(axis, row, cell.flag if cell.flag in words.LOST else "no number")
                continue
            ends += [cell.low, cell.high] if cell.bounded else [cell.value]
            hollow = name == "retrain_control" or cell.flag == "unchanged"
            style.mark(axis, row, cell.value, (cell.low, cell.high), colours[name], markers[name], hollow=hollow)
        label = naming.meaning(metric).display_name if metric else ""
        frame(axis, methods, lookup.label(where), label, naming.ideal(metric), nbins=4 if len(axes) > 1 else 6)
        if len(ends) > before:
            panels.append((axis, metric))
        else:  # an axis with ticks would suggest a number
            axis.set_xticks([])
    for axis, metric in panels:
        low, high = min(reach[metric]), max(reach[metric])
        gap = 0.06 * (high - low or 1.0)
        axis.set_xlim(low - gap, high + gap)
    figure.set_label(finding(numbers, attack))
    return figure


def finding(numbers: Numbers, attack: str) -> str:
    """Return a sentence that counts the methods whose interval of the main metric overlaps the interval of retraining,
    for each scenario and setting.

    References (none, retrain, …) and methods without an interval do not count. "" if no interval of retraining is
    known, or if there are more than three scenarios and settings.

    Parameters
    ----------
    attack
        The attack that the figure names, or "".
    """
    overlaps: dict[str, list[bool]] = {}  # scenario and setting → for each method, whether the intervals overlap
    for case in numbers.cases:
        if case["method"] not in naming.BASELINES:
            where, (_, cell) = lookup.place(case), numbers.primary(case, attack)
            _, retrained = sentences.reference(numbers, where, attack)
            if retrained.bounded and cell.bounded:
                overlap = cell.low <= retrained.high and cell.high >= retrained.low
                overlaps.setdefault(lookup.label(where), []).append(overlap)
    several = len(overlaps) > 1
    counts = [f"{sum(some)} of {len(some)}" + (f" in {place}" if several else "") for place, some in overlaps.items()]
    return f"Intervals that meet that of retraining: {', '.join(counts)}" if 0 < len(counts) < 4 else ""


def frame(axis: "style.Axes", methods: list[str], title: str, label: str, ideal: float | None, nbins: int) -> None:
    """Label a panel with one row for each method: the methods' names at the left, a line at the ``ideal`` value unless
    it is None, at most ``nbins`` intervals between ticks, a title above and ``label`` below."""
    if ideal is not None:
        axis.axvline(ideal, color=style.INK, lw=0.7, ls=(0, (4, 2)), zorder=0.5)
    axis.set(title=title, xlabel=label)
    style.rows(axis, [naming.method(name) for name in methods])
    axis.locator_params(axis="x", nbins=nbins)
