"""Checks across fields: combinations that are valid field by field but contradict each other."""

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
    """Raise StudyError if the fields of a scenario contradict each other or files that they name."""
    _check_tuning(scenario)
    if scenario.recipe.dp is not None and scenario.model.options.get("norm") == "batch":
        raise _joint(("model", "norm"), "must not be batch with recipe.dp, which clips samples one by one; use group")
    _check_attacks(scenario)
    needs(scenario)
    _check_signals_of_texts(scenario)
    _check_comparisons(scenario)
    _check_minima(scenario)
    for name, method in scenario.methods.items():
        if "record_updates" in method.declared() and not scenario.recipe.record_updates:
            raise _joint(("recipe", "record_updates"), f"must be true for the method {name!r}")
        if "function" in method.options and "file" in method.options:
            _check_function(method, ("methods", name))
    data(scenario.data, ("data",))


def data(plugin: Plugin, where: tuple[str, ...]) -> None:
    """Raise StudyError if the path of a data source does not exist, or if files there contradict the options of a
    source of the library, such as a table without the named column.

    Parameters
    ----------
    where
        The path of the source's fields in the study.
    """
    path = plugin.options.get("path")
    if isinstance(path, str) and not Path(path).exists():
        advice = "give a file or folder relative to the working directory"
        raise StudyError((*where, "path"), f"{path!r} does not exist; {advice}")
    if plugin.file is None and plugin.defines("problem"):
        problem = plugin.module.problem(plugin.schema(**plugin.options), Path())
        if problem is not None:
            option, sentence = problem
            raise StudyError((*where, option), sentence)


def _check_tuning(scenario: Scenario) -> None:
    """Raise StudyError for a method that cannot be tuned in this scenario: without retrained models,
    with a protocol that its objective does not suit, or in a sequence of requests."""
    for name, method in scenario.methods.items():
        if method.tune is None:
            continue
        if "retrain" not in scenario.methods:
            raise _joint(("methods",), f"must list retrain, because {name!r} is tuned by its distance from retraining")
        if method.tune.objective == "metrics" and "game" not in scenario.record.offers:
            kinds = f"{registry.offering('game')}, and this one is {scenario.protocol.name}"
            problem = f"needs a protocol of pairs, {kinds}; or set objective: accuracy"
            raise _joint(("methods", name, "tune"), problem)
        if scenario.protocol.options.get("requests", 1) != 1:
            raise _joint(("methods", name, "tune"), "cannot be used in a sequence of requests; set requests: 1")


def looks(planned: list[int], scenarios: Iterable[Scenario]) -> None:
    """Raise StudyError if the planned looks (numbers of pairs at which results are tested) do not increase, or if a
    scenario's number of pairs is not one of them. Without planned looks, nothing is checked."""
    if not planned:
        return
    try:
        levels(looks=planned)  # only because it raises if they do not increase
    except ValueError as error:
        raise StudyError(("looks",), str(error)) from None
    for scenario in scenarios:
        pairs = scenario.protocol.options.get("pairs")  # None: a protocol without pairs
        if pairs is not None and pairs not in planned:
            advice = f"which scenario {scenario.name!r} already has; change one of the two"
            raise StudyError(("looks",), f"{planned} must contain {pairs} pairs, {advice}")


def spreads(given: Iterable[str], scenarios: Iterable[Scenario]) -> None:
    """Raise StudyError if ``given``, the names in ``retrain_spread``, has a metric that no scenario computes and that
    has no margin."""
    names = {EVERY, *Margins.model_fields, *(quantity.name for quantity in _quantities(list(scenarios)))}
    for name in given:
        if not any(fnmatchcase(name, known) for known in names):
            raise StudyError(("retrain_spread",), unknown(name, names, f"metric {name!r}"))


def display(kind: str, name: str, stated: Table | Figure, scenarios: Iterable[Scenario]) -> None:
    """Raise StudyError if a table or figure has the name of one that every study has, if a figure does not suit its
    kind (`_check_figure`), or if the table or figure names a scenario, axis, metric or attack that does not exist.

    Parameters
    ----------
    kind
        "tables" or "figures".
    stated
        The fields that the study states.
    scenarios
        The scenarios of the study.
    """
    where, scenarios = (kind, name), list(scenarios)
    names = list(dict.fromkeys(s.name for s in scenarios))
    if name in BUILT_IN[kind]:
        raise StudyError(where, f"must have another name; every study already has a {kind[:-1]} {name!r}")
    for scenario_name in stated.scenarios:
        if scenario_name not in names:
            raise StudyError((*where, "scenarios"), unknown(scenario_name, names, f"scenario {scenario_name!r}"))
    displayed = [s for s in scenarios if s.name in stated.scenarios]
    axes = {axis for s in displayed for axis in s.axes}
    if isinstance(stated, Figure):
        _check_figure(stated, where, axes)
        field, chosen, choice = "axis", stated.axis, axes
    else:
        field, chosen, choice = "columns", stated.columns, {*axes, "scenario"}
    if chosen is not None and chosen not in choice:
        raise StudyError((*where, field), unknown(chosen, choice, f"axis {chosen!r} in these scenarios"))
    if isinstance(stated, Table):
        names_of_quantities = {quantity.name for quantity in _quantities(displayed)}
        for metric in listed(stated.metric):  # a pattern, which some quantity of these scenarios must match
            if not any(fnmatchcase(metric, known) for known in names_of_quantities):
                problem = unknown(metric, names_of_quantities, f"metric {metric!r} in these scenarios")
                raise StudyError((*where, "metric"), problem)
    for attack in listed(stated.attack):
        _check_attack(attack, (*where, "attack"), displayed)


