"""Checks across fields: combinations that are valid field by field but contradict each other."""

import functools
import json
import os
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from unlearning_audit.plugins import arguments, registry, syntax
from unlearning_audit.plugins.declarations import OFFERS, Quantity
from unlearning_audit.plugins.suggest import unknown
from unlearning_audit.stats.decide import EVERY
from unlearning_audit.stats.looks import levels
from unlearning_audit.study.choice import Plugin
from unlearning_audit.study.messages import StudyError
from unlearning_audit.study.schema import DISPLAYS, Figure, Margins, Scenario, Table, listed

#: Tables and figures that every study has.
BUILT_IN = {
    "tables": ("headline", *(name for tables, _ in DISPLAYS.values() for name in tables)),
    "figures": tuple(name for _, figures in DISPLAYS.values() for name in figures),
}

#: Forms of an attack: the shadow models from which it learns, trained, unlearned or both; or, where it learns from rows
#: of the audited model itself, which of them count as members: those it keeps (own) or all it was trained on (seen).
FORMS = ("trained", "unlearned", "both", "own", "seen")


def scenario(scenario: Scenario) -> None:
    """Raise StudyError (``joint``) if the fields of a scenario contradict each other."""
    _tuning(scenario)
    if scenario.recipe.dp is not None and scenario.model.options.get("norm") == "batch":
        raise _joint(("model", "norm"), "must not be batch with recipe.dp, which clips samples one by one; use group")
    _attacks(scenario)
    needs(scenario)
    _readings(scenario)
    _comparisons(scenario)
    _shadow_models(scenario)
    for name, method in scenario.methods.items():
        where = ("methods", name)
        recorded = "record_updates" in registry.declared("methods", method.name, method.file)
        if recorded and not scenario.recipe.record_updates:
            raise _joint(("recipe", "record_updates"), f"must be true for the method {name!r}")
        if "function" in method.options and "file" in method.options:
            _function(method, where)
    data(scenario.data, ("data",))


def data(plugin: Plugin, where: tuple[str, ...]) -> None:
    """Raise StudyError if the path of a data source does not exist, or if files there contradict the options of a
    source of the library, such as a table without the named column.

    ``where``: the path of the source's fields in the study.
    """
    path = plugin.options.get("path")
    if isinstance(path, str) and not Path(path).exists():
        advice = "give a file or folder relative to the working directory"
        raise StudyError((*where, "path"), f"{path!r} does not exist; {advice}")
    if plugin.file is None and registry.defines("data", plugin.name, None, "problem"):
        stat = Path(str(path)).stat()
        problem = _of_head(plugin.name, json.dumps(plugin.options), os.getcwd(), (stat.st_mtime_ns, stat.st_size))
        if problem is not None:
            raise StudyError((*where, problem[0]), problem[1])


@functools.cache
def _of_head(name: str, options: str, folder: str, stamp: tuple[int, int]) -> tuple[str, str] | None:
    """Return (option of a data source of the library that its files contradict, a sentence about it); None if they
    agree.

    ``options`` is JSON; ``folder`` and ``stamp`` (time and size of the file) are keys of the cache: a file that several
    variants of a scenario use is read once.
    """
    module = registry.load("data", name)
    problem: tuple[str, str] | None = module.problem(module.Options(**json.loads(options)), Path())
    return problem


def _tuning(scenario: Scenario) -> None:
    """Raise StudyError for a method that cannot be tuned in this scenario: without retrained models,
    with a protocol that its objective does not suit, or in a sequence of requests."""
    for name, method in scenario.methods.items():
        if method.tune is None:
            continue
        if "retrain" not in scenario.methods:
            raise _joint(("methods",), f"must list retrain, because {name!r} is tuned by its distance from retraining")
        if method.tune.objective == "metrics" and not registry.offers(scenario.protocol, "game"):
            kinds = f"{registry.offering('game')}, and this one is {scenario.protocol.name}"
            problem = f"needs a protocol of pairs, {kinds}; or set objective: accuracy"
            raise _joint(("methods", name, "tune"), problem)
        if scenario.protocol.options.get("requests", 1) != 1:
            raise _joint(("methods", name, "tune"), "cannot be used in a sequence of requests; set requests: 1")


