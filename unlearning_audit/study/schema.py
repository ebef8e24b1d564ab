"""Define what may be configured: the schema of a study, which no other module repeats.

A study is a YAML file. ``defaults`` holds what its scenarios share; each entry of ``scenarios`` overrides some of it;
``vary`` multiplies a scenario along an axis. Everything is checked before anything runs. An error is reported in one
sentence that starts with the field's path.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, StringConstraints, field_validator

from unlearning_audit.plugins import registry
from unlearning_audit.plugins.declarations import Protocol
from unlearning_audit.plugins.names import LONGEST
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.stats.decide import EVERY
from unlearning_audit.study import messages
from unlearning_audit.study.choice import Plugin, Tune
from unlearning_audit.training.recipe import Recipe

#: The standard deviation of a metric over retrained models.
Spread = Annotated[float, Field(ge=0)]
#: A whole number of samples or, with a dot, a fraction of them.
Share = int | Annotated[float, Field(le=1)]
Name = Annotated[str, StringConstraints(pattern=messages.NAME, max_length=LONGEST)]
Metric = Annotated[str, StringConstraints(pattern=messages.METRIC, max_length=LONGEST)]

#: Fields that say where a data source is or whether it is downloaded, and do not change any sample.
PLACES = ("data_dir", "download", "path", "file")

#: Stage → the files that each of its jobs writes, in its folder of results, beside spec.json.
OUTPUTS = {
    "external": ("data.npz", "membership.npz", "logits.npz"),
    "data": ("data.npz",),
    "pretrain": ("models.safetensors",),
    "splits": ("membership.npz",),
    "train": ("models.safetensors", "logits.npz"),
    "selection": ("selection.npz",),
    "tune": ("chosen.json", "trials.csv"),
    "unlearn": ("models.safetensors", "logits.npz"),
    "signals": ("signals.npz",),
    "metrics": ("scores.parquet", "metrics.csv", "effects.npz", "records.csv"),
    "comparisons": ("verdicts.csv", "distances.csv", "ranks.csv", "resolution.csv"),
}

#: Stages in their order; their folders of results belong to all studies.
STAGES = tuple(OUTPUTS)

#: Rule → the tables and figures that it makes for every study. Every study also has the table headline.
DISPLAYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "collect": (("records",), ()),
    "cost": (("cost",), ()),
    "verdicts": (("verdicts", "ranks", "resolution"), ("verdicts",)),
    "tuning": (("tuning", "standings"), ("tuning", "front")),
    "meta": (("meta",), ("meta",)),
}

#: Kinds of figures, a file each.
KINDS = registry.names("report/figures")


class DataChoice(Settings):
    """Which samples of a source are used, and with which labels; the source's own options stand beside these.

    ``test_size``: how many random samples form the test part; ``per_class``: how many training samples of each class
    are kept, the first ones; ``size``: how many random training samples are kept. ``test_size`` and ``size`` may also
    be fractions. ``label_noise``: the share of training labels that is replaced by a random class: ``any``, or any
    ``other`` than the true one. It has a seed of its own, and a smaller share relabels a subset. ``greyscale``: luma in
    place of colours; ``interleaved``: as the published code of Becker & Liebig reads the images.
    """

    size: Share | None = Field(None, gt=0)
    per_class: int | None = Field(None, ge=1)
    test_size: Share | None = Field(None, gt=0)
    label_noise: float = Field(0.0, ge=0, lt=1)
    label_noise_seed: int = Field(0, ge=0)
    label_noise_kind: Literal["any", "other"] = "any"
    greyscale: bool | Literal["interleaved"] = False


#: Fields of `DataChoice`; all other fields of ``data`` are the source's own.
USES = tuple(DataChoice.model_fields)


class Where(Settings):
    """Which rows of a metric are taken: those with exactly these fields. ``role`` of samples; ``target``: kind of
    target samples; ``pair``, ``model`` and ``request``: by number; ``models``: how many are compared with each other;
    ``rate`` of false alarms; ``step`` of relearning; ``rule`` of thresholds or of rounding; ``confidence`` of a
    bound."""

    role: str = ""
    target: str = ""
    pair: int | None = None
    model: int | None = None
    models: int | None = None
    request: int | None = None
    rate: float | None = None
    step: int | None = None
    rule: str = ""
    confidence: float | None = None


def listed(value: Any) -> list[Any]:
    """Return a list unchanged, and any other value as a list of that one value."""
    return value if isinstance(value, list) else [value]


class Table(Settings):
    """One table: ``metric`` of every method (rows) along ``columns`` (an axis of ``vary``, or scenario).

    ``attack`` is an attack as "name/form", or a set of attacks for Q (paper, adaptive, extended). If it is empty, it is
    the adaptive set, or the one classical attack. ``where`` picks among rows of one metric, such as {role: test} or
    {rate: 0.01}. ``metric``, ``attack`` and ``where`` may be lists: each combination that a scenario has is a column.
    The ``layout`` long puts methods below each other, with a line for each value of ``columns``, and shows standard
    deviations over models in place of intervals, where a metric has them. The ``layout`` rankings shows how much the
    rankings of methods by one metric, the first, agree between each two scenarios and settings.
    """

    title: str
    metric: Metric | Annotated[list[Metric], Field(min_length=1)]
    scenarios: list[Name] = Field(min_length=1)
    columns: Name = "scenario"
    layout: Literal["wide", "long", "rankings"] = "wide"
    attack: str | Annotated[list[str], Field(min_length=1)] = ""
    where: Annotated[list[Where], BeforeValidator(listed), Field(min_length=1)] = Field(
        default_factory=lambda: [Where()]
    )
    footer: list[Literal["accuracy", "lower_bound"]] = Field(default_factory=list)
    published: Annotated[str, StringConstraints(pattern=messages.PRINTED)] | None = Field(
        None, description="paper and table of resources/published, such as swap/table_1"
    )


class Figure(Settings):
    """One figure: its ``kind``, the scenarios that it shows, and, where it draws lines, the axis along which they run.

    ``attack`` is an attack as "name/form", or a set of attacks. Without it, a figure of kind roc shows each method's
    strongest attack.
    """

    kind: Literal[*KINDS]  # type: ignore[valid-type] # the names of files
    title: str
    scenarios: list[Name] = Field(min_length=1)
    axis: Name | None = None
    attack: str = ""


class Margins(Settings):
    """The largest differences from retraining that count as equivalent: differences of rates, and factors for F/F₀
    (``forgetting_quality``), for the median ``efficacy`` and for ``perplexity``. ``accuracy`` and ``perplexity`` are
    for retained and for test samples. ``accuracy`` is also for metrics of language models that are shares between 0 and
    1, such as exact memorisation and ROUGE, and ``auc`` for Min-K %. A model is broken if it lost more than
    ``broken_accuracy`` against retraining, or if its perplexity is more than ``broken_perplexity`` times as large.
    Where the distance without unlearning is less than twice a margin, half of the lower limit of that distance replaces
    the margin."""

    advantage: float = Field(0.05, gt=0, lt=1)
    auc: float = Field(0.05, gt=0, lt=0.5)
    ic_score: float = Field(0.05, gt=0, lt=1)
    accuracy: float = Field(0.05, gt=0, lt=1)
    forgetting_quality: float = Field(1.25, gt=1)
    efficacy: float = Field(1.5, gt=1)
    perplexity: float = Field(1.1, gt=1)
    tail: float = Field(0.01, gt=0, lt=1)
    klom: float = Field(0.1, gt=0)
    broken_accuracy: float = Field(0.1, gt=0, lt=1)
    broken_perplexity: float = Field(1.25, gt=1)


class StudyFields(Settings):
    """Fields of a study in its file that are the same once its scenarios are spelled out."""

    study: Name
    seed: int = Field(0, ge=0)
    batch: int = Field(4, ge=1, description="blocks of models per job")
    bootstrap: int = Field(1000, ge=100)
    keep: Literal["models", "logits"] = Field(
        "models", description="logits: weights go when no job needs them any more"
    )
    memory: int = Field(8000, ge=1000, description="MB of main memory for a job with models")
    margins: Margins = Margins()
    retrain_spread: dict[Metric, Spread] = Field(
        default_factory=dict,
        description="standard deviation over retrained models, by metric or margin, or one number for all; it decides "
        "where there is one retrained model",
    )
    looks: list[int] = Field(
        default_factory=list, description="numbers of pairs at which verdicts are looked at while the study grows"
    )
    family: Literal["scenario", "study"] = Field(
        "scenario", description="where a false verdict has 5 % in all: in each scenario, or in the whole study"
    )
    tables: dict[Name, Table] = Field(default_factory=dict)
    figures: dict[Name, Figure] = Field(default_factory=dict)

    @field_validator("retrain_spread", mode="before")
    @classmethod
    def _of_every_metric(cls, value: Any) -> Any:
        """Return a single number as the spread of every metric, and a mapping unchanged."""
        return {EVERY: value} if isinstance(value, (int, float)) else value

    @field_validator("study")
    @classmethod
    def _own_folder(cls, value: str) -> str:
        """Return the study's name. Raise ValueError for that of a stage, whose folder of results it would share."""
        if value in STAGES:
            raise ValueError(f"must not be one of {', '.join(STAGES)}, whose folders hold what studies share")
        return value


