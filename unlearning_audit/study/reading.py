"""Read a study: check it field by field and across fields, and spell out every scenario."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from unlearning_audit.evaluation import headers
from unlearning_audit.plugins import registry, suggest
from unlearning_audit.study import checks, choice, configfile, expand, messages, selecting, sequences
from unlearning_audit.study.choice import Plugin, Tune
from unlearning_audit.study.configfile import load as load
from unlearning_audit.study.messages import StudyError, validated
from unlearning_audit.study.schema import USES, DataChoice, Figure, Scenario, ScenarioFile, Study, StudyFile


def read(config: dict[str, Any], origin: str = "config.yaml", changes: dict[str, Any] | None = None) -> Study:
    """Check the content of a study's file, ``config``, and return the study with all scenarios expanded: one for each
    point of its axes and each request of a sequence.

    At the end, only the scenarios that the study selects by its field ``only`` are kept.

    Raises StudyError with one sentence: the file's name, the field's path, what is wrong and what is allowed.

    Parameters
    ----------
    origin
        The file's name, for messages.
    changes
        Fields that the command line sets.
    """
    changes = configfile.typed(dict(changes or {}))
    try:
        file = validated(StudyFile, messages.plain(configfile.update(config, changes)))
        scenarios = tuple(
            step
            for name, fields in file.scenarios.items()
            for variant in expand.variants(name, file.defaults, fields or {})
            for step in sequences.steps(_scenario(variant))
        )
        selecting.check(scenarios)
        checks.looks(file.looks, scenarios)
        checks.spreads(file.retrain_spread, scenarios)
        figures = file.figures if "figures" in file.model_fields_set else _figures(scenarios)
        for kind, displays in (("tables", file.tables), ("figures", figures)):
            for name, display in displays.items():
                checks.display(kind, name, display, scenarios)
        # Among how many scenarios the 5 % of wrong verdicts are divided.
        tests = len(scenarios) if file.family == "study" else 1
        # Everything has been checked: the study is built without a second validation.
        whole = Study.model_construct(**{**dict(file), "scenarios": scenarios, "tests": tests, "figures": figures})
        return select(whole, file.only)
    except StudyError as error:
        end = " (given by --config)" if error.path and messages.contains(changes, error.path) else ""
        raise StudyError((), f"{origin}: {error}{end}") from error


def select(study: Study, only: Sequence[str]) -> Study:
    """Return the part of a study with the scenarios, protocols or systems that ``only`` names, which are added to the
    study's name; the whole study, unchanged, if ``only`` is empty.

    If a named scenario selects its samples by the models of another one, the other scenario is kept too. Tables and
    figures that show a dropped scenario are dropped. Raises StudyError for a name that the study does not have.
    """
    if not only:
        return study
    scenarios = study.scenarios
    # Of each scenario, the names by which it can be selected.
    names = [{scenario.name, scenario.protocol.name, scenario.record.system or scenario.name} for scenario in scenarios]
    allowed = sorted(set().union(*names))
    for name in only:
        if name not in allowed:
            raise StudyError(("only",), suggest.unknown(name, allowed, f"scenario, protocol or system {name!r}"))
    selected = [s for s, names_of_s in zip(scenarios, names, strict=True) if names_of_s & set(only)]
    sources = {s.protocol.options.get("select_from") for s in selected}
    subset = tuple(s for s in scenarios if s in selected or s.name in sources)
    remaining = {scenario.name for scenario in subset}
    tables = {name: table for name, table in study.tables.items() if remaining.issuperset(table.scenarios)}
    figures = {name: figure for name, figure in study.figures.items() if remaining.issuperset(figure.scenarios)}
    # Names of studies have no hyphen, so a part of this study cannot have the name of another study.
    name = "-".join([study.name, *only])
    return study.model_copy(update={"study": name, "scenarios": subset, "tables": tables, "figures": figures})


def _figures(scenarios: Sequence[Scenario]) -> dict[str, Figure]:
    """Return kind → figure for a study that lists no figures: each kind that a protocol of its scenarios declares,
    showing the scenarios of such protocols. Scenarios without attacks are left out."""
    # Kind → names of its scenarios, as the keys of a dict: a name occurs once for all settings of a scenario's axes.
    names_of: dict[str, dict[str, None]] = {}
    for scenario in scenarios:
        if scenario.attacks:
            for kind in scenario.record.figures:
                names_of.setdefault(kind, {})[scenario.name] = None
    titles = {kind: registry.constant("report/figures", kind, file=None, identifier="TITLE") for kind in names_of}
    return {kind: Figure(kind=kind, title=titles[kind], scenarios=list(names)) for kind, names in names_of.items()}


# ---------------------------------------------------------------- scenarios


def _scenario(variant: expand.Variant) -> Scenario:
    """Check the fields of one variant and return the scenario with its plug-ins. Raises StudyError with the path of the
    field in the file: in the defaults, in the scenario or in its ``vary``."""
    try:
        if _has_imported_models(variant.fields):
            return _imported(variant)
        fields = validated(ScenarioFile, variant.fields, also=["vary"])
        scenario = Scenario(
            name=variant.name,
            setting=variant.setting,
            axes=variant.axes,
            data=choice.choose("data", fields.data, "data", beside=USES),
            use=validated(DataChoice, {name: fields.data[name] for name in USES if name in fields.data}, "data"),
            model=choice.choose("models", fields.model, "model"),
            recipe=fields.recipe,
            protocol=choice.choose("protocols", fields.protocol, "protocol"),
            methods=_with_control(_tuned(choice.several("methods", fields.methods), fields.tune), fields.controls),
            attacks=choice.several("attacks", fields.attacks),
            metrics=_metrics(fields),
        )
        checks.scenario(scenario)
        sequences.check(scenario)
    except StudyError as error:
        raise variant.blame(error) from None
    return scenario


def _has_imported_models(fields: dict[str, Any]) -> bool:
    """Return whether a scenario's models were made outside the workflow, so that nothing is loaded, trained or
    unlearned. Its protocol then offers "imported"."""
    protocol = fields.get("protocol")
    name = protocol.get("name") if isinstance(protocol, dict) else None
    return name in registry.names("protocols") and "imported" in registry.protocol(name).offers


def _imported(variant: expand.Variant) -> Scenario:
    """Return a scenario of imported models: its methods are folders, and it has no data, model or recipe of its own.

    ``variant``: the scenario's fields at one setting. Raises StudyError for fields that have no effect, and for files
    that do not fit each other.
    """
    without_effect: dict[str, dict[str, Any]] = {"data": {}, "model": {}, "recipe": {}}
    for field in without_effect:
        # The first layer, the defaults, is for other scenarios; the others hold fields of this one and of its axes.
        if any(field in layer for _, layer in variant.layers[1:]):
            protocol = variant.fields["protocol"]["name"]
            raise StudyError((field,), f"has no effect with the protocol {protocol}; leave it out")
    fields = validated(ScenarioFile, {**variant.fields, **without_effect}, also=["vary"])
    for name, options in fields.methods.items():
        if options:
            why = f"must have no options with the protocol {fields.protocol['name']}, whose logits already exist"
            raise StudyError(("methods", name), why)
    protocol = choice.choose("protocols", fields.protocol, "protocol")
    module = protocol.module
    options = module.Options(**protocol.options)
    try:
        names = module.methods(options, list(fields.methods))
        populations = [population for name in names for population in module.populations(options, name, names).values()]
        for population in populations:
            headers.check(population.files)
        # The numbers of classes are compared with that of the first population, which messages name: an audited one.
        target_first = sorted(populations, key=lambda population: population.kind != "target")
        headers.same_classes(population.files["logits"] for population in target_first if "logits" in population.files)
    except ValueError as error:
        raise StudyError(("protocol", "path"), str(error)) from None
    # Checkpoints are read by the data and the model in the protocol's options, so these must be valid choices.
    if any(file.startswith("checkpoint_") for population in populations for file in population.files):
        checks.data(choice.choose("data", options.data, "protocol", "data"), ("protocol", "data"))
        if options.model.get("name") not in (None, *registry.defining("models", "READS_FOLDERS")):
            choice.choose("models", options.model, "protocol", "model")
    data, model = (Plugin(kind, protocol.name) for kind in ("data", "models"))  # which are not known
    scenario = Scenario(
        variant.name, variant.setting, variant.axes, data=data, use=DataChoice(), model=model,
        recipe=fields.recipe, protocol=protocol, methods={name: Plugin("methods", name) for name in names},
        attacks=choice.several("attacks", fields.attacks), metrics=_metrics(fields),
    )  # fmt: skip
    checks.needs(scenario)
    return scenario


def _tuned(methods: dict[str, Plugin], tune: Tune | None) -> dict[str, Plugin]:
    """Return the methods with their tuning. For each tuned method, ``NAME_published`` is added: the method at the
    study's own setting.

    ``tune``: the tuning of methods whose file declares a space and that have no ``tune`` of their own; None for no such
    tuning. Raises StudyError if a method is called ``NAME_published`` already.
    """
    audited = {}
    for name, method in methods.items():
        if tune and method.tune is None and choice.declared_space(method):
            method = choice.tuned(method, tune, "methods", name)
        audited[name] = method
        if method.tune:
            published = f"{name}_published"
            if published in methods:
                problem = "is made by the study, because the method is tuned; leave it out"
                raise StudyError(("methods", published), problem)
            audited[published] = replace(method, tune=None)
    return audited


def _with_control(methods: dict[str, Plugin], controls: bool) -> dict[str, Plugin]:
    """Return the methods with ``retrain_control``, a second, independent population of retrained models; without it if
    the study does not retrain or sets controls: false. Raises StudyError if the name is taken."""
    if "retrain" not in methods or not controls:
        return methods
    if "retrain_control" in methods:
        advice = "use another name or controls: false"
        raise StudyError(("methods", "retrain_control"), f"is made by the study itself; {advice}")
    retrain = methods["retrain"]
    # Another draw of all random numbers, the initial weights included, makes the population independent.
    options = {**retrain.options, "draw": retrain.options["draw"] + 1, "same_start": False}
    return {**methods, "retrain_control": replace(retrain, options=options)}


def _metrics(fields: ScenarioFile) -> dict[str, Plugin]:
    """Return name → metric for all metrics of a scenario: the library's for what the protocol offers, and those that
    the scenario names."""
    defaults = registry.defaults(checks.offers(choice.choose("protocols", fields.protocol, "protocol")))
    computed = dict.fromkeys([*defaults, *fields.metrics])
    return choice.several("metrics", {name: fields.metrics.get(name) for name in computed})
