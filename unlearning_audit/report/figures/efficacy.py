"""Efficacy and its upper bound over all models: figures 1, 2, 5 and 6 of Becker & Liebig (2022)."""

from typing import Any

from unlearning_audit.report import style
from unlearning_audit.report.figures import _densities
from unlearning_audit.report.lookup import Numbers

#: Fields of its entry in a study that it reads.
READS = ("axis",)

#: Quantities that it draws.
SHOWS = ("efficacy", "efficacy_upper_bound")


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Ridges as `_densities.draw` sets them: filled for efficacy, dashed for its upper bound."""
    return _densities.draw(numbers, order, "efficacy", *SHOWS)
