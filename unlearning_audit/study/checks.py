"""Checks across fields: combinations that are valid field by field but contradict each other."""

import json
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from unlearning_audit.adversary.reference import SIGNALS, needs
from unlearning_audit.plugins import arguments, registry
from unlearning_audit.plugins.declarations import Quantity
from unlearning_audit.stats.looks import levels
from unlearning_audit.study.messages import StudyError, unknown
from unlearning_audit.study.schema import Figure, Plugin, Scenario, Table, Where

#: Tables and figures that every study has.
BUILT_IN = {
    "tables": ("headline", "cost", "meta", "verdicts", "ranks", "resolution"),
    "figures": ("meta", "verdicts", "resolution"),
}

#: Files of a case that a kind of figure may be drawn from.
DRAWN_FROM = ("data", "splits", "originals", "unlearned", "scores", "metrics")

#: Names in the fields of rows that the library's metrics give.
NAMED = {"role": ("forget", "heldout", "retain", "test"), "target": ("protected", "vulnerable")}

SETS = ("paper", "adaptive", "extended")
FORMS = ("trained", "unlearned", "own", "seen")


def scenario(one: Scenario) -> None:
    """Raise StudyError (``joint``) if the fields of a scenario contradict each other."""
    _training(one)
    _attacks(one)
    _comparisons(one)
    for kind, chosen in (("methods", one.methods), ("attacks", one.attacks)):
        names = list(chosen)
        for i, name in enumerate(names):
            twin = next((other for other in names[:i] if chosen[other] == chosen[name]), None)
            if twin is not None:
                raise _joint((kind, name), f"is the same as {twin!r}; change an option or leave one of the two out")
    for name, method in one.methods.items():
        where = ("methods", name)
        _schedule(method.options, where, method.options.get("epochs", method.options.get("repair_epochs")))
        recorded = "record_updates" in registry.declared("methods", method.name, method.file)
        if recorded and not one.recipe.record_updates:
            raise _joint(("recipe", "record_updates"), f"must be true for the method {name!r}")
        if "function" in method.options and "file" in method.options:
            _function(method, where)
    path = one.data.options.get("path")
    if path is not None and not Path(path).exists():
        raise StudyError(
            ("data", "path"), f"{path!r} does not exist; give a file or folder relative to the working directory"
        )


def looks(planned: list[int], every: Iterable[Scenario]) -> None:
    """Raise StudyError for looks that do not grow, and for a number of pairs that is none of them."""
    try:
        levels(looks=planned) if planned else None
    except ValueError as error:
        raise StudyError(("looks",), str(error)) from None
    for one in every:
        pairs = one.protocol.options.get("pairs")
        if planned and pairs is not None and pairs not in planned:
            where = f"which scenario {one.name!r} has; change one of both"
            raise StudyError(("looks",), f"{planned} hold no look at {pairs} pairs, {where}")


def scenarios(every: Iterable[Scenario]) -> None:
    """Raise StudyError for scenarios, or two points of one, that are equal but for their names, and for
    label_noise_kind in a study without label noise."""
    every = list(every)
    for one in [] if any(s.use.label_noise for s in every) else every:
        for field in sorted(one.use.model_fields_set & {"label_noise_kind", "label_noise_seed"}):
            raise StudyError(("scenarios", one.name, "data", field), "has no effect; no scenario sets label_noise")
    known = {}
    for one in every:
        same = known.setdefault(_content(one), [])
        point = next((other for other in same if other.name == one.name), None)
        if point is not None:
            raise StudyError(("scenarios", one.name, "vary"), f"sets the same for {point.setting} and {one.setting}")
        twin = next((other for other in same if not (other.axes or one.axes)), None)
        same.append(one)
        if twin is not None:
            raise StudyError(
                ("scenarios", one.name), f"is the same as {twin.name!r}; change a field or leave one of the two out"
            )


