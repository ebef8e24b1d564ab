"""What a plan is made of: nodes, each one artifact folder, and the cases that tables and figures show.

The key of a node is a hash of the code that makes it, the settings that this code reads and the keys of its
parents. So a node's name says everything it depends on: an edit makes new names for exactly what it
touches, reverting it finds the old files again, and two studies share what is equal.
"""

import functools
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unlearning_audit.plugins import registry, source
from unlearning_audit.store.folders import OF_JOB
from unlearning_audit.study.choice import Plugin
from unlearning_audit.study.schema import STAGES, Scenario, Study

ROOT = "results"

#: What a job is given → which outputs of the jobs before it that is.
ROLES: dict[str, tuple[str, ...]] = {
    "data": ("data",), "splits": ("membership",), "selection": ("selection",), "tuned": ("chosen",),
    **dict.fromkeys(("populations", "attacked"), ("data", "membership", "logits")),
    "metrics": ("metrics",), "contributions": ("contributions",),
    **dict.fromkeys(("base", "trained", "models", "like"), ("models",)),
    **dict.fromkeys(("originals", "unlearned", "retrained", "control"), ("logits",)),
    **{role: ("signals",) for name in ("relearned", "generated", "sampled") for role in (name, f"compared_{name}")},
    **{f"{of}_{kind}": ("signals",) for of in ("original", "unlearned", "retrained", "control")
       for kind in ("signals", "readings", "features")},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Node:
    """One artifact folder: ``inputs`` and ``outputs`` map a role to a path or a list of paths; ``awaited``: the
    inputs that jobs of their own make; ``parents``: the nodes that the inputs are of, each once, by name; ``within``:
    the node whose job makes this one too, if it has no job of its own."""

    stage: str
    name: str
    settings: dict[str, Any]
    inputs: dict[str, str | list[str]]
    outputs: dict[str, str]
    parents: dict[str, "Node"]
    place: dict[str, Any]
    awaited: dict[str, str | list[str]]
    within: "Node | None" = None

    @property
    def label(self) -> str:
        """Its name without the key."""
        return self.name.rpartition("-")[0]


@dataclass(frozen=True)
class CaseFiles:
    """One method in one scenario: which node computed its numbers and its list of records, and where its
    scores and logits are."""

    scenario: Scenario
    method: str
    metrics: str
    contributions: str
    records: str
    scores: str | None
    unlearned: list[str]
    originals: list[str]
    splits: list[str]
    data: str


@dataclass(frozen=True)
class Comparison:
    """The verdicts on all methods of one scenario: the files of its node by name, and how it was ``extended`` without a
    plan, as `extensions.unplanned` says it."""

    scenario: Scenario
    outputs: dict[str, str]
    extended: dict[str, Any] = field(default_factory=dict)


@dataclass
class Plan:
    """All nodes by stage and name, the cases that tables and figures show, and the verdicts on them.

    ``models``: how many are trained or unlearned, at most.
    """

    study: Study
    models: int = 0
    nodes: dict[str, dict[str, Node]] = field(default_factory=lambda: {stage: {} for stage in STAGES})
    cases: list[CaseFiles] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    _codes: dict[tuple[Any, ...], str] = field(default_factory=dict)
    _contents: dict[tuple[Any, ...], dict[str, str]] = field(default_factory=dict)
    _folders: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def folders(self, stage: str) -> dict[str, list[str]]:
        """Label → names of the folders of a stage that lie here, whoever made them; listed once."""
        if stage not in self._folders:
            names = self._folders.setdefault(stage, {})
            for path in sorted(Path(ROOT, stage).glob("*")):
                names.setdefault(path.name.rpartition("-")[0], []).append(path.name)
        return self._folders[stage]

    def draft(self) -> "Plan":
        """An empty plan of the same study, to find out how nodes would be called."""
        return Plan(self.study, _codes=self._codes, _contents=self._contents, _folders=self._folders)

    def node(self, stage: str, name: str) -> Node:
        """The node of that stage and name. Raises KeyError if the study does not ask for it."""
        return self.nodes[stage][name]

    def code(self, script: str, plugins: tuple[tuple[Any, ...], ...]) -> str:
        """Digest of a stage's script, of the plug-in files (kind, name, file) it will load, and of what the study says
        that these depend on and how long they may take."""
        if (script, plugins) not in self._codes:
            files = (registry.source_file(*plugin[:3]) for plugin in plugins)
            code = source.digest(source.SCRIPTS / f"{script}.py", *files)
            terms = [([source.fingerprint(Path(path)) for path in depends], limit) for *_, depends, limit in plugins]
            conditions: list[Any] = [term for term in terms if any(term)]
            outside = [plugin[:3] for plugin in plugins if plugin[2]]
            if len(outside) > 1:  # else it would not count which of the files is which
                conditions += [source.digest(registry.source_file(*plugin)) for plugin in outside]
            conditions += [_declared(name, file) for kind, name, file in outside if kind == "metrics"]
            self._codes[script, plugins] = (
                hashlib.sha256(json.dumps([code, conditions]).encode()).hexdigest() if conditions else code
            )
        return self._codes[script, plugins]

    def contents(self, plugin: Plugin) -> dict[str, str]:
        """What the user's files of a plug-in hold, and what these depend on: see `source.contents`."""
        file = plugin.file or plugin.options.get("file")
        if (file, plugin.depends) not in self._contents:
            self._contents[file, plugin.depends] = source.contents(file and Path(file), plugin.depends)
        return self._contents[file, plugin.depends]

    def key(
        self, stage: str, settings: dict[str, Any], inputs: dict[str, list[Node]], plugins: Sequence[tuple[str, Plugin]]
    ) -> str:
        """What stands for all that something depends on that a job of this stage makes, as `add` takes it."""
        code = self.code(stage, tuple((kind, p.name, p.file, p.depends, p.time_limit) for kind, p in plugins))
        return key(code, settings, {role: [parent.name for parent in group] for role, group in inputs.items()})

    def add(
        self,
        stage: str,
        label: str,
        settings: dict[str, Any],
        inputs: dict[str, list[Node]],
        outputs: tuple[str, ...],
        plugins: Sequence[tuple[str, Plugin]] = (),
        place: dict[str, Any] | None = None,
        within: Node | None = None,
    ) -> Node:
        """The node, made once however often it is asked for; ``inputs``: by their role, one of `ROLES`; ``plugins``:
        the kind and the choice of each that its job loads; ``within``: the node whose job makes this one too, unless
        that was done before anybody asked."""
        name = f"{label}-{self.key(stage, settings, inputs, plugins)}"
        nodes = self.nodes[stage]
        if name not in nodes:
            folder = f"{ROOT}/{stage}/{name}"
            files, awaited = _paths(inputs), _paths(inputs, lambda parent: parent.within is None)
            if within and _alone(Path(folder), within):
                within = None
            contents = {path: content for _, plugin in plugins for path, content in self.contents(plugin).items()}
            contents |= (place or {}).get("contents", {})
            place = {**(place or {}), "contents": contents, "inputs": {} if files == awaited else files}
            node = nodes[name] = Node(
                # In the order of the key: Snakemake takes settings in another order for other settings.
                stage, name, _read(json.dumps(settings, sort_keys=True)),
                files,
                {Path(output).stem: f"{folder}/{output}" for output in (*outputs, "spec.json")},
                {parent.name: parent for group in inputs.values() for parent in group},
                {name: value for name, value in place.items() if name not in OF_JOB or value},
                awaited, within,
            )  # fmt: skip
            if within:
                part = {role: getattr(node, role) for role in ("stage", "settings", "inputs", "outputs", "place")}
                within.place.setdefault("parts", {})[name] = part
        return nodes[name]

    def all(self) -> list[Node]:
        """All nodes, stage by stage."""
        return [node for stage in STAGES for node in self.nodes[stage].values()]

    def specs(self) -> list[str]:
        """The spec files of all nodes, stage by stage."""
        return [node.outputs["spec"] for node in self.all()]


def _paths(inputs: dict[str, list[Node]], chosen: Callable[[Node], bool] = bool) -> dict[str, str | list[str]]:
    """Role → what the chosen parents have of it; one file of the data, a list of everything else."""
    paths = {
        role: [parent.outputs[output] for parent in group if chosen(parent) for output in ROLES[role]]
        for role, group in inputs.items()
    }
    return {role: of_role[0] if role == "data" else of_role for role, of_role in paths.items() if of_role}


def _alone(folder: Path, maker: Node) -> bool:
    """Whether a node has a job of its own: it had one already, or all that ``maker`` makes is here, and this is not."""
    return (folder / "log.txt").exists() or (
        Path(maker.outputs["spec"]).exists() and not (folder / "spec.json").exists()
    )


def _declared(metric: str, file: str) -> list[str]:
    """How the rows of a user's metric may be called, which its job checks."""
    return [quantity.name for quantity in registry.quantities(metric, file)]


def terms(*plugins: Plugin) -> dict[str, Any]:
    """How long the plug-ins of a job may take, ``time_limit``, if that is limited: the first limit of theirs."""
    limits = [plugin.time_limit for plugin in plugins if plugin.time_limit is not None]
    return {"time_limit": limits[0]} if limits else {}


def key(code: str, settings: dict[str, Any], parents: dict[str, list[str]]) -> str:
    """Ten hexadecimal digits that stand for code digest, settings and parents (role → names, in their order)."""
    keys = {role: [name.rsplit("-", 1)[1] for name in names] for role, names in parents.items() if names}
    text = json.dumps([code, settings, keys], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


@functools.cache
def _read(text: str) -> dict[str, Any]:
    """Settings from JSON. Equal settings of thousands of nodes are one object; do not change it."""
    return dict(json.loads(text))