# ---------------------------------------------------------------- helpers


def _check_figure(figure: Figure, where: tuple[str, str], axes: set[str]) -> None:
    """Raise StudyError if a figure sets a field that its kind ignores, lacks the axis that its kind needs, or names an
    attack without its form although its kind needs one.

    Two constants in the file of the kind say this. ``READS`` lists what the kind reads: ``axis`` (an axis of ``vary``),
    ``attack``, and ``form`` (one attack with its form, not a set). ``NEEDS`` lists what must be set.

    Parameters
    ----------
    figure
        The fields of the figure in the study.
    where
        The path of the figure in the study, ("figures", name).
    axes
        The axes of the figure's scenarios.
    """
    reads = registry.declared("report/figures", figure.kind, constant_name="READS")
    needs = registry.declared("report/figures", figure.kind, constant_name="NEEDS")
    for field in ("axis", "attack"):
        if getattr(figure, field) and field not in reads:
            raise _joint((*where, field), f"has no effect with the kind {figure.kind}; leave it out")
    if figure.axis is None and "axis" in needs:
        choice = f"name one of {', '.join(sorted(axes))}" if axes else "these scenarios have no axis, see vary"
        raise StudyError((*where, "axis"), f"is missing; {choice}")
    if figure.attack and "form" in reads and "/" not in figure.attack:
        expected = "must name an attack and its shadow models, as in kde/trained"
        raise StudyError((*where, "attack"), f"{expected}, found {figure.attack!r}")


def _joint(path: tuple[str, ...], sentence: str) -> StudyError:
    """Return an error in a combination of fields, which is not attributed to the single override that set one."""
    return StudyError(path, sentence, joint=True)


def offers(protocol: Plugin) -> tuple[str, ...]:
    """Return what a protocol with these options offers to metrics and attacks: what its file declares and, with more
    than one request, "requests"."""
    declared: tuple[str, ...] = protocol.module.PROTOCOL.offers
    return declared if protocol.options.get("requests", 1) == 1 else (*declared, "requests")


def needs(scenario: Scenario) -> None:
    """Raise StudyError for an attack or metric that needs what nobody offers, or what the protocol does not."""
    for key, plugin in scenario.scorers:
        if problem := unknown_need(plugin):
            raise _joint((plugin.kind, key), problem)
        if missing := registry.lacking(offers(scenario.protocol), plugin.name, plugin.file, plugin.kind):
            problem = f"needs {missing[0]} ({OFFERS[missing[0]]}), which the protocol {scenario.protocol.name}"
            raise _joint((plugin.kind, key), f"{problem} does not offer")


def unknown_need(plugin: Plugin) -> str:
    """Return a sentence on the first of the ``NEEDS`` of an attack or metric that no protocol offers and that is no
    signal which a model can be asked for; "" if an offer or a signal meets every need."""
    # Signals that define RECORD are for metrics only: attacks do not learn from records.
    records = registry.defining("signals", "RECORD") if plugin.kind == "attacks" else ()
    signals = {*registry.names("signals")} - {*records}
    known = {*OFFERS, *(signal.name for signal in plugin.signals)} - {*records}
    unknown = [need for need in plugin.declared() if need not in known]
    choice = f"protocols offer {', '.join(OFFERS)}; models can be asked for {', '.join(sorted(signals))}"
    own = f", or by a file {unknown[0]}.py beside it" if unknown and plugin.file else ""
    return f"has NEEDS = {unknown[0]!r}; {choice}{own}" if unknown else ""


def _check_attacks(scenario: Scenario) -> None:
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
    for name, attack in scenario.attacks.items():
        if own_rows and not attack.defines("PROBABILITY"):
            able = ", ".join(registry.defining("attacks", "PROBABILITY"))
            reports = f"the protocol {protocol.name!r} reports probabilities"
            raise _joint(("attacks", name), f"must be {able} or another that says PROBABILITY = True; {reports}")
    learners = [key for key, attack in scenario.attacks.items() if attack.constant("LEARNS") is not False]
    if learners and protocol.options.get("shadow_models_per_split") == 0:
        problem = f"must be at least 1, as the attack {learners[0]!r} learns from shadow models, found 0"
        raise _joint(("protocol", "shadow_models_per_split"), problem)