class StudyFile(StudyFields):
    """The top level of a study's file.

    ``study``: its name, and the folder of its results; ``seed``: of all random draws; ``bootstrap``: replicates for
    simultaneous intervals; ``defaults``: what scenarios share; ``scenarios``, ``tables`` and ``figures`` by name. A
    study without the field ``figures`` draws those that its protocols declare.
    """

    only: list[Name] = Field(default_factory=list, description="scenarios, protocols or systems; empty: all")
    defaults: dict[str, Any] = Field(default_factory=dict)
    scenarios: dict[Name, dict[str, Any] | None] = Field(min_length=1)


class ScenarioFile(Settings):
    """The fields of one scenario, after the defaults are filled in.

    ``data``, ``model`` and ``protocol``: a name and options beside it. ``recipe``: how originals, retrained and shadow
    models are trained. ``methods``, ``attacks`` and ``metrics``: options by name. A scenario's methods and attacks
    replace those of the defaults; a list of names picks from these. Its metrics are added to those of the defaults.
    ``controls``: train a second, independent population of retrained models. ``tune``: tune every method whose file
    declares a space, unless the method has its own ``tune``; each is audited at the setting that was chosen and, as
    NAME_published, at the study's. Beside these stands ``vary``: axis → values. A list sets the field that the axis is
    named after; a mapping maps each label to the fields that it sets.
    """

    data: dict[str, Any]
    model: dict[str, Any]
    recipe: Recipe = Recipe()
    protocol: dict[str, Any]
    methods: dict[Name, dict[str, Any] | None] = Field(min_length=1)
    attacks: dict[Name, dict[str, Any] | None] = Field(default_factory=dict)
    metrics: dict[Name, dict[str, Any] | None] = Field(default_factory=dict)
    controls: bool = True
    tune: Tune | None = None