def looks(planned: list[int], scenarios: Iterable[Scenario]) -> None:
    """Raise StudyError if the planned looks (numbers of pairs at which results are tested) do not increase, or if a
    scenario's number of pairs is not one of them. Without planned looks, nothing is checked."""
    try:
        levels(looks=planned) if planned else None  # only because it raises if they do not increase
    except ValueError as error:
        raise StudyError(("looks",), str(error)) from None
    for scenario in scenarios:
        pairs = scenario.protocol.options.get("pairs")  # None: a protocol without pairs
        if planned and pairs is not None and pairs not in planned:
            advice = f"which scenario {scenario.name!r} already has; change one of the two"
            raise StudyError(("looks",), f"{planned} must contain {pairs} pairs, {advice}")


def spreads(given: Iterable[str], scenarios: Iterable[Scenario]) -> None:
    """Raise StudyError if ``retrain_spread`` names a metric that no scenario computes and that has no margin."""
    names = {EVERY, *Margins.model_fields, *(quantity.name for quantity in _quantities(list(scenarios)))}
    for name in given:
        if not any(fnmatchcase(name, known) for known in names):
            raise StudyError(("retrain_spread",), unknown(name, names, f"metric {name!r}"))


def display(kind: str, name: str, wish: Table | Figure, scenarios: Iterable[Scenario]) -> None:
    """Raise StudyError if a table or figure has a reserved name, or names a scenario, axis, attack, metric or role that
    its scenarios do not have.

    ``kind``: "tables" or "figures"; ``wish``: what the study states of it.
    """
    where, scenarios = (kind, name), list(scenarios)
    names = list(dict.fromkeys(s.name for s in scenarios))
    if name in BUILT_IN[kind]:
        raise StudyError(where, f"must have another name; every study already has a {kind[:-1]} {name!r}")
    for scenario_name in wish.scenarios:
        if scenario_name not in names:
            raise StudyError((*where, "scenarios"), unknown(scenario_name, names, f"scenario {scenario_name!r}"))
    displayed = [s for s in scenarios if s.name in wish.scenarios]
    field = "columns" if kind == "tables" else "axis"
    axis, axes = getattr(wish, field), {axis for s in displayed for axis in s.axes}
    if isinstance(wish, Figure):
        _figure(wish, where, axes)
    else:
        axes.add("scenario")
    if axis is not None and axis not in axes:
        raise StudyError((*where, field), unknown(axis, axes, f"axis {axis!r} in these scenarios"))
    for metric in listed(wish.metric) if isinstance(wish, Table) else ():
        _metric(metric, (*where, "metric"), displayed)
    for attack in listed(wish.attack):
        _adversary(attack, (*where, "attack"), displayed)


# ---------------------------------------------------------------- helpers


def _figure(wish: Figure, where: tuple[str, str], axes: set[str]) -> None:
    """Raise StudyError if a figure lacks the axis that its kind needs, or sets a field that its kind ignores.

    ``wish``: the figure as the study states it; ``where``: its path in the study, ("figures", name); ``axes``: the axes
    of its scenarios. ``READS`` in the file of the kind lists what it reads: ``axis`` (an axis of ``vary``), ``attack``,
    and ``form`` (one attack with its form, not a set). ``NEEDS`` there lists what must be set.
    """
    reads = registry.declared("report/figures", wish.kind, constant_name="READS")
    for field in ("axis", "attack"):
        if getattr(wish, field) and field not in reads:
            raise _joint((*where, field), f"has no effect with the kind {wish.kind}; leave it out")
    if wish.axis is None and "axis" in registry.declared("report/figures", wish.kind):  # that is, in NEEDS
        choice = f"name one of {', '.join(sorted(axes))}" if axes else "these scenarios have no axis, see vary"
        raise StudyError((*where, "axis"), f"is missing; {choice}")
    if wish.attack and "form" in reads and "/" not in wish.attack:
        expected = "must name an attack and its shadow models, as in kde/trained"
        raise StudyError((*where, "attack"), f"{expected}, found {wish.attack!r}")


def _joint(path: tuple[str, ...], sentence: str) -> StudyError:
    """Return an error in a combination of fields, which is not attributed to the single override that set one."""
    return StudyError(path, sentence, joint=True)


