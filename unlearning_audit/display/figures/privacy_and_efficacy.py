"""Both questions of RULI: does it still differ from what was never seen, and from what a retrained model says?"""

from unlearning_audit.display import lookup, style
from unlearning_audit.display.figures.quality import frame
from unlearning_audit.display.lookup import Numbers

#: Quantities that are shown, as the end of a metric's name, and their chance level.
PANELS = (("accuracy", "accuracy", 0.5), ("tpr_at_1pct_fpr", "TPR at 1 % FPR", 0.01))

#: (question, attack) → its name, mark and colour, from the top of a line to its bottom.
ATTACKS = {
    ("efficacy", "ruli"): ("retrained or not, each sample", "D", style.INK),
    ("privacy", "ruli"): ("seen or not, each sample", "o", style.FORGET),
    ("privacy", "u_lira"): ("seen or not, U-LiRA", "^", style.MUTED),
    ("privacy", "population"): ("seen or not, all samples alike", "s", style.HELDOUT),
}


def draw(numbers: Numbers, order: dict):
    """Two panels for each scenario: a line for each method, and a mark with its 95 % interval for each attack."""
    places, methods = lookup.places(numbers.cases), lookup.methods(numbers.cases)
    figure, axes = style.panels(2 * len(places), height=0.95 + 0.36 * len(methods), columns=2, width=style.WHOLE)
    for number, where in enumerate(places):
        for axis, (metric, label, chance) in zip(axes[2 * number : 2 * number + 2], PANELS, strict=True):
            for row, name in enumerate(methods):
                case = lookup.at(numbers.cases, where, name)
                if not (case and marks(axis, numbers, case, metric, row)):
                    failed = case is not None and numbers.failure(case)
                    style.absent(axis, row, "failed" if failed else "no number")
            frame(axis, methods, lookup.label(where) if len(places) > 1 else "", label, chance, 6)
            axis.set_xlim(left=min(axis.get_xlim()[0], chance - 0.02))
    _key(axes[0])
    return figure


def marks(axis, numbers: Numbers, case: dict, metric: str, row: int) -> int:
    """Draw what the attacks read of one method on its line; how many numbers there were."""
    count = 0
    for place, ((question, attack), (_, marker, colour)) in enumerate(ATTACKS.items()):
        cell = numbers.cell(case, f"{question}_{metric}", attack)
        if cell.empty:
            continue
        height = row + 0.18 * (place - 1.5)
        if cell.bounded:
            axis.plot([cell.low, cell.high], [height] * 2, color=colour, lw=1.2, solid_capstyle="round")
        face = style.PAPER if case["method"] == "retrain_control" or cell.flag else colour
        axis.plot(cell.value, height, marker, color=colour, mfc=face, ms=3.5, mew=1.0, clip_on=False)
        count += 1
    return count


def _key(axis) -> None:
    """Name the attacks in their colours, above the first panel on its right."""
    signs = {"D": "◆", "o": "●", "^": "▲", "s": "■"}
    for line, (name, marker, colour) in enumerate(ATTACKS.values()):
        axis.annotate(
            f"{signs[marker]} {name}", (1, 1), (0, 30 - 8 * line), xycoords="axes fraction",
            textcoords="offset points", ha="right", va="center", size=6.5, color=colour,
        )  # fmt: skip