def display(kind: str, name: str, wish: Table | Figure, every: Iterable[Scenario]) -> None:
    """Raise StudyError if a table or figure names a scenario, axis, attack or metric that does not exist."""
    where, every = (kind, name), list(every)
    names = list(dict.fromkeys(s.name for s in every))
    if name in BUILT_IN[kind]:
        raise StudyError(where, f"must have another name; every study has a {kind[:-1]} {name!r} of its own")
    for i, chosen in enumerate(wish.scenarios):
        if chosen not in names:
            raise StudyError((*where, "scenarios"), unknown(chosen, names, f"scenario {chosen!r}"))
        if chosen in wish.scenarios[:i]:
            raise StudyError((*where, "scenarios"), f"names {chosen!r} twice; keep one of the two")
    if kind == "figures":
        try:
            _drawing(wish.kind)
        except ValueError as error:
            raise StudyError((*where, "kind"), str(error)) from None
    shown = [s for s in every if s.name in wish.scenarios]
    field = "columns" if kind == "tables" else "axis"
    axis, axes = getattr(wish, field), {axis for s in shown for axis in s.axes}
    if axis is not None and axis not in {*axes, "scenario"}:
        raise StudyError((*where, field), unknown(axis, {*axes, "scenario"}, f"axis {axis!r} in these scenarios"))
    asked = registry.declared("display/figures", wish.kind) if kind == "figures" else ()
    if "axis" in asked and axis is None:
        raise StudyError((*where, "axis"), f"is missing; name one of {', '.join(sorted({*axes, 'scenario'}))}")
    if "requests" in asked and any(not s.request for s in shown):
        raise StudyError((*where, "scenarios"), "must name scenarios whose protocol has several requests")
    for field in ("metric", "attack", "where", "footer") if kind == "tables" else ():
        given = _listed(getattr(wish, field))
        twin = next((one for i, one in enumerate(given) if one in given[:i]), None)
        if twin is not None:
            what = twin.model_dump(exclude_defaults=True) if isinstance(twin, Where) else twin
            raise StudyError((*where, field), f"names {what!r} twice; keep one of the two")
    if kind == "tables" and wish.layout == "rankings":
        _ranked(wish, where)
    for metric in _listed(wish.metric) if kind == "tables" else ():
        _metric(metric, (*where, "metric"), shown)
    for attack in _listed(wish.attack):
        _adversary(attack, (*where, "attack"), shown)
    for about in _listed(wish.where) if kind == "tables" else ():
        _about(about, (*where, "where"), shown)


# ---------------------------------------------------------------- helpers


def _drawing(kind: str) -> None:
    """See by reading, not running, that the file of a kind of figure has its parts. Raises ValueError."""
    path = registry.source_file("display/figures", kind)
    if "draw" not in registry.defined(path):
        raise ValueError(f"{path}: draw is missing; every kind of figure defines it")
    files = registry.constant(path, "DRAWN_FROM")
    if files is not None and not (isinstance(files, tuple) and set(files) <= set(DRAWN_FROM)):
        raise ValueError(f"{path}: DRAWN_FROM must be a tuple of some of {', '.join(DRAWN_FROM)}")


def _ranked(wish: Table, where: tuple[str, str]) -> None:
    for field in ("metric", "attack", "where"):
        if isinstance(getattr(wish, field), list) and (field != "where" or len(wish.where) > 1):
            raise _joint((*where, field), "must be one with the layout rankings, not a list")
    for field in ("footer", "published"):
        if getattr(wish, field):
            raise _joint((*where, field), "has no effect with the layout rankings; leave it out")


def _content(one: Scenario) -> str:
    """All of a scenario but its names, as text that is equal for equal ones."""
    parts = {part: value for part, value in vars(one).items() if part not in ("name", "setting", "axes")}
    return json.dumps(parts, sort_keys=True, default=vars)


def _listed(value: Any) -> list:
    return value if isinstance(value, list) else [value]


def _joint(path: tuple[str, ...], sentence: str) -> StudyError:
    return StudyError(path, sentence, joint=True)


def _training(one: Scenario) -> None:
    recipe = one.recipe
    _schedule(recipe.model_dump(), ("recipe",), recipe.epochs)
    if recipe.dp is None:
        return
    if recipe.augment != "none":
        raise _joint(("recipe", "augment"), "must be none with dp, whose accountant counts one gradient per sample")
    if recipe.record_updates:
        raise _joint(("recipe", "record_updates"), "must be false with dp; private training keeps no updates")
    if one.model.options.get("norm") == "batch":
        raise _joint(("model", "norm"), "must not be batch with recipe.dp, which clips samples one by one; use group")


def _schedule(options: dict[str, Any], where: tuple[str, ...], epochs: int | None) -> None:
    """Milestones belong to the schedule multistep, rise, and lie within the epochs."""
    for name, inner in options.items():
        if isinstance(inner, dict) and "schedule" in inner:
            _schedule(inner, (*where, name), epochs)
    schedule, milestones = options.get("schedule"), list(options.get("milestones", ()))
    at = (*where, "milestones")
    if milestones and schedule != "multistep":
        raise _joint(at, f"are for the schedule multistep, found schedule {schedule!r}; change one of the two")
    if schedule == "multistep" and not milestones:
        raise _joint(at, "are missing; the schedule multistep needs at least one epoch")
    if milestones != sorted(set(milestones)) or (milestones and milestones[0] < 1):
        raise _joint(at, f"must be epochs in rising order, from 1 on, found {milestones}")
    if milestones and epochs is not None and milestones[-1] >= epochs:
        raise _joint(at, f"must be less than epochs ({epochs}), found {milestones[-1]}")