def offers(protocol: Plugin) -> tuple[str, ...]:
    """Return what a protocol with these options offers to metrics and attacks."""
    several = protocol.options.get("requests", 1) != 1  # a sequence of requests is an offer that an option makes
    return (*registry.protocol(protocol.name, protocol.file).offers, *["requests"] * several)


def needs(scenario: Scenario) -> None:
    """Raise StudyError for an attack or metric that needs what nobody offers, or what the protocol does not."""
    for kind, plugins in (("attacks", scenario.attacks), ("metrics", scenario.metrics)):
        for key, plugin in plugins.items():
            if problem := unknown_need(kind, plugin.name, plugin.file):
                raise _joint((kind, key), problem)
            if missing := registry.lacking(offers(scenario.protocol), plugin.name, plugin.file, kind):
                problem = f"needs {missing[0]} ({OFFERS[missing[0]]}), which the protocol {scenario.protocol.name}"
                raise _joint((kind, key), f"{problem} does not offer")


def unknown_need(kind: str, name: str, file: str | None) -> str:
    """Return a sentence on the first of the ``NEEDS`` of an attack or metric that no protocol offers and no model can
    be asked for; "" if there is none."""
    without = registry.defining("signals", "RECORD") if kind == "attacks" else ()  # attacks do not learn from records
    signals = {*registry.names("signals")} - {*without}
    unknown = [need for need in registry.declared(kind, name, file) if need not in {*OFFERS, *signals}]
    known = f"protocols offer {', '.join(OFFERS)}; models can be asked for {', '.join(sorted(signals))}"
    return f"has NEEDS = {unknown[0]!r}; {known}" if unknown else ""


def _attacks(scenario: Scenario) -> None:
    """Raise StudyError for attacks that the scenario cannot run.

    A protocol with ``attacked`` needs attacks. One with ``own_rows`` may have some, which must report probabilities. A
    protocol with neither must have none. An attack that learns from shadow models needs at least one such model.
    """
    protocol, record = scenario.protocol, scenario.record
    attacked, own_rows = record.attacked, record.own_rows
    if attacked and not scenario.attacks:
        raise _joint(("attacks",), f"must name at least one attack for the protocol {protocol.name!r}, found none")
    if not (attacked or own_rows) and scenario.attacks:
        raise _joint(("attacks",), f"must be [] for the protocol {protocol.name!r}, which uses no attacks")
    for name, attack in scenario.attacks.items() if own_rows else ():
        if not registry.defines("attacks", attack.name, attack.file, "PROBABILITY"):
            able = ", ".join(registry.defining("attacks", "PROBABILITY"))
            reports = f"the protocol {protocol.name!r} reports probabilities"
            raise _joint(("attacks", name), f"must be {able} or another that says PROBABILITY = True; {reports}")
    attacks = scenario.attacks.items()
    learners = [key for key, a in attacks if registry.constant("attacks", a.name, a.file, "LEARNS") is not False]
    if learners and protocol.options.get("shadow_models_per_split") == 0:
        raise _joint(
            ("protocol", "shadow_models_per_split"),
            f"must be at least 1, as the attack {learners[0]!r} learns from shadow models, found 0",
        )


def _readings(scenario: Scenario) -> None:
    """Raise StudyError for an attack or metric that needs signals of language models, where the model is not one.

    A model from a user's file may be one, so it is not refused.
    """
    model, of_texts = scenario.model, registry.defining("signals", "OF_TEXTS")
    language_models = registry.defining("models", "READINGS")
    provided = of_texts if model.file or model.name in language_models else ()
    for kind, plugins in (("attacks", scenario.attacks), ("metrics", scenario.metrics)):
        for key, plugin in plugins.items():
            needs = set(registry.declared(kind, plugin.name, plugin.file)) & set(of_texts)
            if lacking := sorted(needs.difference(provided)):
                choice = ", ".join(language_models)
                problem = f"needs {lacking[0]}, which {model.name} does not provide; leave it out or choose {choice}"
                raise _joint((kind, key), problem)


def _comparisons(scenario: Scenario) -> None:
    """Raise StudyError for a metric that compares with retrained models, where the scenario does not retrain.

    Only metrics that the scenario adds to those of its protocol are checked. ``ALONE`` in a metric's file says that it
    needs no retrained models.
    """
    defaults = registry.defaults(scenario.record.offers)
    extras = {
        key: metric.name for key, metric in scenario.metrics.items() if metric.name not in defaults and not metric.file
    }
    extra = next((key for key, name in extras.items() if not registry.constant("metrics", name, None, "ALONE")), None)
    if extra is not None and "retrain" not in scenario.methods:
        raise _joint(("metrics", extra), "compares with retrained models; add retrain to the methods")


