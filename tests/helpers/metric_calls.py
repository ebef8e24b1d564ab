"""Metrics called as a job calls them, from the settings of a study."""

from types import ModuleType

from unlearning_audit.plugins import registry
from unlearning_audit.randomness.keyed import generator


def with_settings(evaluation, settings: dict):
    """The case, with what a study says once."""
    if "adaptive_set" in settings:
        evaluation.sets = {"paper": settings.get("paper_set", []), "adaptive": settings["adaptive_set"]}
    if "bootstrap" in settings:
        evaluation.draws = settings["bootstrap"]
    if evaluation is not None:
        evaluation.seed = settings.get("seed", 0)
        if "design" in settings:
            evaluation.design = settings["design"]
    return evaluation


def prepared(metric: ModuleType, evaluation, settings: dict):
    """The options and the generator of a metric."""
    name = metric.__name__.rpartition(".")[2]
    with_settings(evaluation, settings)
    options = settings.get("metrics", {}).get(name, {})
    return registry.options("metrics", name)(**options), generator(settings.get("seed", 0), name)


def rows(metric: ModuleType, evaluation, settings: dict):
    return registry.call("metrics", metric, "rows", evaluation, *prepared(metric, evaluation, settings))


def parts(metric: ModuleType, evaluation, settings: dict):
    options, _ = prepared(metric, evaluation, settings)
    return registry.call("metrics", metric, "effects", evaluation, options)
