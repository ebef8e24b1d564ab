"""Labels of metrics, methods and axes, which direction is better, and how numbers are read."""

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from unlearning_audit.plugins import registry
from unlearning_audit.plugins.declarations import Column, Quantity

#: What a study calls a metric otherwise than the library: name → (name in the library, its own file), as `know` got it.
_aliases: dict[str, tuple[str, str | None]] = {}

BASELINES = ("none", "retrain", "retrain_control")


def know(aliases: Mapping[str, tuple[str, str | None]]) -> None:
    """Read the quantities of a study's own metrics beside those of the library: name → (name in the library, file)."""
    _aliases.clear()
    _aliases.update(aliases)
    quantities.cache_clear()
    meaning.cache_clear()


@functools.cache
def attacks() -> tuple[str, ...]:
    """Attacks to show where none is named, in order of preference: the adaptive set, then one classical attack."""
    classical = registry.defining("attacks", "CLASSICAL")
    return "adaptive", "extended", *(f"{name}/{form}" for name in classical for form in ("unlearned", "trained"))


@functools.cache
def quantities() -> dict[str, Quantity]:
    """Every quantity that a metric declares, by its name."""
    metrics = [
        *((name, None, "") for name in registry.names("metrics")),
        *((*source, key) for key, source in _aliases.items()),
    ]
    return {quantity.name: quantity for metric in metrics for quantity in registry.quantities(*metric)}


@functools.cache
def meaning(metric: str) -> Quantity:
    """The quantity of that name, or one with this name and nothing more.

    Of a quantity whose name has a *, what stands in its place in ``metric`` stands in its label, too.
    """
    records = quantities()
    if metric in records:
        return records[metric]
    pattern = next((name for name in records if "*" in name and fnmatchcase(metric, name)), None)
    if pattern is None:
        return Quantity(metric)
    before, _, after = pattern.partition("*")
    text = metric.removeprefix(before).removesuffix(after).replace("_", " ")
    return replace(records[pattern], name=metric, label=records[pattern].label.replace("*", text))


def columns() -> list[tuple[str, Column]]:
    """The columns of the headline from the left, each with the name of its quantity."""
    pairs = [(name, column) for name, quantity in quantities().items() for column in quantity.columns]
    return sorted(pairs, key=lambda pair: pair[1].place)


def primary() -> list[str]:
    """Quantities that speak for their system in sentences and controls, as they stand in the headline: of several that
    a scenario has, the first."""
    return list(dict.fromkeys(name for name, _ in columns() if quantities()[name].primary))


def ideal(metric: str) -> float | None:
    """What the quantity must read on retrained models; None if theory does not say."""
    value = meaning(metric).ideal
    return None if math.isnan(value) else value


def ordered(methods: Iterable[str]) -> list[str]:
    """None first, the retrained last, the others as they were."""
    rank = {"none": -1, "retrain": 1, "retrain_control": 2}
    return sorted(methods, key=lambda name: rank.get(name, 0))


def method(name: str) -> str:
    """A method's name for people."""
    return "retrain (control)" if name == "retrain_control" else name.replace("_", " ")


def value(text: str) -> str:
    """The value of an axis for people."""
    return "∞" if text == "inf" else text


def axis(name: str) -> str:
    """The name of an axis for people."""
    labels = {"epsilon": "privacy budget ε", "size": "samples", "alpha": "α = |F| / |R ∪ F|", "delta": "δ",
             "fraction": "share of the class", "request": "requests made"}  # fmt: skip
    return labels.get(name, name.replace("_", " "))


def field(name: str) -> str:
    """A field of a row for people."""
    return {"rate": "FPR"}.get(name, name)


def setting(text: str) -> str:
    """An axis setting such as "epsilon=8;size=500" for people."""
    return ", ".join(part.replace("=inf", "=∞").replace("=", " = ") for part in text.split(";") if part)


def count(number: int, noun: str) -> str:
    """ "1 model", "4,000 models"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
