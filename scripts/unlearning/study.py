"""What may be configured: the schema of a study, and the only place that knows it.

A study is a YAML file. ``defaults`` holds what its scenarios share; each entry of ``scenarios`` overrides
some of it; ``vary`` multiplies a scenario along an axis. Everything is checked before anything runs, and
what is wrong is said in one sentence that starts with the field's path.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator

from unlearning import choice, coherence, configfile, expand, faults, plugins, selecting
from unlearning.choice import Plugin, validated
from unlearning.configfile import load  # noqa: F401 (a study starts here)
from unlearning.faults import StudyError
from unlearning.protocols import external
from unlearning.recipe import Recipe
from unlearning.settings import Settings

Name = Annotated[str, StringConstraints(pattern=faults.NAME, max_length=40)]
Metric = Annotated[str, StringConstraints(pattern=faults.METRIC, max_length=40)]

#: The adversaries of Tu, Hu & Ma 2024; Q over these is the paper's Q.
PAPER_SET = ["correctness", "confidence", "entropy", "modified_entropy", "shadow"]

#: Fields of a data source that say where it lies or how it comes, not what it is.
PLACES = ("data_dir", "download", "path", "file")

#: Folders of results that belong to all studies.
STAGES = ("import", "data", "splits", "train", "selection", "unlearn", "attack", "metrics")

#: Kinds of figures, a file each.
KINDS = plugins.names("display/figures")


class DataChoice(Settings):
    """How the samples of a source are used (see `unlearning.data.prepare`); its own options stand beside these."""

    size: int | float | None = Field(None, gt=0)
    per_class: int | None = Field(None, ge=1)
    test_size: int | float | None = Field(None, gt=0)
    label_noise: float = Field(0.0, ge=0, lt=1)
    label_noise_seed: int = Field(0, ge=0)
    label_noise_kind: Literal["any", "other"] = "any"
    greyscale: bool | Literal["interleaved"] = False

    @field_validator("size", "test_size")
    @classmethod
    def _fraction(cls, value: int | float | None) -> int | float | None:
        if isinstance(value, float) and value > 1:
            raise ValueError("must be a whole number of samples or, with a dot, a fraction of them up to 1.0")
        return value


USES = tuple(DataChoice.model_fields)


class Table(Settings):
    """One table: ``metric`` of every method (rows) along ``columns`` (an axis of ``vary``, or scenario).

    ``attack`` is an attack as "name/form", or a set of them for Q (paper, extended); empty = the paper's set, or
    one classical attack. ``setting`` picks among rows of one metric, such as "role=test" or "fpr=0.01". Of each of
    the three a list may be given: a column for each combination that a scenario has. With the ``layout`` long, methods
    stand one below the other, with a line for each value of ``columns``, and standard deviations over models, where a
    metric has them, in the place of intervals.
    """

    title: str
    metric: Metric | Annotated[list[Metric], Field(min_length=1)]
    scenarios: list[Name] = Field(min_length=1)
    columns: Name = "scenario"
    layout: Literal["wide", "long"] = "wide"
    attack: str | Annotated[list[str], Field(min_length=1)] = ""
    setting: str | Annotated[list[str], Field(min_length=1)] = ""
    footer: list[Literal["accuracy", "lower_bound"]] = Field(default_factory=list)
    published: Annotated[str, StringConstraints(pattern=r"^\d{3}/\w+$")] | None = Field(
        None, description="paper and table of resources/published, such as 000/1"
    )


class Figure(Settings):
    """One figure: its ``kind``, the scenarios it shows, and for lines the axis along which they run.

    ``attack`` as for tables; a figure of kind roc shows each method's strongest attack if none is named.
    """

    kind: Literal[*KINDS]
    title: str
    scenarios: list[Name] = Field(min_length=1)
    axis: Name | None = None
    attack: str = ""


class StudyFile(Settings):
    """The top level of a study's file."""

    study: Name
    seed: int = Field(0, ge=0)
    batch: int = Field(4, ge=1, description="blocks of models per job")
    bootstrap: int = Field(1000, ge=100)
    only: list[Name] = Field(default_factory=list, description="scenarios, protocols or systems; empty: all")
    defaults: dict[str, Any] = Field(default_factory=dict)
    scenarios: dict[Name, dict[str, Any] | None] = Field(min_length=1)
    tables: dict[Name, Table] = Field(default_factory=dict)
    figures: dict[Name, Figure] = Field(default_factory=dict)

    @field_validator("study")
    @classmethod
    def _own_folder(cls, value: str) -> str:
        if value in STAGES:
            raise ValueError(f"must not be one of {', '.join(STAGES)}, whose folders hold what studies share")
        return value


