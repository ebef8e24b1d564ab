"""Draw efficacy and its upper bound over all models: figures 1, 2, 5 and 6 of Becker & Liebig (2022)."""

from typing import Any

from unlearning_audit.report.figures import Numbers, _densities, style

#: Fields of a figure in a study that this kind reads.
READS = ("axis",)


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw the distributions over models of efficacy, filled, and of the upper bound of efficacy, dashed: a panel for
    each method with a row for each value of the setting that the figure varies (its field ``axis``). If it varies none,
    draw a panel for each scenario with a row for each method."""
    return _densities.draw(numbers, order, "efficacy", "efficacy", "efficacy_upper_bound")
