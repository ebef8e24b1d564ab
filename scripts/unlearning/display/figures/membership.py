"""What an attack believes of the forgotten samples, over all models: figures 3 and 7 of Becker & Liebig (2022)."""

from unlearning.display import ridges
from unlearning.display.pivot import Numbers
from unlearning.display.ridges import Series


def draw(numbers: Numbers, order: dict):
    """Ridges as `ridges.draw` sets them, of the mean probability of membership."""
    return ridges.draw(numbers, order, (Series("attack_probability"),), "mean probability of membership")
