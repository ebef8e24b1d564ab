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

    ``rows``: one for each metric and property, as `comparisons.meta.evaluate` returns them. If none has a value, the
    figure holds a sentence that says so.
    """
    spoken, names, far = overview(rows), metrics(rows), elsewhere(rows)
    valued = {quality for (_, quality), row in spoken.items() if not math.isnan(row["value"])}
    properties = [quality for quality in PROPERTIES if quality in valued]
    if not properties:
        return style.blank("No metric of this study can be assessed.")
    count, height = len(properties), 1.15 + 0.19 * len(names)
    figure, axes = style.panels(count, height=height, columns=count, width=style.WHOLE * (0.35 + 0.095 * count))
    for axis, quality in zip(axes, properties, strict=True):
        title, label, ideal, (low, high) = PANELS[quality]
        for at, name in enumerate(names):
            if row := spoken.get((name, quality)):
                _dot(axis, at, row)
        if ideal is not None:
            axis.axvline(ideal, color=style.INK, lw=0.7, ls=(0, (4, 2)), zorder=0.5)
        if quality in ("separation", "agreement over seeds", "agreement over sizes"):
            axis.axvline(0, color=style.MUTED, lw=0.7, zorder=0.5)
        where = "" if quality == "models" else f"\n({common_scenario(rows, quality).replace('_', ' ')})"
        axis.set_title(title, size=7)
        axis.set_xlabel(label + where, size=6.5)
        style.rows(axis, [_label(name, spoken) if name in far else name for name in names])
        axis.margins(x=0.12)
        axis.locator_params(axis="x", nbins=3)
        ends = axis.get_xlim()
        room = 0.06 * (ends[1] - ends[0])
        axis.set_xlim(ends[0] if low is None else low - room, ends[1] if high is None else high + room)
        if far:
            axis.axhline(len(names) - len(far) - 0.5, color=style.GRID, lw=0.8)
    failing = {name for (name, _), row in spoken.items() if verdict(row) == "bad"}
    figure.set_label(f"{len(failing) or 'None'} of {naming.count(len(names), 'metric')} fails a test")
    used = {_kind(row) for row in spoken.values() if row["property"] in properties and not math.isnan(row["value"])}
    entries: list[dict[str, Any]] = [
        {"label": meaning, "ls": "", "marker": marker, "color": colour, "mfc": colour if filled else style.PAPER}
        for kind, (colour, marker, filled, meaning) in MARKS.items() if kind in used
    ]  # fmt: skip
    style.legend(figure, [*entries, {"label": "what is wanted", "ls": (0, (4, 2)), "color": style.INK, "lw": 0.7}])
    return figure


def _label(name: str, spoken: dict[tuple[str, str], dict[str, Any]]) -> str:
    """Return the name of a metric that is evaluated on other models than the rest, with the scenario of those
    models."""
    scenario = next(row["scenario"] for (metric, _), row in spoken.items() if metric == name)
    return f"{name} ({scenario.replace('_', ' ')})"


def _kind(row: dict[str, Any]) -> str:
    return "count" if row["property"] in ("power", "models") else verdict(row)


def _dot(axis: "style.Axes", at: int, row: dict[str, Any]) -> None:
    """Draw one property of a metric in row ``at``: a dot with its interval, or a dash without a value."""
    if math.isnan(row["value"]):
        axis.text(
            0.5, at, "—", transform=axis.get_yaxis_transform(), va="center", ha="center", color=style.MUTED, size=6.5
        )  # fmt: skip
        return
    colour, mark, full, _ = MARKS[_kind(row)]
    style.mark(axis, at, row["value"], (row["ci_low"], row["ci_high"]), colour, mark, hollow=not full)
    if row["property"] == "models":
        axis.annotate(
            number(row["value"], 0), (row["value"], at), (5, 0), textcoords="offset points", va="center", size=6,
            color=style.MUTED, annotation_clip=False,
        )  # fmt: skip
