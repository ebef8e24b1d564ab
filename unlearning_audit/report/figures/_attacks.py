"""Draw the results of several attacks: a line for each method, and on it a mark with its interval for each attack."""

from typing import Any

from unlearning_audit.report.figures import Numbers, lookup, naming, style
from unlearning_audit.report.figures.quality import frame

#: Quantities of the panels: end of the metric's name, label, value of chance.
PANELS = (("accuracy", "accuracy", 0.5), ("tpr_at_1pct_fpr", "TPR at 1 % FPR", 0.01))

#: (question, attack) → its name, mark and colour, from the top of a row to its bottom.
Attacks = dict[tuple[str, str], tuple[str, str, str]]


def draw(numbers: Numbers, attacks: Attacks) -> "style.Figure":
    """Draw two panels for each scenario, the accuracy and the TPR of attacks, with a line at chance, a row for each
    method and a mark for each attack.

    A method without a number has a reason in its row. The figure's label counts, for each of the first two attacks, the
    methods for which the whole interval of the accuracy lies above chance.

    Parameters
    ----------
    attacks
        (question, attack) → (name, marker, colour); a question is the start of a metric's name, such as "privacy".
    """
    places, methods = lookup.places(numbers.cases), lookup.methods(numbers.cases)
    height = 0.7 + (0.16 + 0.05 * len(attacks)) * len(methods)
    figure, axes = style.panels(2 * len(places), height=height, columns=2, width=style.WHOLE)
    for number, where in enumerate(places):
        for axis, (metric, label, chance) in zip(axes[2 * number : 2 * number + 2], PANELS, strict=True):
            for row, case in enumerate(numbers.by_method(where).values()):
                if not (case and marks(axis, numbers, case, metric, row, attacks)):
                    style.absent(axis, row, numbers.lost(case) or "no number")
            frame(axis, methods, lookup.label(where) if len(places) > 1 else "", label, chance, nbins=6)
            # The panel begins at its present left limit, or a little below chance.
            axis.set_xlim(left=min(axis.get_xlim()[0], chance - 0.02))
    style.legend(figure, [{"label": name, "marker": mark, "color": colour} for name, mark, colour in attacks.values()])
    compared, counts = [case for case in numbers.cases if case["method"] not in naming.BASELINES], []
    for (question, attack), (name, *_) in list(attacks.items())[:2]:
        cells = [numbers.cell(case, f"{question}_accuracy", attack) for case in compared]
        if any(cell.bounded for cell in cells):
            counts.append(f"“{name}” {sum(cell.low > 0.5 for cell in cells)} of {len(cells)}")  # .5 is chance
    figure.set_label(f"Above chance: {', '.join(counts)}" if counts else "")
    return figure


def marks(axis: "style.Axes", numbers: Numbers, case: dict[str, Any], metric: str, row: int, attacks: Attacks) -> int:
    """Draw the ``metric`` of each attack on one method, with its interval, in row ``row`` of a panel; return the number
    of marks.

    Attacks without a number are skipped. The marks of different attacks lie one below the other. Marks of the control
    and of methods that changed nothing are hollow.

    Parameters
    ----------
    metric
        The end of the metric's name, such as "accuracy".
    attacks
        (question, attack) → (name, marker, colour); a question is the start of a metric's name, such as "privacy".
    """
    count = 0
    for i, ((question, attack), (_, marker, colour)) in enumerate(attacks.items()):
        cell = numbers.cell(case, f"{question}_{metric}", attack)
        if not cell.empty:
            height = row + 0.72 * ((i + 0.5) / len(attacks) - 0.5)  # evenly over 0.72 of the row
            hollow = case["method"] == "retrain_control" or bool(cell.flag)
            style.mark(axis, height, cell.value, (cell.low, cell.high), colour, marker, hollow=hollow)
            count += 1
    return count