def _shadow_models(scenario: Scenario) -> None:
    """Raise StudyError if the protocol trains fewer models than a metric declares to need in its ``PROTOCOL_MINIMUM``
    (see `plugins.declarations.Protocol`)."""
    for key, metric in scenario.metrics.items():
        minima = registry.constant("metrics", metric.name, metric.file, "PROTOCOL_MINIMUM") or {}
        for option, bound in minima.items():
            number, reason = _least(bound, metric)
            value = scenario.protocol.options.get(option)
            if value is not None and value < number:
                problem = f"must be at least {number} for the metric {key!r}{reason}, found {value}"
                raise _joint(("protocol", option), problem)


def _least(declared: int | str | tuple[str, int], metric: Plugin) -> tuple[int, str]:
    """Return the minimum that one value of a metric's PROTOCOL_MINIMUM stands for, and words that explain it.

    The value is a number, the name of an option of the metric, or (name of an option, how much is added to it).
    """
    if isinstance(declared, int):
        return declared, ""
    name, more = (declared, 0) if isinstance(declared, str) else declared
    number = metric.options[name]
    return number + more, f" ({name}: {number}{f', and {more} more' if more else ''})"


def _function(method: Plugin, where: tuple[str, ...]) -> None:
    """Raise StudyError unless the user's file exists and defines the function, and the options match its parameters."""
    path, function = Path(method.options["file"]), method.options["function"]
    try:
        if not path.is_file():
            raise ValueError(registry.no_file(path))
        if function.partition(".")[0] not in syntax.defined(path):
            raise ValueError(f"{path}: a function {function} is missing; define it or name another with function")
        signature = syntax.signature(path, function)
    except ValueError as error:
        raise StudyError((*where, "file"), str(error)) from None
    if signature is not None:
        # A space of tuning names the function's options with a prefix, as in "options.lr". Only names are checked here.
        space = method.tune.space if method.tune else ()
        tuned = dict.fromkeys(name.partition(".")[2] for name in space if "." in name)
        options = {**tuned, **method.options["options"]}
        try:
            arguments.assigned(signature[0], options, method.options["give"], more=signature[1])
        except ValueError as error:
            raise StudyError((*where,), f"{path}: {function}: {error}") from None


def _metric(metric: str, where: tuple[str, ...], displayed: list[Scenario]) -> None:
    """Raise StudyError if no metric of the ``displayed`` scenarios computes a quantity that matches the pattern
    ``metric``."""
    names = {quantity.name for quantity in _quantities(displayed)}
    if not any(fnmatchcase(metric, name) for name in names):
        raise StudyError(where, unknown(metric, names, f"metric {metric!r} in these scenarios"))


def _adversary(attack: str, where: tuple[str, ...], displayed: list[Scenario]) -> None:
    """Raise StudyError for an attack of a table or figure that no displayed scenario has.

    ``attack`` is "name/form". Without a form it names a set of attacks for which a metric has numbers; "" is accepted.
    ``where``: the path of the field in the study.
    """
    name, _, form = attack.partition("/")
    attacks = {name for s in displayed for name in s.attacks}
    if name in attacks and form not in FORMS:
        raise StudyError(where, f"must be {name}/ and one of {', '.join(FORMS)}, found {attack!r}")
    # Names in the column attack of metrics' rows that are no attacks of the study, such as those of sets.
    attack_names = {attack_name for quantity in _quantities(displayed) for attack_name in quantity.attacks}
    if attack and name not in attacks and attack not in attack_names:
        choice = [*attack_names, *(f"{name}/{form}" for name in attacks for form in FORMS)]
        raise StudyError(where, unknown(attack, choice, f"attack {attack!r} in these scenarios"))


def _quantities(displayed: list[Scenario]) -> list[Quantity]:
    """Return every quantity that the metrics of these scenarios compute."""
    return [
        quantity
        for s in displayed
        for key, metric in s.metrics.items()
        for quantity in registry.quantities(metric.name, metric.file, key)
    ]