class ScenarioFile(Settings):
    """The fields of one scenario, after the defaults are filled in."""

    data: dict[str, Any]
    model: dict[str, Any]
    recipe: Recipe = Recipe()
    protocol: dict[str, Any]
    methods: dict[Name, dict[str, Any] | None] = Field(min_length=1)
    attacks: dict[Name, dict[str, Any] | None] = Field(default_factory=dict)
    metrics: dict[Name, dict[str, Any]] = Field(default_factory=dict)
    controls: bool = True


@dataclass(frozen=True)
class Scenario:
    """One fully specified case: who trains what on which data, what is unlearned how, and what attacks it."""

    name: str
    setting: str
    axes: dict[str, str]
    data: Plugin
    use: DataChoice
    model: Plugin
    recipe: Recipe
    protocol: Plugin
    methods: dict[str, Plugin]
    attacks: dict[str, Plugin]
    metrics: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Study:
    """A validated study: its scenarios spelled out, and what to show of them."""

    name: str
    seed: int
    batch: int
    bootstrap: int
    scenarios: tuple[Scenario, ...]
    tables: dict[str, Table]
    figures: dict[str, Figure]


def read(config: dict[str, Any], origin: str = "config.yaml", given: dict[str, Any] | None = None) -> Study:
    """Validate a study. ``origin`` is the file's name, for messages; ``given`` is what the command line adds.

    Raises StudyError with one sentence: the file's name, the field's path, what is wrong and what is allowed.
    """
    given = configfile.typed(dict(given or {}))
    try:
        top = validated(StudyFile, faults.plain(configfile.update(config, given)))
        _check_layer(top.defaults, "defaults")
        for name, own in top.scenarios.items():
            _check_layer(own or {}, "scenarios", name)
        scenarios = tuple(
            _scenario(variant)
            for name, own in top.scenarios.items()
            for variant in expand.variants(name, top.defaults, own or {})
        )
        coherence.scenarios(scenarios)
        selecting.check(scenarios)
        for kind, displays in (("tables", top.tables), ("figures", top.figures)):
            for name, display in displays.items():
                coherence.display(kind, name, display, scenarios)
        whole = Study(top.study, top.seed, top.batch, top.bootstrap, scenarios, top.tables, top.figures)
        return select(whole, top.only)
    except StudyError as error:
        end = " (given by --config)" if faults.contains(given, error.path) else ""
        raise StudyError((), f"{origin}: {error}{end}") from None


def select(study: Study, only: Sequence[str]) -> Study:
    """The part of a study that consists of the scenarios, protocols or systems named in ``only`` (all if it is empty).

    Scenarios that these select samples from stay, and the tables and figures that speak of nothing else. Raises
    StudyError for a name that the study does not know.
    """
    scenarios = study.scenarios
    names = [{scenario.name, scenario.protocol.name, system(scenario)} for scenario in scenarios]
    for name in only:
        if name not in (known := set().union(*names)):
            raise StudyError(("only",), faults.unknown(name, sorted(known), f"scenario, protocol or system {name!r}"))
    chosen = [s for s, own in zip(scenarios, names, strict=True) if not only or own & set(only)]
    sources = {s.protocol.options.get("select_from") for s in chosen}
    kept = tuple(s for s in scenarios if s in chosen or s.name in sources)
    shown = {scenario.name for scenario in kept}
    tables, figures = (
        {name: display for name, display in displays.items() if shown.issuperset(display.scenarios)}
        for displays in (study.tables, study.figures)
    )
    name = "_".join([study.name, *only])
    return replace(study, name=name, scenarios=kept, tables=tables, figures=figures)


def system(scenario: Scenario) -> str:
    """The system of evaluation that the scenario's protocol belongs to; a protocol of its own is one by itself."""
    module = plugins.load("protocols", scenario.protocol.name, scenario.protocol.file)
    return getattr(module, "SYSTEM", scenario.protocol.name)


# ---------------------------------------------------------------- scenarios


