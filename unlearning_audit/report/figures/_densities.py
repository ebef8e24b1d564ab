"""Draw distributions over models on a logarithmic axis, one below the other: a tick for each model, a density above."""

import math
from typing import Any

import numpy as np

from unlearning_audit.report.figures import Numbers, lookup, naming, style
from unlearning_audit.report.tables.typeset import SIGNIFICANT, number

POINTS = 160


def draw(numbers: Numbers, order: dict[str, Any], label: str, *metrics: str) -> "style.Figure":
    """Draw densities of the values of ``metrics`` over models: a panel for each method, a row for each value of the
    figure's axis, on shared horizontal limits.

    Without an axis, draw a panel for each scenario with a row for each method. The first of the ``metrics`` is filled
    and has ticks for models; others are dashed outlines. ``label`` names the horizontal axis.
    """
    wish, colours = order["figure"], style.colours(order["methods"])
    panels = grouped(numbers, wish["axis"])
    rows = max(len(lines) for lines in panels.values())
    figure, axes = style.panels(
        len(panels), height=0.62 + 0.3 * rows, columns=3 if wish["axis"] else 2,
        width=style.WHOLE if len(panels) > 1 else style.HALF, share_y=bool(wish["axis"]),
    )  # fmt: skip
    drawn_values: list[float] = []
    medians: dict[str, float] = {}
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        for row, (name, case) in enumerate(lines):
            for metric in metrics:
                values, dashed = numbers.models(case, metric, wish["attack"]) if case else [], metric != metrics[0]
                drawn_values += _row(axis, row, values, colours[case["method"]] if case else "", dashed)
                if values and not dashed and math.isfinite(middle := float(np.median(values))):
                    medians[f"{title}, {name}" if len(panels) > 1 else name] = middle
        style.logarithmic(axis, subs=(1.0,))
        axis.set(title=title, xlabel=label)
        style.rows(axis, [name for name, _ in lines])
        axis.set_ylim(len(lines) - 0.5, -0.75)
    low, high = (min(drawn_values), max(drawn_values)) if drawn_values else (0.1, 1.0)
    for axis in axes[::3] if wish["axis"] else ():
        axis.set_ylabel(naming.axis(wish["axis"]))
    for axis in axes:
        axis.set_xlim(low, high)
    if len(medians) > 1:
        ends = (min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__))
        least, most = (f"{number(medians[name], SIGNIFICANT)} ({name})" for name in ends)
        figure.set_label(f"In the median, {label} goes from {least} to {most}")
    return figure


def grouped(numbers: Numbers, along: str | None) -> dict[str, list[tuple[str, dict[str, Any] | None]]]:
    """Return, for the panels of a figure, title → [(label of a curve, its case)].

    With an axis of the study (``along``), a panel has one method and a curve for each value of the axis. Without, it
    has one scenario and a curve for each method; the case is None where the scenario does not have the method.
    """
    if along is None:
        return {lookup.label(where): [(naming.method(name), case) for name, case in numbers.by_method(where).items()]
                for where in lookup.places(numbers.cases)}  # fmt: skip
    several = len({case["scenario"] for case in numbers.cases}) > 1
    panels: dict[str, list[Any]] = {}
    for name in lookup.methods(numbers.cases):
        for case in (case for case in numbers.cases if case["method"] == name and along in case["axes"]):
            title = naming.method(name) + (f", {case['scenario'].replace('_', ' ')}" if several else "")
            panels.setdefault(title, []).append((naming.value(case["axes"][along]), case))
    return panels


def density(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the Gaussian kernel density of ``values`` [n] at ``at`` [points], scaled to a maximum of 1.

    The bandwidth is by Silverman's rule. The density is 0 everywhere for fewer than three values, or if all are equal.
    """
    from scipy.stats import gaussian_kde

    if len(values) < 3 or not np.ptp(values):
        return np.zeros(len(at))
    heights = gaussian_kde(values, "silverman")(at)
    return np.asarray(heights / heights.max())


def _row(axis: "style.Axes", row: int, values: list[float], colour: str, dashed: bool) -> list[float]:
    """Draw the density of ``values`` on a logarithmic axis in row ``row``; return its least and largest position.

    Values that are 0 or infinite are counted beside it. If no value is positive and finite, a sentence is written and
    [] is returned. A ``dashed`` density has an outline only, without marks and sentences.
    """
    positive = [value for value in values if 0 < value < math.inf]
    if not positive:
        if not dashed:
            style.absent(axis, row, "no number" if not values else "all are 0 or infinite")
        return []
    logs = np.log10(positive)
    reach = max(0.35, 0.3 * np.ptp(logs))
    at = np.linspace(logs.min() - reach, logs.max() + reach, POINTS)
    heights, limits = density(logs, at), [10 ** at[0], 10 ** at[-1]]
    visible = heights > 0.01
    base, top = row + 0.12, row + 0.12 - 0.62 * heights[visible]
    if len(top) and not dashed:
        axis.fill_between(10 ** at[visible], base, top, color=colour, alpha=0.25, lw=0)
    if len(top):
        axis.plot(10 ** at[visible], top, color=colour, lw=0.9, ls=(0, (2.5, 1.5)) if dashed else "-")
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
