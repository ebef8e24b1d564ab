"""Read a study's choice of plug-ins: a name of the library, or a user's own file under another name, and options."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from unlearning_audit.plugins import registry, syntax
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.plugins.suggest import unknown
from unlearning_audit.study import messages
from unlearning_audit.study.messages import StudyError, validated


class Range(Settings):
    """A range of values of an option from ``low`` to ``high``; of whole numbers if both ends are whole. ``log``: values
    are spread evenly in their logarithms."""

    low: int | float
    high: int | float
    log: bool = False

    @model_validator(mode="after")
    def _ordered(self) -> "Range":
        """Return the range. Raise ValueError if its ends are in the wrong order, or have no logarithm for ``log``."""
        if not self.low <= self.high or (self.log and self.low <= 0):
            raise ValueError("low must be at most high, and above 0 for log")
        return self


class Tune(Settings):
    """How a method is tuned before it is audited. ``trials``: how many settings other than the study's are tried;
    ``pairs``: the most pairs (in other protocols: blocks) that they are tried on, drawn for tuning alone; ``space``:
    option → a list of values, or {low, high, log}. An option here takes precedence over TUNE in the method's file.
    ``objective``: what is minimised, the distance from retraining. "metrics": by the metrics that decide verdicts;
    "accuracy": by the accuracies on retained, forgotten and test samples, as in Naderloui et al. 2025."""

    trials: int = Field(16, ge=1, le=1024)
    pairs: int = Field(2, ge=1)
    objective: Literal["metrics", "accuracy"] = "metrics"
    space: dict[str, list[Any] | Range] = Field(default_factory=dict)


@dataclass(frozen=True)
class Plugin:
    """A chosen plug-in: its ``kind``, its ``name`` in the library, a user's ``file`` or None, its options in full.

    Parameters
    ----------
    depends
        Files and folders that the user's file reads.
    time_limit
        Seconds after which the job of the plug-in is ended.
    tune
        How a method is tuned, with the whole space; None if it is not tuned.
    """

    kind: str
    name: str
    file: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    depends: tuple[str, ...] = ()
    time_limit: float | None = None
    tune: Tune | None = None

    @property
    def module(self) -> registry.Module:
        """The module that defines the plug-in."""
        return registry.load(self.kind, self.name, self.file)

    @property
    def schema(self) -> type[Settings]:
        """The class of the plug-in's options."""
        return registry.options(self.kind, self.name, self.file)

    def constant(self, identifier: str) -> Any:
        """Return the value of a constant of the plug-in's file; None if the file does not define it."""
        return registry.constant(self.kind, self.name, self.file, identifier)

    def defines(self, identifier: str) -> bool:
        """Return whether the plug-in's file defines a function or constant ``identifier``."""
        return registry.defines(self.kind, self.name, self.file, identifier)

    def declared(self, identifier: str = "NEEDS") -> tuple[str, ...]:
        """Return the names in a constant of the plug-in's file; () without the constant."""
        return registry.declared(self.kind, self.name, self.file, identifier)

    @property
    def signals(self) -> list["Plugin"]:
        """The signals that an attack or a metric needs: the library's, and a user's beside the file."""
        needed = registry.needed_signals(self.kind, self.name, self.file)
        return [Plugin("signals", name, file) for name, file in needed.items()]


class Terms(Settings):
    """Fields that any method, attack or metric may have beside its own options. ``depends``: files and folders that a
    user's file reads by other ways than import, relative to the working directory; an edit there renews its results.
    ``time_limit``: seconds after which its job is stopped and counts as failed. ``tune``: for a method, how it is tuned
    before it is audited."""

    depends: tuple[str, ...] = ()
    time_limit: float | None = Field(None, gt=0)
    tune: Tune | None = None


#: Prefix of the names of a user's function's own options in a space.
OF_FUNCTION = "options."

#: Kinds of plug-ins that may have a time limit.
LIMITED = ("methods", "attacks", "metrics")


def several(kind: str, raw: dict[str, dict[str, Any] | None]) -> dict[str, Plugin]:
    """Return the methods, attacks or metrics of a study by the names that it gives them. Raises StudyError.

    Parameters
    ----------
    kind
        "methods", "attacks" or "metrics".
    raw
        Name → options.
    """
    # The last two arguments are the path in the study, such as methods.scrub.
    return {name: choose(kind, {"name": name, **(options or {})}, kind, name) for name, options in raw.items()}