def _check_layer(layer: dict[str, Any], *where: str) -> None:
    """Defaults, or what a scenario overrides, by itself: nothing is wrong just because something else hides it."""
    try:
        fields = expand.override({}, {k: v for k, v in layer.items() if k != "vary"})
        validated(ScenarioFile, fields, also=["vary"], partial=True)
        validated(DataChoice, _uses(fields.get("data", {})), "data")
        for field, kind in (("data", "data"), ("model", "models"), ("protocol", "protocols")):
            if "name" in fields.get(field, {}):
                choice.one(kind, fields[field], field, beside=USES if field == "data" else (), partial=True)
        free = ["methods"] if _imports(fields) else []
        for kind in ("methods", "attacks") if where == ("defaults",) else ():
            choice.several(kind, {} if kind in free else fields.get(kind, {}), partial=True)
    except StudyError as error:
        raise error.under(*where) from None


def _scenario(variant: expand.Variant) -> Scenario:
    try:
        if _imports(variant.fields):
            return _imported(variant)
        fields = validated(ScenarioFile, variant.fields, also=["vary"])
        scenario = Scenario(
            name=variant.name,
            setting=variant.setting,
            axes=variant.axes,
            data=choice.one("data", fields.data, "data", beside=USES),
            use=validated(DataChoice, _uses(fields.data), "data"),
            model=choice.one("models", fields.model, "model"),
            recipe=fields.recipe,
            protocol=choice.one("protocols", fields.protocol, "protocol"),
            methods=_with_control(choice.several("methods", fields.methods), fields.controls),
            attacks=choice.several("attacks", fields.attacks),
            metrics=_metrics(fields),
        )
        coherence.scenario(scenario)
    except StudyError as error:
        raise variant.blame(error) from None
    return scenario


def _imports(fields: dict[str, Any]) -> bool:
    """Whether the models of a scenario come from elsewhere, so that nothing is loaded, trained or unlearned."""
    protocol = fields.get("protocol")
    return isinstance(protocol, dict) and protocol.get("name") == "external"


def _imported(variant: expand.Variant) -> Scenario:
    """A scenario that names its methods freely, as folders of logits, and has no data, model or recipe."""
    idle = {"data": {}, "model": {}, "recipe": {}}
    for field in idle:
        if field in variant.layers[1][1]:
            raise StudyError((field,), "has no effect with the protocol external; leave it out")
    fields = validated(ScenarioFile, {**variant.fields, **idle}, also=["vary"])
    for name, options in fields.methods.items():
        if options:
            raise StudyError(("methods", name), "must have no options with the protocol external; its logits are there")
    protocol = choice.one("protocols", fields.protocol, "protocol")
    try:
        names = external.methods(external.Options(**protocol.options), list(fields.methods))
        for name in names:
            external.populations(external.Options(**protocol.options), name, names)
    except ValueError as error:
        raise StudyError(("protocol", "path"), str(error)) from None
    outside = Plugin("external", None, {})
    return Scenario(
        variant.name, variant.setting, variant.axes, outside, DataChoice(), outside, fields.recipe, protocol,
        {name: Plugin(name, None, {}) for name in names}, choice.several("attacks", fields.attacks), _metrics(fields),
    )  # fmt: skip


def _with_control(methods: dict[str, Plugin], controls: bool) -> dict[str, Plugin]:
    """A second, independent population of retrained models: what perfect unlearning looks like."""
    if "retrain" not in methods or not controls:
        return methods
    if "retrain_control" in methods:
        raise StudyError(
            ("methods", "retrain_control"), "is made by the study itself; use another name or controls: false"
        )
    retrain = methods["retrain"]
    other = {**retrain.options, "draw": retrain.options["draw"] + 1, "same_start": False}
    return {**methods, "retrain_control": Plugin(retrain.name, retrain.file, other)}


def _metrics(fields: ScenarioFile) -> dict[str, dict[str, Any]]:
    """Options of the metrics that are computed, in full: the protocol's, and of those that it allows the ones that are
    named. Raises StudyError for others."""
    module = plugins.load("protocols", fields.protocol["name"], fields.protocol.get("file"))
    allowed = getattr(module, "ALSO", ())
    computed = [*module.METRICS, *(name for name in allowed if name in fields.metrics)]
    for name in fields.metrics:
        if name not in computed:
            known = [*module.METRICS, *allowed]
            raise StudyError(("metrics", name), faults.unknown(name, known, f"metric {name!r} in this protocol"))
    forms = {name: plugins.options("metrics", name) for name in computed}
    chosen = {name: validated(form, fields.metrics.get(name, {}), "metrics", name) for name, form in forms.items()}
    return {name: options.model_dump(mode="json") for name, options in chosen.items()}


def _uses(data: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in data.items() if k in USES}
