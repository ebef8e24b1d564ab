"""Draw Q of each pair of splits: how much Q depends on the draw of the splits."""

from typing import Any

import numpy as np

from unlearning_audit.report.figures import Numbers, lookup, missing, style, words
from unlearning_audit.report.figures.quality import frame
from unlearning_audit.report.tables.typeset import number

#: Fields of a figure in a study that this kind reads.
READS = ("attack",)

#: Title of the figure in a study that lists no figures.
TITLE = "Unlearning Quality of every pair of splits"


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw how Q varies over pairs of splits: for each method a dot for each pair, a bar for Q of all pairs together,
    and at the right the standard deviation over pairs.

    Within a row, the first pair is the topmost dot and the last pair the lowest, so that a pair can be followed from
    row to row. A method without pairs has a reason in its row. The figure's label compares the standard deviation over
    pairs with the one over methods.
    """
    attack, places, methods = order["figure"]["attack"], lookup.places(numbers.cases), lookup.methods(numbers.cases)
    figure, axes = style.panels(len(places), height=0.75 + 0.24 * len(methods))
    colours = style.colours(order["methods"])
    for axis, where in zip(axes, places, strict=True):
        for row, (name, case) in enumerate(numbers.by_method(where).items()):
            cells = numbers.pairs(case, "q", attack) if case else []
            whole = numbers.cell(case, "q", attack) if case else missing("")
            if case is None or not cells:
                style.absent(axis, row, whole.flag if whole.flag in words.LOST else "no pairs")
                continue
            values = [cell.value for cell in cells]
            # Evenly over half of the row's height.
            heights = [row + 0.5 * ((i + 0.5) / len(values) - 0.5) for i in range(len(values))]
            axis.plot(values, heights, "o", color=colours[name], ms=3, mew=0, alpha=0.85, clip_on=False)
            axis.plot([whole.value] * 2, [row - 0.36, row + 0.36], color=colours[name], lw=1.2, clip_on=False)
            spread = numbers.cell(case, "q_sd", attack)
            if not spread.empty:
                axis.annotate(
                    number(spread.value, places=3), (1.02, row), xycoords=axis.get_yaxis_transform(),
                    va="center", size=6.5, color=style.MUTED, annotation_clip=False,
                )  # fmt: skip
        axis.annotate("sd", (1.02, -0.75), xycoords=axis.get_yaxis_transform(), size=6.5, color=style.MUTED)
        frame(axis, methods, lookup.label(where), "Q of each pair", ideal=1.0, nbins=3 if len(axes) > 1 else 6)
    # Standard deviations of Q: over pairs for each case, and over methods for each scenario and setting.
    over_pairs = [numbers.cell(case, "q_sd", attack).value for case in numbers.cases]
    by_place = [[numbers.cell(case, "q", attack).value for case in numbers.by_method(where).values() if case]
                for where in places]  # fmt: skip
    over_methods = [np.nanstd(of_place, ddof=1) for of_place in by_place if np.isfinite(of_place).sum() > 1]
    if over_methods and np.isfinite(over_pairs).any():
        medians = np.nanmedian(over_pairs), np.median(over_methods)
        figure.set_label("Q varies by {:.2g} over pairs and by {:.2g} over methods (sd)".format(*medians))
    low = min(left for left, _ in (axis.get_xlim() for axis in axes))
    for axis in axes:
        axis.set_xlim(low, 1.02)  # Q is at most 1
    return figure
