"""Tries what a plan names before anything is made: files of the user are imported, and samples counted."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.data import Source, prepare, read_source
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import guard
from unlearning_audit.plugins.isolation import isolated
from unlearning_audit.study.choice import Plugin
from unlearning_audit.study.messages import contains
from unlearning_audit.study.schema import Scenario
from unlearning_audit.workflow import trial
from unlearning_audit.workflow.forecast import arithmetic
from unlearning_audit.workflow.forecast.sizes import Draws, downloaded
from unlearning_audit.workflow.nodes import Node, Plan

#: Bytes of a file of samples that is read before a run.
READ_WHOLE = 20_000_000


def imports(plan: Plan, config: Mapping[str, Any]) -> list[str]:
    """The user's own files of a plan, each of which was imported; those of functions in a process of their own.

    ``config``: the study as it is written. Raises ValueError, which names the first field that has the file, the file,
    the line and what was missing.
    """
    files: dict[tuple[str, str], tuple[str, Plugin]] = {}
    for scenario in plan.study.scenarios:
        for field, kind, plugin in _plugins(scenario):
            file = plugin.file or (plugin.options["file"] if "function" in plugin.options else None)
            if file is not None:
                files.setdefault((kind, file), (_field(config, scenario.name, field), plugin))
    functions = {file: of for (_, file), of in files.items() if of[1].file is None}
    for file, (field, plugin) in functions.items():
        try:
            isolated(lambda p=plugin: _imported(p), file, trace=False)
        except ValueError as error:
            raise ValueError(f"{field}: {error}") from None
    return list(dict.fromkeys(file for _, file in files))


def _field(config: Mapping[str, Any], scenario: str, field: str, last: str = "file") -> str:
    """The path of a scenario's field that has a file, where the study says it: in its defaults, or in the scenario."""
    path, scenarios = (*field.split(".", 1), last), config.get("scenarios")
    overrides = scenarios.get(scenario) if isinstance(scenarios, Mapping) else None
    of_defaults = contains(config.get("defaults"), path) and not contains(overrides, path)
    return f"defaults.{field}" if of_defaults else f"scenarios.{scenario}.{field}"


def _plugins(scenario: Scenario) -> Iterator[tuple[str, str, Plugin]]:
    """The path in the scenario, the kind and the choice of every plug-in."""
    for field, kind in (("data", "data"), ("model", "models"), ("protocol", "protocols")):
        yield field, kind, getattr(scenario, field)
    for kind in ("methods", "attacks", "metrics"):
        for name, plugin in getattr(scenario, kind).items():
            yield f"{kind}.{name}", kind, plugin


def _imported(plugin: Plugin) -> dict[str, Any]:
    """Import the file of a published function; the other files of users were imported for the plan."""
    module = registry.load("methods", plugin.name)
    with guard(plugin.options["file"]):
        module.imported(module.Options(**plugin.options))
    return {}


def setting(plan: Plan, name: str = "") -> trial.Setting:
    """On what files are tried for a study: the data, model and recipe of the scenario ``name``, or the first.

    Raises ValueError if the study has no such scenario, or one without data.
    """
    from unlearning_audit.training.recipe import Recipe
    from unlearning_audit.workflow.open_bank import builder

    names = list(dict.fromkeys(scenario.name for scenario in plan.study.scenarios))
    if name and name not in names:
        raise ValueError(f"the study has no scenario {name!r}; it has {', '.join(names)}")
    name = name or names[0]
    trained = {node.outputs["logits"]: node.name for node in plan.nodes["train"].values()}
    originals = (path for case in plan.cases if case.scenario.name == name for path in case.originals)
    first = next((trained[path] for path in originals if path in trained), None)
    if first is None:
        raise ValueError(f"scenarios.{name}: nothing is trained there, so that there is nothing to try it on")
    draws, notes = Draws(arithmetic.nodes(plan)), ()
    train = draws.nodes[first]
    (source,) = train["after"]["data"]
    node = draws.nodes[source]
    try:
        data = prepare(read_source(node["settings"], node["place"], Path.cwd()), seed=node["settings"]["seed"],
                       **node["settings"]["use"])  # fmt: skip
    except ValueError:
        if downloaded(node["settings"], node["place"]) is None:
            raise
        data, notes = draws.data(source), ("  The data are not here: black images take their place.",)
    build, _ = builder(data, train["settings"], train["place"])
    return trial.Setting(
        data.x, data.y, data.classes, (data.part == 0).nonzero()[0], build, Recipe(**train["settings"]["recipe"]),
        f"{name} of the study {plan.study.name}", notes,
    )  # fmt: skip


