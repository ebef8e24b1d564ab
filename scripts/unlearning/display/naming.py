"""Labels of metrics, methods and axes, which direction is better, and how numbers are read."""

import functools
import math
from collections.abc import Mapping
from fnmatch import fnmatchcase

from unlearning.plugins import registry
from unlearning.plugins.declarations import Column, Quantity

#: Metrics of the study's own: name → file, as `know` was told.
_own: dict[str, str] = {}

#: Attacks to show where none is named, in order of preference: the paper's set, then one classical attack.
ATTACKS = ("paper", "extended", "confidence/unlearned", "confidence/trained", "ruli")

BASELINES = ("none", "retrain", "retrain_control")


def know(own: Mapping[str, str]) -> None:
    """Read the quantities of a study's own metrics, name → file, beside those of the library."""
    _own.clear()
    _own.update(own)
    quantities.cache_clear()


@functools.cache
def quantities() -> dict[str, Quantity]:
    """Every quantity that a metric declares, by its name."""
    files = [*((name, None) for name in registry.names("metrics")), *_own.items()]
    return {quantity.name: quantity for name, file in files for quantity in registry.quantities(name, file)}


def meaning(metric: str) -> Quantity:
    """The quantity of that name, or one with this name and nothing more."""
    known = quantities()
    pattern = next((name for name in known if "*" in name and fnmatchcase(metric, name)), None)
    return known.get(metric) or (Quantity(metric) if pattern is None else known[pattern])


def columns() -> list[tuple[str, Column]]:
    """The columns of the headline from the left, each with the name of its quantity."""
    found = [(name, column) for name, quantity in quantities().items() for column in quantity.columns]
    return sorted(found, key=lambda one: one[1].place)


def primary() -> list[str]:
    """Quantities that speak for their system in sentences and controls, as they stand in the headline: of several that
    a scenario has, the first."""
    return list(dict.fromkeys(name for name, _ in columns() if quantities()[name].primary))


def ideal(metric: str) -> float | None:
    """What the quantity must read on retrained models; None if theory does not say."""
    found = meaning(metric).ideal
    return None if math.isnan(found) else found


def method(name: str) -> str:
    """A method's name for people."""
    return "retrain (control)" if name == "retrain_control" else name.replace("_", " ")


def value(text: str) -> str:
    """The value of an axis for people."""
    return "∞" if text == "inf" else text


def axis(name: str) -> str:
    """The name of an axis for people."""
    known = {"epsilon": "privacy budget ε", "size": "samples", "alpha": "α = |F| / |R ∪ F|", "delta": "δ",
             "fraction": "share of the class", "request": "requests made"}  # fmt: skip
    return known.get(name, name.replace("_", " "))


def setting(text: str) -> str:
    """An axis setting such as "epsilon=8;size=500" for people."""
    return ", ".join(part.replace("=inf", "=∞").replace("=", " = ") for part in text.split(";") if part)
