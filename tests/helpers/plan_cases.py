"""A study to change, and how two plans are compared."""

import copy
from collections import Counter
from pathlib import Path
from typing import Any

from unlearning_audit.store.files import write_spec
from unlearning_audit.study import reading
from unlearning_audit.study.schema import STAGES
from unlearning_audit.workflow import plan
from unlearning_audit.workflow.nodes import CaseFiles, Node

#: What follows from each stage, where nothing is selected or imported.
PIPELINE = ("data", "splits", "train", "unlearn", "signals", "metrics", "comparisons")
BELOW = {stage: PIPELINE[i:] for i, stage in enumerate(PIPELINE)}

#: Everything that a study may hold, small enough to plan in milliseconds.
BASE = {
    "study": "base",
    "seed": 0,
    "batch": 2,
    "bootstrap": 1000,
    "defaults": {
        "data": {"name": "digits", "test_size": 197, "label_noise": 0.2},
        "model": {"name": "mlp", "hidden": [32]},
        "recipe": {"epochs": 3, "lr": 0.1},
        "protocol": {"name": "swap", "alpha": 0.25, "pairs": 4},
        "methods": {"none": {}, "retrain": {}, "finetune": {"epochs": 1}, "salun": {"epochs": 1}},
        "attacks": {"confidence": {}, "kde": {}, "random": {}},
    },
    "scenarios": {"main": {}},
    "tables": {"quality": {"title": "Quality", "metric": "q", "scenarios": ["main"]}},
    "figures": {"quality": {"title": "Quality", "kind": "quality", "scenarios": ["main"]}},
}


def changed(config: dict[str, Any], edits: dict[str, Any]) -> dict[str, Any]:
    """A copy of ``config`` in which the fields at the dotted paths of ``edits`` have new values."""
    config = copy.deepcopy(config)
    for path, value in edits.items():
        *parents, last = path.split("/")
        place = config
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = copy.deepcopy(value)
    return config


#: Three requests, one after the other.
SEQUENCE = changed(BASE, {"defaults/protocol": {"name": "swap", "alpha": 0.25, "pairs": 2, "requests": 3}})


def planned(config: dict[str, Any]) -> plan.Plan:
    """The plan of a study given as a mapping."""
    return plan.make(reading.read(config, "study.yaml"))


def files(node: Node) -> list[str]:
    """All files that a node reads, sorted."""
    return sorted(path for group in node.inputs.values() for path in ([group] if isinstance(group, str) else group))


def make(plan: plan.Plan) -> None:
    """Leave behind what planning looks at, as a run does: records, and logs of jobs of their own."""
    for node in plan.all():
        write_spec(node.outputs["spec"], {"settings": node.settings, "inputs": files(node)})
        if node.within is None:
            Path(node.outputs["spec"]).with_name("log.txt").touch()


def missing(plan: plan.Plan) -> dict[str, int]:
    """How many nodes of each stage have a job of their own and do not lie here."""
    lacking = (n.stage for n in plan.all() if not n.within and not Path(n.outputs["spec"]).exists())
    return dict(Counter(lacking))


def rebuilt(before: plan.Plan, after: plan.Plan) -> dict[str, tuple[int, int, int]]:
    """stage → how many nodes (are gone, stay, are new), for the stages where not all stay.

    Nodes that stay are the same in all that Snakemake could take for a change: settings in their order (it
    compares their repr), inputs and outputs. Raises AssertionError otherwise.
    """
    changes = {}
    for stage in STAGES:
        old, new = before.nodes[stage], after.nodes[stage]
        for name in old.keys() & new.keys():
            for part in ("settings", "inputs", "outputs"):
                assert repr(getattr(old[name], part)) == repr(getattr(new[name], part)), f"{name}: {part}"
        counts = len(old.keys() - new.keys()), len(old.keys() & new.keys()), len(new.keys() - old.keys())
        if counts[0] or counts[2]:
            changes[stage] = counts
    return changes


def everything_from(stage: str, base: plan.Plan) -> dict[str, tuple[int, int, int]]:
    """What `rebuilt` returns if all nodes of ``stage`` and of the stages after it get new names."""
    return {s: (len(base.nodes[s]), 0, len(base.nodes[s])) for s in BELOW[stage] if base.nodes[s]}


def only_of(method: str, base: plan.Plan) -> dict[str, tuple[int, int, int]]:
    """What `rebuilt` returns if all nodes that hold ``method`` get new names, comparisons with it, and no others."""
    changes = {}
    for stage in BELOW["unlearn"]:
        count = Counter(stage == "comparisons" or method_of(name) == method for name in base.nodes[stage])
        if count[True]:
            changes[stage] = (count[True], count[False], count[True])
    return changes


def method_of(name: str) -> str:
    """The method in the name of a node that was unlearned, attacked or measured."""
    return name.rsplit("-", 2)[-2]


def label(name: str) -> str:
    """The name of a node without its key."""
    return name.rsplit("-", 1)[0]


def labels(plan: plan.Plan, stage: str) -> list[str]:
    """The labels of all nodes of a stage, in their order."""
    return [label(name) for name in plan.nodes[stage]]


def read(paths: str | list[str]) -> list[str]:
    """stage/label/file of each path."""
    pieces = [path.split("/") for path in ([paths] if isinstance(paths, str) else paths)]
    assert {parts[0] for parts in pieces} <= {"results"}
    return [f"{stage}/{label(name)}/{file}" for _, stage, name, file in pieces]


def inputs(node: Node) -> dict[str, list[str]]:
    """What a node reads, by role, as `read` tells it."""
    return {role: read(paths) for role, paths in node.inputs.items()}


def case(plan: plan.Plan, method: str) -> CaseFiles:
    """The case of a method, where there is one scenario."""
    (files,) = [candidate for candidate in plan.cases if candidate.method == method]
    return files


def described(plan: plan.Plan) -> str:
    """All nodes of a plan without their keys, in a text: label, files, settings that are not options, inputs, cases."""
    lines = []
    for node in plan.all():
        files = " ".join(Path(path).name for path in node.outputs.values())
        settings = {k: v for k, v in node.settings.items() if not isinstance(v, (dict, list)) or k == "blocks"}
        place = {k: v for k, v in node.place.items() if k in ("file", "method_file", "where")}
        lines += [f"{node.stage} {label(node.name)}", f"  files: {files}", f"  fields: {' '.join(node.settings)}"]
        lines += [f"  settings: {settings}", f"  place: {place}"]
        lines += [f"  {role}: {' '.join(paths)}" for role, paths in inputs(node).items()]
    for case_ in plan.cases:
        files = (case_.metrics, *case_.unlearned, *case_.originals, *case_.splits, case_.data)
        lines.append(f"case {case_.method}: {' '.join(read([*filter(None, (case_.scores,)), *files]))}")
    return "\n".join([*lines, f"{plan.models} models, {len(plan.comparisons)} comparisons", ""])


def nodes_of_requests(plan: plan.Plan, method: str) -> list[Node]:
    """The node by which a method answers each request of a sequence, in their order."""
    by_path = {node.outputs["logits"]: node for stage in ("train", "unlearn") for node in plan.nodes[stage].values()}
    cases = [case for case in plan.cases if case.method == method]
    return [by_path[case.unlearned[0]] for case in sorted(cases, key=lambda case: case.scenario.request)]
