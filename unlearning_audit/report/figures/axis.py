"""Draw Q along an axis of the study, such as the size of the data or the privacy budget; one line per method."""

import math
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from unlearning_audit.report.figures import Numbers, lookup, naming, style, words
from unlearning_audit.report.tables import rankings

#: The field of a figure in a study that must be set for this kind.
NEEDS = "axis"
#: Fields of a figure in a study that this kind reads.
READS = ("axis", "attack")

#: How far methods are drawn beside a value of the axis, in steps, so that their intervals do not overlap.
APART = 0.12


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw the main metric against the values of a setting that the study varies (``axis`` of the figure): a panel for
    each scenario, a line with 95 % intervals for each method, and the method's name at the right end of its line.

    Methods without a number are left out. A dashed line marks the metric's ideal. The line of the control is dashed and
    hollow, and has no interval. The figure's label says whether the metric ranks methods alike at all values.
    """
    along, attack = order["figure"]["axis"], order["figure"]["attack"]
    methods = lookup.methods(numbers.cases)
    groups = grouped(numbers.cases, along)
    figure, axes = style.panels(len(groups), height=2.3, columns=2, width=style.HALF * min(len(groups), 2))
    colours, markers = style.colours(order["methods"]), style.markers(order["methods"])
    ends: list[list[tuple[str, float]]] = []  # for each panel, (method, its last value)
    for axis, (title, cases) in zip(axes, groups.items(), strict=True):
        texts = list(dict.fromkeys(case["axes"][along] for case in cases))  # the values of the setting, as text
        position_of = dict(zip(texts, positions(texts), strict=True))
        step = min((right - left for left, right in pairwise(sorted(position_of.values()))), default=1.0)
        shift_of = dict(zip(methods, np.linspace(-APART, APART, len(methods)) * step, strict=True))
        ends.append([])
        for name in methods:
            of_method = [case for case in cases if case["method"] == name]
            found = [(position_of[case["axes"][along]], numbers.primary(case, attack)) for case in of_method]
            points = sorted(((x, cell) for x, (_, cell) in found if not cell.empty), key=lambda point: point[0])  # by x
            if not points:
                continue
            xs, values = [x + shift_of[name] for x, _ in points], [cell.value for _, cell in points]
            control = name == "retrain_control"
            bounded = [(x, cell.low, cell.high) for x, (_, cell) in zip(xs, points, strict=True) if cell.bounded]
            if bounded and not control:
                axis.vlines(*zip(*bounded, strict=True), color=colours[name], lw=0.8, alpha=0.7)
            axis.plot(
                xs, values, marker=markers[name], color=colours[name], ls=(0, (3, 1.5)) if control else "-",
                mfc=style.PAPER if control else colours[name], mew=1, clip_on=False,
            )  # fmt: skip
            ends[-1].append((name, values[-1]))
        metric = numbers.main_metric(cases)
        ideal = naming.ideal(metric)
        if ideal is not None:
            axis.axhline(ideal, color=style.INK, lw=0.7, ls=(0, (4, 2)), zorder=0)
        axis.set(ylabel=naming.meaning(metric).display_name if metric else "", xlabel=naming.axis(along))
        axis.set(title=title if len(groups) > 1 else "")
        axis.set_xticks(list(position_of.values()), [naming.value(text) for text in texts])
        axis.minorticks_off()
        axis.grid(axis="y")
    for axis, of_panel in zip(axes, ends, strict=True):
        _name_ends(axis, of_panel, colours)
    figure.set_label(finding(numbers, attack))
    return figure


def finding(numbers: Numbers, attack: str) -> str:
    """Return a sentence on whether the main metric ranks methods alike at all values of the varied setting.

    Kendall's τ compares the rankings in every two scenarios and settings with at least three methods. References (none,
    retrain) and methods without a number are not ranked. The sentence is "" if there are no two such rankings.

    Parameters
    ----------
    attack
        The attack that the figure names, or "".
    """
    metric = numbers.main_metric(numbers.cases)
    if not metric:
        return ""
    ranked = [rankings.rank(numbers, where, metric, attack) for where in lookup.places(numbers.cases)]
    ranked = [ranking for ranking in ranked if len(ranking.values) > 2]
    agreements = [rankings.agreement(left, right) for left, right in combinations(ranked, 2)]
    return words.rankings([tau.value for tau in agreements if not tau.empty])


def positions(texts: list[str]) -> list[float]:
    """Return the horizontal position of each value of a varied setting, given as ``texts``: words evenly, numbers by
    value, positive numbers with a wide range (a factor of 5 or more) by logarithm.

    An infinite value lies one mean step beyond the last finite one. With fewer than two finite numbers, all values lie
    evenly.
    """
    try:
        values = [float(text) for text in texts]
    except ValueError:
        values = []
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < 2:
        return [float(i) for i in range(len(texts))]
    wide = min(finite) > 0 and max(finite) / min(finite) >= 5
    position_of = {value: math.log10(value) if wide else value for value in finite}
    left, right = min(position_of.values()), max(position_of.values())
    step = (right - left) / (len(finite) - 1)
    position_of |= {math.inf: right + step, -math.inf: left - step}
    return [position_of.get(value, math.nan) for value in values]


def grouped(cases: list[dict[str, Any]], along: str) -> dict[str, list[dict[str, Any]]]:
    """Return title of a panel → the cases that it shows: those of one scenario in which the setting ``along`` varies,
    while all other varied settings have the same value."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for case in cases:
        if along in case["axes"]:
            rest = ";".join(f"{name}={value}" for name, value in case["axes"].items() if name != along)
            groups.setdefault(lookup.label((case["scenario"], rest)), []).append(case)
    return groups


def _name_ends(axis: "style.Axes", ends: list[tuple[str, float]], colours: dict[str, str]) -> None:
    """Write each method's name at the right end of its line; names that would overlap are moved apart.

    Parameters
    ----------
    ends
        For each line, (method, value at its end).
    colours
        Method → colour.
    """
    low, high = axis.get_ylim()
    axis.set_ylim(low, high)  # fixed, so that names do not change the limits
    height = axis.bbox.height / axis.figure.dpi * 72  # of the panel, in points
    gap = 8.0 * (high - low) / height  # 8 points, in units of the metric
    for (name, _), y in zip(ends, style.spread([value for _, value in ends], gap, low, high), strict=True):
        axis.annotate(
            naming.method(name), (1, y), (7, 0), xycoords=axis.get_yaxis_transform(), textcoords="offset points",
            va="center", size=7, color=colours[name], annotation_clip=False,
        )  # fmt: skip
