"""Draw checkpoints over time: scores of attacks and readings of each, beside retrained models and those before
unlearning."""

from typing import Any

from unlearning_audit.report.figures import Numbers, lookup, naming, style

#: The most panels of a scenario; attacks come first.
MOST = 6

#: Method that is drawn as a horizontal line → style of the line.
LEVELS = {"retrain": "--", "none": ":"}


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw how methods change along the steps of unlearning: a panel for each attack, and one for each value that
    result files give of forgotten samples.

    Each method is a line, with its 95 % interval if every step has an interval. Horizontal lines show retrained models
    (dashed, with their interval) and models before unlearning (dotted). The figure's label counts the lines that end
    within the interval of retrained models.
    """
    places = {where: trajectories(numbers, where) for where in lookup.places(numbers.cases)}
    panels = [(where, metric, role) for where, lines in places.items()
              for metric, role in _metrics(numbers, [case for line in lines.values() for _, case in line])]  # fmt: skip
    figure, axes = style.panels(max(len(panels), 1), height=2.0, columns=3)
    names = list(dict.fromkeys(name for lines in places.values() for name in lines))
    palette = style.colours(names)
    with_legend = set()  # the first panel of each scenario and setting has a legend
    reached: list[bool] = []  # for each line, whether it ends within the interval of retrained models
    for axis, (where, metric, role) in zip(axes, panels, strict=False):  # without panels, one axis stays empty
        lines = places[where]
        for name, line in lines.items():
            points = [(step, numbers.cell(case, metric, role=role)) for step, case in line]
            points = [(step, cell) for step, cell in points if not cell.empty]
            steps, cells = [step for step, _ in points], [cell for _, cell in points]
            if cells and all(cell.bounded for cell in cells):
                low, high = [cell.low for cell in cells], [cell.high for cell in cells]
                axis.fill_between(steps, low, high, color=palette[name], alpha=0.15, lw=0)
            values = [cell.value for cell in cells]
            axis.plot(steps, values, color=palette[name], marker="o", ms=3, label=naming.method(name), clip_on=False)
        levels = {method: numbers.by_method(where).get(method) for method in LEVELS}
        for method, case in levels.items():
            if case and not (cell := numbers.cell(case, metric, role=role)).empty:
                axis.axhline(cell.value, color=style.INK, lw=0.8, ls=LEVELS[method], zorder=0)
                if method == "retrain" and cell.bounded:
                    lasts = [case for *_, (_, case) in lines.values()]  # the case at the last step of each line
                    ends = [numbers.cell(last, metric, role=role) for last in lasts]
                    reached += [cell.low <= end.value <= cell.high for end in ends if not end.empty]
                    axis.axhspan(cell.low, cell.high, color=style.INK, alpha=0.08, lw=0, zorder=0)
        title = metric.partition("_")[2].replace("_", " ")  # without "auc_" or "reading_"
        title = f"AUC of {title}" if metric.startswith("auc_") else title
        axis.set(title=title if len(places) == 1 else f"{lookup.label(where)}, {title}", xlabel="step of unlearning")
        axis.grid(axis="y")
        if len(names) > 1 and where not in with_legend:
            axis.legend()
            with_legend.add(where)
    if reached:
        figure.set_label(f"{sum(reached)} of {len(reached)} lines end within retraining's interval")
    return figure


def trajectories(numbers: Numbers, where: tuple[str, str]) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    """Return, for one scenario and setting, name of a method without its step → [(step, case)] by increasing step.

    A checkpoint is a case of its own, called "method_step10", with its step in the metric unlearning_step. Methods
    without this metric are left out.
    """
    lines: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for case in [case for case in numbers.cases if lookup.place(case) == where]:
        for row in numbers.of_metric(case, "unlearning_step"):
            step = round(row.value)
            lines.setdefault(case["method"].removesuffix(f"_step{step}"), []).append((step, case))
    return {name: sorted(line, key=lambda point: point[0]) for name, line in lines.items()}  # by step


def _metrics(numbers: Numbers, cases: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return (metric, role of its samples) for each panel, at most `MOST` panels: first the AUCs of attacks, which have
    the role "", then the values that result files give of forgotten samples (metrics "reading_…")."""
    rows = [row for case in cases for row in numbers.rows_of(case)]
    attacks = [(row.metric, "") for row in rows if row.metric.startswith("auc_")]
    readings = [(row.metric, row.role) for row in rows if row.metric.startswith("reading_") and row.role == "forget"]
    return list(dict.fromkeys([*attacks, *readings]))[:MOST]
