"""Draw a map of Kendall's τ between the rankings of methods in every two scenarios and settings."""

import math
from typing import Any

from unlearning_audit.report import lookup, naming, style, words
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.tables import cells, rankings
from unlearning_audit.report.tables.typeset import number

#: Fields of a figure in a study that this kind reads.
READS = ("axis", "scenario", "attack")

#: Characters of a name that fit below a column.
SHORT = 12


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw a square with its τ for every two scenarios and settings: blue if they rank methods alike, red if in
    reverse.

    Methods are ranked by the main metric of each scenario's protocol.
    """
    wish, places = order["figure"], lookup.places(numbers.cases)
    ranked = []
    for where in places:
        case = next(candidate for candidate in numbers.cases if lookup.place(candidate) == where)
        ranked.append(rankings.of(numbers, where, numbers.primary(case)[0], wish["attack"]))
    axis_of = wish["axis"] or "scenario"
    names = [cells.place_name(numbers, axis_of, where) for where in places]
    if axis_of == "scenario" and len({scenario for scenario, _ in places}) == 1:
        names = [naming.setting(setting) or name for name, (_, setting) in zip(names, places, strict=True)]
    # Long names are written at the rows only, with numbers that the columns repeat.
    long = max(map(len, names)) > SHORT
    heads = [str(i) for i in range(1, len(names) + 1)] if long else names
    side = max(1.8, 0.32 * len(places) + 0.9)
    figure, (axis,) = style.panels(1, height=side, width=side + (0.055 * max(map(len, names)) if long else 0.5))
    agreements = [[1.0 if i == j else rankings.agreement(a, b).value for j, b in enumerate(ranked)]
             for i, a in enumerate(ranked)]  # fmt: skip
    figure.set_label(words.rankings([tau for i, line in enumerate(agreements) for tau in line[:i]]))
    axis.imshow(agreements, cmap="RdBu", vmin=-1, vmax=1)
    for i, line in enumerate(agreements):
        for j, value in enumerate(line):
            if i != j:
                text = "—" if math.isnan(value) else number(value, 2)
                axis.text(
                    j, i, text, ha="center", va="center", size=5, color=style.PAPER if abs(value) > 0.6 else style.INK
                )
    turned: dict[str, Any] = {} if long else {"rotation": 45, "ha": "right"}
    axis.set_xticks(range(len(heads)), heads, **turned)
    axis.set_yticks(
        range(len(names)), [f"{name}   {i}" for name, i in zip(names, heads, strict=True)] if long else names
    )
    axis.tick_params(length=0)
    if axis_of != "scenario":
        axis.set_title(naming.axis(axis_of), size=7)
    return figure