def choose(kind: str, raw: dict[str, Any], *where: str, beside: Iterable[str] = ()) -> Plugin:
    """Return the plug-in that the mapping ``raw`` names, with all its options. Raises StudyError.

    Fields named in ``beside`` are not options and are ignored.

    Parameters
    ----------
    raw
        The plug-in's ``name``, the ``file`` of a user's own, its options, and fields of `Terms` such as ``time_limit``.
        A user's file with a plain function is run by the library's adapter of this kind, if there is one
        (`registry.adapter`); the function is then an option of the adapter.
    where
        The path of ``raw`` in the study.
    """
    options = {key: value for key, value in raw.items() if key not in beside}
    name, library = options.pop("name", None), registry.names(kind)
    if name is None:
        raise StudyError((*where, "name"), f"is missing; choose one of {', '.join(library)}")
    if not isinstance(name, str):
        raise StudyError((*where, "name"), f"must be text, found {messages.as_yaml(name)}")
    # Methods, attacks and metrics are mapped by their names; data, models and protocols state theirs in a field "name".
    path_of_name = where if name == where[-1] else (*where, "name")
    if name not in library and _is_function(kind, options):
        name = registry.adapter(kind)
    # If the plug-in has an option "file", as the adapter of functions does, "file" is that option.
    takes_file = name in library and "file" in registry.options(kind, name).model_fields
    file = None
    if "file" in options and not takes_file:
        file = options.pop("file")
        _check_file(kind, name, file, where, path_of_name)
    elif name not in library:
        raise StudyError(path_of_name, unknown(name, library, f"{registry.KINDS[kind].noun} {name!r}"))
    schema = registry.options(kind, name, file)
    # Fields of `Terms` stand among the options, unless the plug-in has such an option itself.
    allowed = {"depends": bool(file or takes_file), "time_limit": kind in LIMITED, "tune": kind == "methods"}
    names = [term for term, is_allowed in allowed.items() if is_allowed and term not in schema.model_fields]
    terms = validated(Terms, {term: options.pop(term) for term in names if term in options}, *where)
    for path in terms.depends:
        if not Path(path).exists():
            advice = "give paths relative to the working directory"
            raise StudyError((*where, "depends"), f"{path!r} does not exist; {advice}")
    # By now, only the plug-in's own options are left. Messages suggest the other fields, too.
    others = ["name", *names, *beside] if takes_file else ["name", "file", *names, *beside]
    settings = validated(schema, options, *where, also=others)
    plugin = Plugin(kind, name, file, settings.model_dump(mode="json"), terms.depends, terms.time_limit)
    return tuned(plugin, terms.tune, *where) if terms.tune else plugin


def tuned(method: Plugin, tune: Tune, *where: str) -> Plugin:
    """Return ``method`` with its tuning: ``tune`` with the complete space, option → values to try, from TUNE in the
    method's file and from the study, which takes precedence.

    Parameters
    ----------
    where
        The method's path in the study.

    Raises
    ------
    StudyError
        If there is no space, or if it has an option that the method does not have or a value that the option does not
        take.
    """
    schema = method.schema
    # TUNE is validated as a study's space is, which turns {low, high} into `Range`.
    space = {**validated(Tune, {"space": declared_space(method)}, *where).space, **tune.space}
    runs_function = "function" in method.options  # the method is the adapter, which runs a user's function
    if not space:
        advice = "map options to lists of values"
        advice += ", such as options.lr: [0.1, 0.01]" if runs_function else ""
        name = method.options["file"] if runs_function else repr(method.name)
        raise StudyError((*where, "tune", "space"), f"is missing: {name} declares no TUNE; {advice}")
    for name, values in space.items():
        path = (*where, "tune", "space", name)
        # The names of a function's own options are compared with its parameters later (`checks.scenario`).
        if name not in schema.model_fields and not (runs_function and name.startswith(OF_FUNCTION)):
            advice = f"; write an option of the function as {OF_FUNCTION}{name}" if runs_function else ""
            raise StudyError(path, unknown(name, sorted(schema.model_fields), f"option {name!r}") + advice)
        if isinstance(values, list) and not values:
            raise StudyError(path, "has no value")
        tried = [values.low, values.high] if isinstance(values, Range) else values
        for value in tried:
            validated(schema, {**method.options, name: value}, *where, "tune", "space")  # raises for a wrong value
    return replace(method, tune=tune.model_copy(update={"space": space}))


def declared_space(method: Plugin) -> dict[str, Any]:
    """Return the options and values over which a method's file says it can be tuned (TUNE); {} if it has none.

    An option of a user's function is named as in a study: "options.lr".
    """
    if "function" not in method.options:
        return dict(method.constant("TUNE") or {})
    # The method is the adapter: TUNE in the function's file comes before one in its own, and may have its own options.
    of_function: Any = syntax.constant(Path(method.options["file"]), "TUNE")
    space = of_function or method.constant("TUNE") or {}
    bare = [name for name in space if name not in method.schema.model_fields and not name.startswith(OF_FUNCTION)]
    return {f"{OF_FUNCTION}{name}" if name in bare else name: values for name, values in space.items()}


def _is_function(kind: str, options: dict[str, Any]) -> bool:
    """Return whether the user's file in ``options`` defines a function that the adapter of its kind runs
    (`registry.has_published_function`); False without a valid file."""
    file = options.get("file")
    if not (isinstance(file, str) and Path(file).is_file()):
        return False
    try:
        return registry.has_published_function(kind, Path(file), named="function" in options)
    except ValueError:  # not valid Python: the check of the file reports it
        return False


def _check_file(kind: str, name: str, file: Any, where: tuple[str, ...], path_of_name: tuple[str, ...]) -> None:
    """Raise StudyError unless a user's file has a name that the library does not use, and all the parts of its kind.

    Parameters
    ----------
    where
        The path of the plug-in in the study.
    path_of_name
        The path of the plug-in's name in the study.
    """
    if not isinstance(file, str):
        raise StudyError((*where, "file"), f"must be the path of a Python file, found {messages.as_yaml(file)}")
    if name in registry.names(kind):
        noun = registry.KINDS[kind].noun
        raise StudyError(path_of_name, f"is the library's own {noun}; give your file another name than {name!r}")
    try:
        registry.options(kind, name, file)  # loading the file checks its parts
    except ValueError as error:
        raise StudyError((*where, "file"), str(error)) from None