def _check_signals_of_texts(scenario: Scenario) -> None:
    """Raise StudyError for an attack or metric that needs signals of language models, where the model is not one.

    A model from a user's file may be one, so it is not refused.
    """
    model, of_texts = scenario.model, registry.defining("signals", "OF_TEXTS")
    language_models = registry.defining("models", "READINGS")
    if model.file or model.name in language_models:
        return
    for key, plugin in scenario.scorers:
        if lacking := sorted({*plugin.declared()} & {*of_texts}):
            choice = ", ".join(language_models)
            problem = f"needs {lacking[0]}, which {model.name} does not provide; leave it out or choose {choice}"
            raise _joint((plugin.kind, key), problem)


def _check_comparisons(scenario: Scenario) -> None:
    """Raise StudyError for a metric that compares with retrained models, where the scenario does not retrain.

    Only metrics of the library that the scenario adds to those of its protocol are checked. ``ALONE`` in a metric's
    file says that it needs no retrained models.
    """
    if "retrain" in scenario.methods:
        return
    defaults = registry.defaults(scenario.record.offers)
    for key, metric in scenario.metrics.items():
        if metric.name not in defaults and not metric.file and not metric.constant("ALONE"):
            raise _joint(("metrics", key), "compares with retrained models; add retrain to the methods")


def _check_minima(scenario: Scenario) -> None:
    """Raise StudyError if an option of the protocol is below the minimum that a metric declares for it in
    ``PROTOCOL_MINIMUM``, such as a number of shadow models. Options that the protocol does not have are skipped."""
    for key, metric in scenario.metrics.items():
        minima = metric.constant("PROTOCOL_MINIMUM") or {}
        for option, declared in minima.items():
            minimum, reason = _minimum(declared, metric)
            value = scenario.protocol.options.get(option)
            if value is not None and value < minimum:
                problem = f"must be at least {minimum} for the metric {key!r}{reason}, found {value}"
                raise _joint(("protocol", option), problem)


def _minimum(declared: int | str | tuple[str, int], metric: Plugin) -> tuple[int, str]:
    """Return the minimum that one value of a metric's PROTOCOL_MINIMUM stands for, and words that explain it.

    ``declared``: a number, the name of an option of the metric, or (name of an option, how much is added to it).
    """
    if isinstance(declared, int):
        return declared, ""
    name, added = (declared, 0) if isinstance(declared, str) else declared
    number, more = metric.options[name], f", and {added} more" if added else ""
    return number + added, f" ({name}: {number}{more})"


def _check_function(method: Plugin, where: tuple[str, ...]) -> None:
    """Raise StudyError unless the user's file exists and defines the function, and the options match its parameters,
    as far as these can be known without running the file."""
    path, function = Path(method.options["file"]), method.options["function"]
    try:
        if not path.is_file():
            raise ValueError(registry.no_file(path))
        if function.partition(".")[0] not in syntax.defined(path):  # of "Class.method", the class
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
            parameters, takes_more = signature
            arguments.assigned(parameters, options, method.options["give"], more=takes_more)
        except ValueError as error:
            raise StudyError((*where,), f"{path}: {function}: {error}") from None


def _check_attack(attack: str, where: tuple[str, ...], displayed: list[Scenario]) -> None:
    """Raise StudyError for an attack of a table or figure that no displayed scenario has.

    Parameters
    ----------
    attack
        "name/form" of an attack of the scenarios; the name of a set of attacks for which a metric has numbers; or "",
        which is accepted.
    where
        The path of the field in the study.
    """
    name, _, form = attack.partition("/")
    attacks = {key for s in displayed for key in s.attacks}
    if name in attacks and form not in FORMS:
        raise StudyError(where, f"must be {name}/ and one of {', '.join(FORMS)}, found {attack!r}")
    sets = {set_name for quantity in _quantities(displayed) for set_name in quantity.attacks}
    if attack and name not in attacks and attack not in sets:
        choice = [*sets, *(f"{known}/{its_form}" for known in attacks for its_form in FORMS)]
        raise StudyError(where, unknown(attack, choice, f"attack {attack!r} in these scenarios"))


def _quantities(displayed: list[Scenario]) -> list[Quantity]:
    """Return every quantity that the metrics of these scenarios compute, under its name in the study."""
    metrics = [(key, metric) for s in displayed for key, metric in s.metrics.items()]
    return [quantity for key, metric in metrics for quantity in registry.quantities(metric.name, metric.file, key)]