class Place(NamedTuple):
    """A ``scenario`` at one ``setting`` of its axes: the key of numbers, verdicts and files."""

    scenario: str
    setting: str


@dataclass(frozen=True)
class Scenario:
    """One fully specified experiment: who trains what on which data, what is unlearned how, and what attacks it.

    In a sequence of requests, it is the state after the ``request`` of that number; without a sequence, ``request`` is
    0. Methods named in ``at_once`` are given all requests together.
    """

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
    metrics: dict[str, Plugin]
    request: int = 0
    at_once: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        """The scenario's name and setting."""
        return Place(self.name, self.setting)

    @property
    def record(self) -> Protocol:
        """The declaration of the scenario's protocol."""
        return registry.protocol(self.protocol.name, self.protocol.file)

    @property
    def imported(self) -> bool:
        """Whether the models were made elsewhere, so that how they were made, and at which cost, is unknown."""
        return "imported" in self.record.offers

    @property
    def scorers(self) -> list[tuple[str, Plugin]]:
        """The attacks, then the metrics, each with its name in the study."""
        return [*self.attacks.items(), *self.metrics.items()]


class Study(StudyFields):
    """A validated study: its scenarios spelled out, and what to show of them. ``tests``: how many scenarios are one
    family of tests, however many of them are run."""

    scenarios: tuple[Scenario, ...]
    tests: int = 1

    @property
    def name(self) -> str:
        """The study's name."""
        return self.study
