"""Metrics called as a job calls them, from the settings of a study."""

from types import ModuleType

from unlearning_audit.randomness.keyed import generator


def with_settings(case, settings: dict):
    """The case, with what a study says once."""
    if "adaptive_set" in settings:
        case.sets = {"paper": settings.get("paper_set", []), "adaptive": settings["adaptive_set"]}
    if "bootstrap" in settings:
        case.draws = settings["bootstrap"]
    if case is not None:
        case.seed = settings.get("seed", 0)
        if "design" in settings:
            case.design = settings["design"]
    return case


def prepared(metric: ModuleType, case, settings: dict):
    """The options and the generator of a metric."""
    name = metric.__name__.rpartition(".")[2]
    with_settings(case, settings)
    options = settings.get("metrics", {}).get(name, {})
    return metric.Options(**options), generator(settings.get("seed", 0), name)


def rows(metric: ModuleType, case, settings: dict):
    options, rng = prepared(metric, case, settings)
    return metric.rows(case, options, rng)


def parts(metric: ModuleType, case, settings: dict):
    options, _ = prepared(metric, case, settings)
    return metric.effects(case, options)
