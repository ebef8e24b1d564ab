"""Draw ROC curves of RULI's two tests: unlearned or never seen (privacy), unlearned or retrained (efficacy)."""

import itertools
from typing import Any

from unlearning_audit.report.figures import Cell, Numbers, lookup, naming, style

#: Test → its question, "unlearned, or …".
TESTS = {"privacy_roc": "never seen?", "efficacy_roc": "retrained?"}


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw the ROC curves of RULI's two tests: a panel for each test and method, with a curve and its interval for each
    scenario and setting.

    One test tells outputs after unlearning from those for samples never seen, the other from those of retrained models.
    The figure's label counts, for each test, the methods' curves whose interval lies above chance at some FPR; doing
    nothing and retraining are left out.
    """
    places, methods = lookup.places(numbers.cases), lookup.methods(numbers.cases)
    figure, blocks = style.blocks(len(TESTS), len(methods), height=1.6, width=style.WHOLE)
    colours = dict(zip(places, itertools.cycle(style.PALETTE), strict=False))
    counts = []
    for panels, (metric, question) in zip(blocks, TESTS.items(), strict=True):
        curves = {
            (where, name): points(numbers, case, metric)
            for where in places
            for name, case in numbers.by_method(where).items()
        }
        differs = [
            any(cell.low > fpr for fpr, cell in curve)
            for (_, name), curve in curves.items()
            if curve and name not in naming.BASELINES
        ]
        if differs:
            # "Outputs after unlearning differ: 3 of 6 from never seen"
            counts.append(f"{sum(differs)} of {len(differs)} from {question.rstrip('?')}")
        # The lower end of both directions, below the smallest FPR by a factor of 1.4, so that its point is not cut.
        edge = min((fpr for curve in curves.values() for fpr, _ in curve), default=0.01) / 1.4
        for axis, name in zip(panels, methods, strict=True):
            for where in places:
                if curves[where, name]:
                    fpr, cells = zip(*curves[where, name], strict=True)
                    # Values below the edge of the panel are drawn at the edge.
                    lows, highs = [max(cell.low, edge) for cell in cells], [max(cell.high, edge) for cell in cells]
                    tpr = [max(cell.value, edge) for cell in cells]
                    axis.fill_between(fpr, lows, highs, color=colours[where], alpha=0.13, lw=0)
                    axis.plot(fpr, tpr, color=colours[where], lw=1.2, marker="o", ms=2, mew=0)
            style.rate_axes(axis, edge)
            axis.set_title(naming.method(name))
            if not any(curves[where, name] for where in places):
                style.nothing(axis, "no curve")
        # 16 points above the top left corner of the first panel.
        style.note(panels[0], f"unlearned, or {question}", (0, 1), (0, 16), style.INK, size=8, annotation_clip=False)
    figure.supxlabel("FPR", fontsize=7.5)
    figure.supylabel("TPR", fontsize=7.5)
    style.legend(figure, [{"label": lookup.label(where), "color": colours[where]} for where in places])
    figure.set_label(f"Outputs after unlearning differ: {', '.join(counts)}" if counts else "")
    return figure


def points(numbers: Numbers, case: dict[str, Any] | None, metric: str) -> list[tuple[float, Cell]]:
    """Return (FPR, TPR) of the test ``metric`` over all target samples of a case, by increasing FPR. A TPR without a
    value is left out; without a case the list is empty. Rows about some of the samples are not read: their place has
    more fields than the FPR."""
    if case is None:
        return []
    rows = numbers.of_metric(case, metric)
    rates = {row.rate for row in rows if row.rate is not None and len(row.place) == 1}
    cells = {rate: numbers.cell(case, metric, "ruli", rate=rate) for rate in rates}
    return [(fpr, cells[fpr]) for fpr in sorted(cells) if not cells[fpr].empty]
