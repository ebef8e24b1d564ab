"""Draw the probability of membership of forgotten samples over all models: figures 3 and 7 of Becker & Liebig
(2022)."""

from typing import Any

from unlearning_audit.report.figures import Numbers, _densities, style

#: Fields of a figure in a study that this kind reads.
READS = ("axis", "attack")


def draw(numbers: Numbers, order: dict[str, Any]) -> "style.Figure":
    """Draw the distribution over models of the mean probability of membership of forgotten samples: a panel for each
    method with a row for each value of the setting that the figure varies (its field ``axis``). If it varies none, draw
    a panel for each scenario with a row for each method."""
    return _densities.draw(numbers, order, "mean probability of membership", "attack_probability")
