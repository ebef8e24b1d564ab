"""Tries what a plan names before anything is made: functions are imported, state dicts compared with models."""

import functools
from pathlib import Path
from typing import Any

from unlearning_audit.data import prepare, read_source
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import guard
from unlearning_audit.plugins.isolation import isolated
from unlearning_audit.study.choice import Plugin
from unlearning_audit.workflow import trial
from unlearning_audit.workflow.nodes import Node, Plan


def imports(plan: Plan) -> None:
    """Import every file of a published function, in a process of its own; other files were imported for the plan.

    Raises ValueError, which names the first field that has the file, the file, the line and what was missing.
    """
    files: dict[str, tuple[str, Plugin]] = {}
    for scenario in plan.study.scenarios:
        for name, plugin in scenario.methods.items():
            if plugin.file is None and "function" in plugin.options:
                files.setdefault(plugin.options["file"], (f"scenarios.{scenario.name}.methods.{name}", plugin))
    for file, (field, plugin) in files.items():
        try:
            isolated(functools.partial(_imported, plugin), file, trace=False)
        except ValueError as error:
            raise ValueError(f"{field}: {error}") from None


def _imported(plugin: Plugin) -> dict[str, Any]:
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
    trained = {node.outputs["logits"]: node for node in plan.nodes["train"].values()}
    originals = (path for case in plan.cases if case.scenario.name == name for path in case.originals)
    train = next((trained[path] for path in originals if path in trained), None)
    if train is None:
        raise ValueError(f"scenarios.{name}: nothing is trained there, so that there is nothing to try it on")
    source = next(node for node in train.parents.values() if node.stage == "data")
    data = prepare(read_source(source.settings, source.place, Path.cwd()), seed=source.settings["seed"],
                   **source.settings["use"])  # fmt: skip
    build, _ = builder(data, train.settings, train.place)
    return trial.Setting(
        data.x, data.y, data.classes, (data.part == 0).nonzero()[0], build, Recipe(**train.settings["recipe"]),
        f"{name} of the study {plan.study.name}",
    )  # fmt: skip


def fields(plan: Plan, file: str, name: str = "") -> dict[str, Any]:
    """What the study sets beside a user's file, where it names it (in the scenario ``name``)."""
    for scenario in plan.study.scenarios:
        for plugin in (scenario.data, scenario.model, *scenario.methods.values()):
            of = plugin.file or plugin.options.get("file")
            if of and Path(of).resolve() == Path(file).resolve() and scenario.name == (name or scenario.name):
                return {key: value for key, value in plugin.options.items() if key != "file"}
    return {}


def checkpoints(plan: Plan) -> None:
    """Compare the state dicts of every population of a plan, name by name and shape by shape, with the model that is
    named for them; those of data that would have to be downloaded are left to their job.

    Raises ValueError, which names the field, the file and the tensor.
    """
    done: list[dict[str, Any]] = []
    for scenario in plan.study.scenarios:
        terms: dict[str, Any] = {field: scenario.protocol.options.get(field) for field in ("data", "model")}
        nodes = [node for node in plan.nodes["external"].values() if terms.items() <= node.settings.items()]
        data = terms["data"]
        if not nodes or terms in done:
            continue
        done.append(terms)
        if data.get("file") or data.get("path") or registry.constant("data", data["name"], None, "AT_HAND"):
            try:
                _fitting(nodes)
            except ValueError as error:
                raise ValueError(f"scenarios.{scenario.name}.protocol.path: {error}") from None


def _fitting(nodes: list[Node]) -> None:
    """Raise ValueError unless all state dicts of nodes with the same data and model fit it."""
    data, model, seed = (nodes[0].settings[name] for name in ("data", "model", "seed"))
    populations = [(node.place["files"], node.settings["population"]) for node in nodes]

    def fitting() -> dict[str, Any]:
        from unlearning_audit.workflow.external_models import check

        return {"count": check(populations, data, model, seed)}

    isolated(fitting, model.get("file") or data.get("file"), trace=False)