def fields(plan: Plan, file: str, name: str = "") -> dict[str, Any]:
    """What the study sets beside a user's file, where it names it (in the scenario ``name``)."""
    for scenario in plan.study.scenarios:
        for _, _, plugin in _plugins(scenario):
            of = plugin.file or plugin.options.get("file")
            if of and Path(of).resolve() == Path(file).resolve() and scenario.name == (name or scenario.name):
                return {key: value for key, value in plugin.options.items() if key != "file"}
    return {}


def samples(plan: Plan, config: Mapping[str, Any]) -> None:
    """Take as many samples as the study says of every source of the library that is here, or whose size is known
    without a download; of one's own tables and archives, of up to `READ_WHOLE` bytes.

    ``config``: the study as it is written. Raises ValueError, which names the field and what is wrong.
    """
    nodes = {node.outputs["data"]: node for node in plan.nodes["data"].values()}
    for case in plan.cases:
        node = nodes.pop(case.data, None)
        if node is None or Path(node.outputs["spec"]).exists():
            continue
        where = _field(config, case.scenario.name, "data", "path")
        try:
            source = _source(node)
        except ValueError as error:
            raise ValueError(f"{where}.path: {error}") from None
        if source is None:
            continue
        try:
            prepare(source, seed=node.settings["seed"], **node.settings["use"])
        except ValueError as error:
            option, _, problem = str(error).partition(": ")
            where = _field(config, case.scenario.name, "data", option)
            raise ValueError(f"{where}.{option}: {problem}") from None


def _source(node: Node) -> Source | None:
    """A source of the library as it is, or so many single black pixels in place of images that would have to be
    downloaded. None for others."""
    settings, place = node.settings, node.place
    if size := downloaded(settings, place):
        train, test, shape, classes = size
        part = np.repeat(np.uint8([0, 1]), (train, test))
        return Source(np.zeros((len(part), shape[0], 1, 1), np.uint8), np.arange(len(part)) % classes, part, classes)
    path = place.get("path")
    small = path is not None and Path(path).is_file() and Path(path).stat().st_size <= READ_WHOLE
    if place.get("file") or (path is not None and not small):
        return None
    if path is None and not _is_here({"name": settings["source"]}):
        return None
    return read_source(settings, place, Path.cwd())


def checkpoints(plan: Plan, config: Mapping[str, Any]) -> int:
    """How many state dicts of a plan were compared, name by name and shape by shape, with the model that is named for
    them; those of data that would have to be downloaded are left to their job.

    ``config``: the study as it is written. Raises ValueError, which names the field, the file and the tensor.
    """
    groups: dict[str, list[Node]] = {}
    for node in plan.nodes["external"].values():
        if "data" in node.settings and _is_here(node.settings["data"]):
            terms = [node.settings[name] for name in ("data", "model", "seed")]
            groups.setdefault(json.dumps(terms, sort_keys=True), []).append(node)
    return sum(_fitting(plan, config, nodes) for nodes in groups.values())


def _fitting(plan: Plan, config: Mapping[str, Any], nodes: list[Node]) -> int:
    """How many state dicts of nodes with the same data and model fit it."""
    data, model, seed = (nodes[0].settings[name] for name in ("data", "model", "seed"))
    populations = [(node.place["files"], node.settings["population"]) for node in nodes]

    def fitting() -> dict[str, Any]:
        from unlearning_audit.workflow.external_models import check

        return {"count": check(populations, data, model, seed)}

    file = model.get("file") or data.get("file")
    try:
        return (fitting() if file is None else isolated(fitting, file, trace=False))["count"]
    except ValueError as error:
        name = next(
            scenario.name
            for scenario in plan.study.scenarios
            if all(scenario.protocol.options.get(field) == terms for field, terms in (("data", data), ("model", model)))
        )
        raise ValueError(f"{_field(config, name, 'protocol', 'path')}.path: {error}") from None


def _is_here(data: Mapping[str, Any]) -> bool:
    """Whether a source is there without a download."""
    if data.get("file") or data.get("path"):
        return True
    return registry.constant("data", data["name"], None, "AT_HAND") is True
