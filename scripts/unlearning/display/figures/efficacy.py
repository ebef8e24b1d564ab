"""Efficacy and its upper bound over all models: figures 1, 2, 5 and 6 of Becker & Liebig (2022)."""

from unlearning.display import ridges
from unlearning.display.pivot import Numbers
from unlearning.display.ridges import Series


def draw(numbers: Numbers, order: dict):
    """Ridges as `ridges.draw` sets them: filled for efficacy, dashed for its upper bound."""
    return ridges.draw(numbers, order, (Series("efficacy"), Series("efficacy_upper_bound", dashed=True)), "efficacy")
