"""Name metrics, methods and axes for readers; say which direction of a metric is better, and how to read it."""

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from unlearning_audit.plugins import registry
from unlearning_audit.plugins.declarations import Column, Quantity

#: Names that a study gives to metrics: name → (name of the metric's module, its file or None). Set by `set_aliases`.
_aliases: dict[str, tuple[str, str | None]] = {}

#: The references, which do not unlearn: doing nothing, retraining and a second retraining.
BASELINES = ("none", "retrain", "retrain_control")


def set_aliases(aliases: Mapping[str, tuple[str, str | None]]) -> None:
    """Set the names that a study gives to metrics, so that `quantities` and `meaning` also know the quantities of its
    own metrics.

    The names that an earlier call set are no longer known.

    Parameters
    ----------
    aliases
        Name in the study → (name of the metric, its file), for metrics from a user's file, and for metrics of the
        library (file None) that the study gives another name.
    """
    _aliases.clear()
    _aliases.update(aliases)
    quantities.cache_clear()
    meaning.cache_clear()


@functools.cache
def preferred_attacks() -> tuple[str, ...]:
    """Return attacks in order of preference: if none is named, the first of them that has a row is shown.

    First come two of the sets of attacks by which Q is computed, then the classical attacks by name, each first as
    learned from unlearned shadow models, then from trained ones.
    """
    classical = registry.defining("attacks", "CLASSICAL")
    return "adaptive", "extended", *(f"{name}/{form}" for name in classical for form in ("unlearned", "trained"))


@functools.cache
def quantities() -> dict[str, Quantity]:
    """Return name → quantity for every quantity that a metric declares: a metric of the library, or one to which the
    study gives a name."""
    # None and "": a metric of the library under its own name.
    declared = [quantity for name in registry.names("metrics") for quantity in registry.quantities(name, None, "")]
    for alias, (name, file) in _aliases.items():
        declared += registry.quantities(name, file, alias)
    return {quantity.name: quantity for quantity in declared}


@functools.cache
def meaning(metric: str) -> Quantity:
    """Return the quantity called ``metric``: its label, its ideal and how to read it.

    In a declared name, a * stands for any text. This text, with spaces for underscores, then replaces the * in the
    label. If no metric declares the name, the quantity has only that name.
    """
    declared = quantities()
    if metric in declared:
        return declared[metric]
    pattern = next((name for name in declared if "*" in name and fnmatchcase(metric, name)), None)
    if pattern is None:
        return Quantity(metric)
    before, _, after = pattern.partition("*")
    text = metric.removeprefix(before).removesuffix(after).replace("_", " ")
    return replace(declared[pattern], name=metric, label=declared[pattern].label.replace("*", text))


def columns() -> list[tuple[str, Column]]:
    """Return the columns of the headline table from left to right, each as (name of its quantity, column)."""
    pairs = [(name, column) for name, quantity in quantities().items() for column in quantity.columns]
    return sorted(pairs, key=lambda pair: pair[1].place)  # by the column's place from left to right


def primary() -> list[str]:
    """Return the names of the main quantities of the systems of evaluation, in order of preference for a scenario that
    has several: the order of their columns in the headline table."""
    return list(dict.fromkeys(name for name, _ in columns() if quantities()[name].primary))


def ideal(metric: str) -> float | None:
    """Return the value of a ``metric`` that theory predicts for retrained models; None if there is no prediction."""
    value = meaning(metric).ideal
    return None if math.isnan(value) else value


def ordered(methods: Iterable[str]) -> list[str]:
    """Sort methods: none first, retrain and then retrain_control last, the others in the given order."""
    rank = {"none": -1, "retrain": 1, "retrain_control": 2}
    return sorted(methods, key=lambda name: rank.get(name, 0))


def method(name: str) -> str:
    """Return the name of a method as readers see it: "retrain (control)" for retrain_control, else without
    underscores."""
    return "retrain (control)" if name == "retrain_control" else name.replace("_", " ")


def value(text: str) -> str:
    """Return the value of a setting that a study varies as readers see it: ∞ for inf, any other value unchanged."""
    return "∞" if text == "inf" else text


def axis(name: str) -> str:
    """Return the label that readers see for a setting that a study varies, such as "privacy budget ε" for epsilon."""
    labels = {"epsilon": "privacy budget ε", "size": "samples", "alpha": "α = |F| / |R ∪ F|", "delta": "δ",
             "fraction": "share of the class", "request": "requests made"}  # fmt: skip
    return labels.get(name, name.replace("_", " "))


def setting(text: str) -> str:
    """Return the values of what a scenario varies, such as "epsilon=8;size=inf", as readers see them: "epsilon = 8,
    size = ∞"."""
    return ", ".join(part.replace("=inf", "=∞").replace("=", " = ") for part in text.split(";") if part)


def count(number: int, noun: str) -> str:
    """Return a number with its noun: "1 model", "4,000 models"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
