"""Draw distributions over models on a logarithmic axis, one below the other: a tick for each model, a density above."""

import math
from typing import Any

import numpy as np

from unlearning_audit.report.figures import Numbers, lookup, naming, style
from unlearning_audit.report.tables.typeset import SIGNIFICANT, number

#: At how many positions a density is computed.
POINTS = 160


def draw(numbers: Numbers, order: dict[str, Any], label: str, *metrics: str) -> "style.Figure":
    """Draw densities of the values of ``metrics`` over models: a panel for each method, a row for each value of the
    setting that the figure varies (its field ``axis``). All panels have the same horizontal limits.

    If the figure varies no setting, draw a panel for each scenario with a row for each method. The density of the first
    metric is filled and has a tick for each model; the densities of the other metrics are dashed outlines. ``label``
    stands below each panel. The figure's own label names the rows with the lowest and the highest median of the first
    metric.
    """
    settings, colours = order["figure"], style.colours(order["methods"])
    panels = grouped(numbers, settings["axis"])  # title → [(label of a row, its case)]
    rows = max(len(lines) for lines in panels.values())
    figure, axes = style.panels(
        len(panels), height=0.62 + 0.3 * rows, columns=3 if settings["axis"] else 2,
        width=style.WHOLE if len(panels) > 1 else style.HALF, share_y=bool(settings["axis"]),
    )  # fmt: skip
    drawn_values: list[float] = []
    medians: dict[str, float] = {}
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        for row, (name, case) in enumerate(lines):
            colour = colours[case["method"]] if case else ""  # nothing is drawn without a case
            first, *others = [numbers.models(case, name, settings["attack"]) if case else [] for name in metrics]
            drawn_values += _row(axis, row, first, colour)
            drawn_values += [end for of_metric in others for end in _row(axis, row, of_metric, colour, dashed=True)]
            median = float(np.median(first)) if first else math.nan
            if math.isfinite(median):
                medians[f"{title}, {name}" if len(panels) > 1 else name] = median
        style.logarithmic(axis, subs=(1.0,))
        axis.set(title=title, xlabel=label)
        style.rows(axis, [name for name, _ in lines])
        axis.set_ylim(len(lines) - 0.5, -0.75)  # rows are numbered downwards; a density rises above its row
    for i, axis in enumerate(axes):
        axis.set_xlim(min(drawn_values, default=0.1), max(drawn_values, default=1.0))
        if settings["axis"] and i % 3 == 0:  # the first panel of a row
            axis.set_ylabel(naming.axis(settings["axis"]))
    if len(medians) > 1:
        texts = {name: f"{number(median, SIGNIFICANT)} ({name})" for name, median in medians.items()}
        least, most = min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__)
        figure.set_label(f"In the median, {label} goes from {texts[least]} to {texts[most]}")
    return figure


def grouped(numbers: Numbers, along: str | None) -> dict[str, list[tuple[str, dict[str, Any] | None]]]:
    """Return, for the panels of a figure, title → [(label of a row, its case)].

    ``along`` is the name of the setting that the figure varies. A panel then shows one method in one scenario, with a
    row for each value of that setting. If ``along`` is None, a panel shows one scenario, with a row for each method;
    the case is None where the scenario does not have the method.
    """
    if along is None:
        return {lookup.label(where): [(naming.method(name), case) for name, case in numbers.by_method(where).items()]
                for where in lookup.places(numbers.cases)}  # fmt: skip
    several = len({case["scenario"] for case in numbers.cases}) > 1  # then titles name the scenario
    panels: dict[str, list[Any]] = {}
    for name in lookup.methods(numbers.cases):
        cases = [case for case in numbers.cases if case["method"] == name and along in case["axes"]]
        for case in cases:
            title = naming.method(name) + (f", {case['scenario'].replace('_', ' ')}" if several else "")
            panels.setdefault(title, []).append((naming.value(case["axes"][along]), case))
    return panels


def density(values: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return the Gaussian kernel density of ``values`` [n] at ``positions`` [points], scaled to a maximum of 1.

    The bandwidth is Silverman's. The density is 0 everywhere for fewer than three values, or if all values are equal.
    """
    from scipy.stats import gaussian_kde

    if len(values) < 3 or not np.ptp(values):
        return np.zeros(len(positions))
    heights = gaussian_kde(values, "silverman")(positions)
    return np.asarray(heights / heights.max())


def _row(axis: "style.Axes", row: int, values: list[float], colour: str, *, dashed: bool = False) -> list[float]:
    """Draw the density of ``values`` over a logarithmic scale in row ``row``, with a tick for each value below the
    density and a dot at the median; return the least and the largest position at which the density was computed.

    Values that are not positive and finite are counted beside the density. If no value is positive and finite, a
    sentence is written and [] is returned. A ``dashed`` density has an outline only, without ticks, dot and sentences.
    """
    positive = [value for value in values if 0 < value < math.inf]
    if not positive:
        if not dashed:
            style.absent(axis, row, "no number" if not values else "all are 0 or infinite")
        return []
    logs = np.log10(positive)
    beyond = max(0.35, 0.3 * np.ptp(logs))  # how far the density goes beyond the values
    positions = np.linspace(logs.min() - beyond, logs.max() + beyond, POINTS)
    heights, limits = density(logs, positions), [10 ** positions[0], 10 ** positions[-1]]
    visible = heights > 0.01
    x, base = 10 ** positions[visible], row + 0.12
    top = base - 0.62 * heights[visible]  # rows are numbered downwards
    if len(top) and not dashed:  # top is empty if the density is 0 everywhere
        axis.fill_between(x, base, top, color=colour, alpha=0.25, lw=0)
    if len(top):
        axis.plot(x, top, color=colour, lw=0.9, ls=(0, (2.5, 1.5)) if dashed else "-")
    if dashed:
        return limits
    axis.plot(positive, [row + 0.24] * len(positive), "|", color=colour, ms=4, mew=0.6, alpha=0.8)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = np.median(np.log10([value for value in values if not math.isnan(value)]))
    if np.isfinite(middle):  # a logarithmic axis cannot show 0 or infinity
        axis.plot(10**middle, base, "o", color=colour, ms=3, mew=0)
    if len(positive) < len(values):
        axis.annotate(
            f"+ {len(values) - len(positive)} at 0 or ∞", (1, row), xycoords=axis.get_yaxis_transform(), ha="right",
            va="center", size=6, color=style.MUTED,
        )  # fmt: skip
    return limits