def _attacks(one: Scenario) -> None:
    protocol = one.protocol
    record = registry.protocol(protocol.name, protocol.file)
    asked, own = record.attacked, record.own_rows
    if asked and not one.attacks:
        raise _joint(("attacks",), f"must name at least one attack for the protocol {protocol.name!r}, found none")
    if not (asked or own) and one.attacks:
        raise _joint(("attacks",), f"must be [] for the protocol {protocol.name!r}, which asks no attack")
    for name, attack in one.attacks.items() if own else ():
        if "PROBABILITY" not in registry.defined(registry.source_file("attacks", attack.name, attack.file)):
            reports = (
                f"must be art or another that says PROBABILITY = True; the protocol {protocol.name!r} reports those"
            )
            raise _joint(("attacks", name), reports)
    for name, attack in one.attacks.items():
        need = registry.constant(registry.source_file("attacks", attack.name, attack.file), "NEEDS")
        if not set(needs(need)) <= set(SIGNALS):
            raise _joint(("attacks", name), f"has NEEDS = {need!r}; what models can be asked for: {', '.join(SIGNALS)}")
    files = {name: registry.source_file("attacks", a.name, a.file) for name, a in one.attacks.items()}
    learners = [name for name, file in files.items() if registry.constant(file, "LEARNS") is not False]
    if learners and protocol.options.get("shadow_models_per_split") == 0:
        raise _joint(
            ("protocol", "shadow_models_per_split"),
            f"must be at least 1 for the attack {learners[0]!r}, which learns from shadow models, found 0",
        )


def _comparisons(one: Scenario) -> None:
    """Metrics that are asked for beyond a protocol's own compare with retrained models, unless they say otherwise."""
    own = registry.defaults(registry.protocol(one.protocol.name, one.protocol.file).offers)
    others = {key: metric.name for key, metric in one.metrics.items() if metric.name not in own and not metric.file}
    files = {key: registry.source_file("metrics", name) for key, name in others.items()}
    extra = next((key for key, file in files.items() if not registry.constant(file, "ALONE")), None)
    if extra is not None and "retrain" not in one.methods:
        raise _joint(("metrics", extra), "compares with retrained models; add retrain to the methods")


def _function(method: Plugin, where: tuple[str, ...]) -> None:
    """The user's file of a function exists, defines it, and every parameter of it is known."""
    path, function = Path(method.options["file"]), method.options["function"]
    try:
        if not path.is_file():
            raise ValueError(f"file {str(path)!r} does not exist; give a path relative to the working directory")
        if function.partition(".")[0] not in registry.defined(path):
            raise ValueError(f"{path}: a function {function} is missing; define it or name another with function")
        missing = registry.missing_packages(path)
        if missing:
            raise ValueError(f"{path}: it imports {missing[0]}, which is not installed here; pip install {missing[0]}")
        taken = registry.signature(path, function)
    except ValueError as error:
        raise StudyError((*where, "file"), str(error)) from None
    if taken is not None:
        try:
            parameters = [arguments.Parameter(*one) for one in taken[0]]
            arguments.assigned(parameters, method.options["options"], method.options["give"], more=taken[1])
        except ValueError as error:
            raise StudyError((*where,), f"{path}: {function}: {error}") from None


def _metric(metric: str, where: tuple[str, ...], shown: list[Scenario]) -> None:
    known = {quantity.name for quantity in _quantities(shown)}
    if not any(fnmatchcase(metric, name) for name in known):
        raise StudyError(where, unknown(metric, known, f"metric {metric!r} in these scenarios"))


def _adversary(attack: str, where: tuple[str, ...], shown: list[Scenario]) -> None:
    """An attack is named as "name/form"; without a form it is a set of attacks, or one that a metric gives rows of."""
    name, _, form = attack.partition("/")
    known = {name for s in shown for name in s.attacks}
    if name in known and form not in FORMS:
        raise StudyError(where, f"must be {name}/trained or {name}/unlearned, found {attack!r}")
    brought = {own for quantity in _quantities(shown) for own in quantity.attacks}
    if attack and name not in known and attack not in brought:
        choice = [*brought, *(f"{name}/{form}" for name in known for form in FORMS)]
        raise StudyError(where, unknown(attack, choice, f"attack {attack!r} in these scenarios"))


def _about(about: Where, where: tuple[str, ...], shown: list[Scenario]) -> None:
    """The library's metrics name roles and targets as in `NAMED`."""
    if any(metric.file for s in shown for metric in s.metrics.values()):
        return
    for name, known in NAMED.items():
        value = getattr(about, name)
        if value and value not in known:
            raise StudyError((*where, name), unknown(value, known, f"{name} {value!r}"))


def _quantities(shown: list[Scenario]) -> list[Quantity]:
    """Everything that the metrics of these scenarios compute."""
    return [
        quantity
        for s in shown
        for key, metric in s.metrics.items()
        for quantity in registry.quantities(metric.name, metric.file, key)
    ]
