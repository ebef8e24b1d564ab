"""Draw ROC curves of RULI's two tests: unlearned or never seen (privacy), unlearned or retrained (efficacy)."""

from typing import Any

from unlearning_audit.report import lookup, naming, style
from unlearning_audit.report.lookup import Cell, Numbers

#: Test → its question, "unlearned, or …".
TESTS = {"privacy_roc": "never seen?", "efficacy_roc": "retrained?"}


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw the ROC curves of RULI's two tests, which tell outputs after unlearning from those of samples never seen, or
    of retrained models: a panel for each test and method, with a curve and its interval for each scenario and
    setting."""
    places, methods = lookup.places(numbers.cases), lookup.methods(numbers.cases)
    across = len(methods) if len(methods) <= 5 else 4
    down = -(-len(methods) // across)
    figure, axes = style.panels(2 * down * across, height=1.6, columns=across, width=style.WHOLE)
    colours = dict(zip(places, style.PALETTE * (1 + len(places) // len(style.PALETTE)), strict=False))
    found = []
    for number, (metric, question) in enumerate(TESTS.items()):
        panels = axes[number * down * across : (number + 1) * down * across]
        curves = {
            (where, name): points(numbers, lookup.at(numbers.cases, where, name), metric)
            for where in places
            for name in methods
        }
        told = [any(cell.low > fpr for fpr, cell in line) for (_, name), line in curves.items()
                if line and name not in naming.BASELINES]  # fmt: skip
        found += [f"{sum(told)} of {len(told)} from {question.rstrip('?')}"] if told else []
        low = min((fpr for line in curves.values() for fpr, _ in line), default=0.01) / 1.4
        for axis, name in zip(panels, methods, strict=False):
            for where in places:
                _line(axis, curves[where, name], colours[where], low)
            _furnish(axis, low, naming.method(name), any(curves[where, name] for where in places))
        for spare in panels[len(methods) :]:
            spare.set_visible(False)
        for axis in panels[::across]:
            axis.set_ylabel("TPR")
        for axis in panels[max(0, len(methods) - across) : len(methods)]:
            axis.set_xlabel("FPR")
        style.note(panels[0], f"unlearned, or {question}", (0, 1), (0, 16), style.INK, size=8, annotation_clip=False)
    for i, where in enumerate(places):
        shift = -2, 3 + 8 * (len(places) - 1 - i)
        style.note(axes[0], lookup.label(where), (1, 0), shift, colours[where], ha="right", annotation_clip=False)
    figure.set_label(f"Outputs after unlearning differ: {', '.join(found)}" if found else "")
    return figure


def points(numbers: Numbers, case: dict[str, Any] | None, metric: str) -> list[tuple[float, Cell]]:
    """Return (FPR, TPR) of the test ``metric`` over all target samples of a case, by increasing FPR. A TPR without a
    value is left out; without a case the list is empty."""
    if case is None:
        return []
    rows = numbers.of_metric(case, metric)
    rates = {row.rate for row in rows if row.rate is not None and len(row.place) == 1}
    cells = {rate: numbers.cell(case, metric, "ruli", rate=rate) for rate in rates}
    return [(fpr, cells[fpr]) for fpr in sorted(cells) if not cells[fpr].empty]


def _line(axis: "style.Axes", line: list[tuple[float, Cell]], colour: str, low: float) -> None:
    """Draw one ROC curve with the band of its interval; values below ``low``, the edge of the panel, are drawn at it.
    ``line``: (FPR, TPR); if empty, nothing is drawn."""
    if not line:
        return
    fpr = [x for x, _ in line]
    axis.fill_between(
        fpr, [max(c.low, low) for _, c in line], [max(c.high, low) for _, c in line], color=colour, alpha=0.13, lw=0
    )
    axis.plot(fpr, [max(c.value, low) for _, c in line], color=colour, lw=1.2, marker="o", ms=2, mew=0)


def _furnish(axis: "style.Axes", low: float, title: str, labelled: bool) -> None:
    """Set the axes of a panel from ``low`` to 1, with the line of chance; say so if the panel has no curve."""
    axis.set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1.1))
    axis.plot([low, 1], [low, 1], color=style.MUTED, lw=0.8, ls=(0, (1, 1.5)), zorder=0)
    axis.set_title(title, pad=3)
    axis.grid(which="major")
    axis.set_axisbelow(True)
    if not labelled:
        axis.text(
            0.5, 0.5, "no curve", transform=axis.transAxes, ha="center", color=style.MUTED, size=6.5, style="italic"
        )
