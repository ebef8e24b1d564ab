"""Probability of membership of forgotten samples over all models: figures 3 and 7 of Becker & Liebig (2022)."""

from typing import Any

from unlearning_audit.report import style
from unlearning_audit.report.figures import _densities
from unlearning_audit.report.lookup import Numbers

#: Fields of its entry in a study that it reads.
READS = ("axis", "attack")

#: Quantities that it draws.
SHOWS = ("attack_probability",)


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Ridges as `_densities.draw` sets them, of the mean probability of membership."""
    return _densities.draw(numbers, order, "mean probability of membership", *SHOWS)
