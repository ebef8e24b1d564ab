"""Draw the evaluation of metrics: a line for each metric, a panel for each property."""

import math
from typing import Any

from unlearning_audit.comparisons.meta import PROPERTIES, common_scenario, overview, verdict
from unlearning_audit.report import naming, style
from unlearning_audit.report.tables.meta import elsewhere, metrics
from unlearning_audit.report.tables.typeset import number

#: Property → title, label of the axis, ideal value, limits of the values.
PANELS = {
    "grounding": ("grounding", "retrain −\nperfect", 0.0, (None, None)),
    "separation": ("separation", "retrain − none\n(standard errors)", None, (None, None)),
    "power": ("power", "pairs of methods\nthat differ", 1.0, (0, 1)),
    "agreement over seeds": ("agreement\nover seeds", "Kendall's τ\nof rankings", 1.0, (None, 1)),
    "agreement over sizes": ("agreement\nover sizes", "Kendall's τ\nof rankings", 1.0, (None, 1)),
    "monotonicity": ("monotonicity", "Spearman's ρ\nwith budget ε", -1.0, (-1, None)),
    "models": ("cost", "models made\nfor one method", None, (0, None)),
}
#: Verdict → colour, marker, whether it is filled, and what it means.
MARKS = {
    "good": ("#0072b2", "o", True, "passes"),
    "": (style.MUTED, "o", False, "undecided"),
    "bad": ("#d55e00", "X", True, "fails"),
    "count": (style.INK, "D", True, "a count: higher is better for power, lower for cost"),
}


def draw(rows: list[dict[str, Any]]) -> "style.Figure":
    """Draw a panel for each property of metrics (power, separation, …), a dot with its 95 % interval for each metric,
    and a dashed line at the ideal value.

    Metrics that are evaluated on other models than most metrics stand below a line. If no row has a value, the figure
    holds a sentence that says so. The figure's label counts the metrics that fail a test.

    Parameters
    ----------
    rows
        A row for each metric, property and scenario, as `comparisons.meta.evaluate` returns them.
    """
    # (metric, property) → the row that represents it; and all metrics, those on other models last.
    row_of, names, on_other_models = overview(rows), metrics(rows), elsewhere(rows)
    scenario_of = {metric: row["scenario"].replace("_", " ") for (metric, _), row in reversed(row_of.items())}
    valued = {quality for (_, quality), row in row_of.items() if not math.isnan(row["value"])}
    properties = [quality for quality in PROPERTIES if quality in valued]
    if not properties:
        return style.blank("No metric of this study can be assessed.")
    count, height = len(properties), 1.15 + 0.19 * len(names)
    figure, axes = style.panels(count, height=height, columns=count, width=style.WHOLE * (0.35 + 0.095 * count))
    for axis, quality in zip(axes, properties, strict=True):
        title, label, ideal, (low, high) = PANELS[quality]
        for y, name in enumerate(names):
            if (name, quality) in row_of:
                _dot(axis, y, row_of[name, quality])
        if ideal is not None:
            axis.axvline(ideal, color=style.INK, lw=0.7, ls=(0, (4, 2)), zorder=0.5)
        if quality in ("separation", "agreement over seeds", "agreement over sizes"):  # no separation, no agreement
            axis.axvline(0, color=style.MUTED, lw=0.7, zorder=0.5)
        where = "" if quality == "models" else f"\n({common_scenario(rows, quality).replace('_', ' ')})"
        axis.set_title(title, size=7)
        axis.set_xlabel(label + where, size=6.5)
        style.rows(axis, [f"{name} ({scenario_of[name]})" if name in on_other_models else name for name in names])
        axis.margins(x=0.12)
        axis.locator_params(axis="x", nbins=3)
        left, right = axis.get_xlim()
        room = 0.06 * (right - left)
        axis.set_xlim(left if low is None else low - room, right if high is None else high + room)
        if on_other_models:
            axis.axhline(len(names) - len(on_other_models) - 0.5, color=style.GRID, lw=0.8)
    failing = {name for (name, _), row in row_of.items() if verdict(row) == "bad"}
    fail = "fail" if len(failing) > 1 else "fails"
    figure.set_label(f"{len(failing) or 'None'} of {naming.count(len(names), 'metric')} {fail} a test")
    used = {_kind(row) for row in row_of.values() if row["property"] in properties and not math.isnan(row["value"])}
    entries: list[dict[str, Any]] = [
        {"label": meaning, "ls": "", "marker": marker, "color": colour, "mfc": colour if filled else style.PAPER}
        for kind, (colour, marker, filled, meaning) in MARKS.items() if kind in used
    ]  # fmt: skip
    style.legend(figure, [*entries, {"label": "what is wanted", "ls": (0, (4, 2)), "color": style.INK, "lw": 0.7}])
    return figure


def _kind(row: dict[str, Any]) -> str:
    """Return the key of `MARKS` (colour and marker) for a row of the evaluation of metrics: "count" for a property that
    has no verdict, else the verdict "good", "bad" or ""."""
    return "count" if row["property"] in ("power", "models") else verdict(row)


def _dot(axis: "style.Axes", y: int, row: dict[str, Any]) -> None:
    """Draw one property of a metric at height ``y``: a dot with its interval, or a dash without a value. A number of
    models stands beside its dot."""
    if math.isnan(row["value"]):
        middle: dict[str, Any] = {"transform": axis.get_yaxis_transform(), "va": "center", "ha": "center"}
        axis.text(0.5, y, "—", color=style.MUTED, size=6.5, **middle)
        return
    colour, marker, filled, _ = MARKS[_kind(row)]
    style.mark(axis, y, row["value"], (row["ci_low"], row["ci_high"]), colour, marker, hollow=not filled)
    if row["property"] == "models":
        axis.annotate(
            number(row["value"], places=0), (row["value"], y), (5, 0), textcoords="offset points", va="center", size=6,
            color=style.MUTED, annotation_clip=False,
        )  # fmt: skip
