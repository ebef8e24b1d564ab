"""RULI's attack on single samples against one attack for all of them: accuracy, and TPR at few false alarms."""

from unlearning_audit.display import lookup, style
from unlearning_audit.display.figures.quality import frame
from unlearning_audit.display.lookup import Numbers

#: Quantities that are shown, and their chance level.
PANELS = (("privacy_accuracy", "accuracy", 0.5), ("privacy_tpr_at_1pct_fpr", "TPR at 1 % FPR", 0.01))
ATTACKS = {"ruli": ("for each sample", "o", style.FORGET), "population": ("for all", "s", style.HELDOUT)}


def draw(numbers: Numbers, order: dict):
    """Two panels for each scenario: a line for each method with a mark and its 95 % interval for each attack."""
    places, methods = lookup.places(numbers.cases), lookup.methods(numbers.cases)
    figure, axes = style.panels(2 * len(places), height=0.85 + 0.26 * len(methods), columns=2, width=style.WHOLE)
    for number, where in enumerate(places):
        for axis, (metric, label, chance) in zip(axes[2 * number : 2 * number + 2], PANELS, strict=True):
            for row, name in enumerate(methods):
                case = lookup.at(numbers.cases, where, name)
                marks = [_mark(axis, numbers, case, metric, attack, row) for attack in ATTACKS] if case else []
                if not any(marks):
                    failed = case is not None and numbers.failure(case)
                    style.absent(axis, row, "failed" if failed else "no number")
            title = lookup.label(where) if len(places) > 1 else ""
            frame(axis, methods, title, label, chance, 6)
            axis.set_xlim(left=min(axis.get_xlim()[0], chance - 0.02))
    _key(axes[0])
    return figure


def _mark(axis, numbers: Numbers, case: dict, metric: str, attack: str, row: int) -> bool:
    """Draw one attack's number above or below the method's line; False if there is none."""
    cell = numbers.cell(case, metric, attack)
    if cell.empty:
        return False
    _, marker, colour = ATTACKS[attack]
    height = row - 0.13 if attack == "ruli" else row + 0.13
    if cell.bounded:
        axis.plot([cell.low, cell.high], [height] * 2, color=colour, lw=1.4, solid_capstyle="round")
    face = style.PAPER if case["method"] == "retrain_control" or cell.flag else colour
    axis.plot(cell.value, height, marker, color=colour, mfc=face, ms=4, mew=1.1, clip_on=False)
    return True


def _key(axis) -> None:
    """Name both attacks in their colours, to the right of the title."""
    for i, (name, marker, colour) in enumerate(ATTACKS.values()):
        sign = {"o": "●", "s": "■"}[marker]
        axis.annotate(
            f"{sign} one attack {name}", (1, 1), (0, 14 - 8 * i), xycoords="axes fraction",
            textcoords="offset points", ha="right", va="center", size=6.5, color=colour,
        )  # fmt: skip
