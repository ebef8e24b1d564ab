"""The parts of a plan: nodes, each one artifact folder, and the cases that tables and figures show.

The key of a node is a hash of the code that makes it, of the settings that this code reads and of its parents' keys. So
a node's name identifies everything on which it depends. An edit renames exactly the nodes that it affects, reverting it
finds the old files again, and two studies share equal nodes.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unlearning_audit.plugins import registry, source
from unlearning_audit.store.folders import OF_JOB
from unlearning_audit.study.choice import Plugin
from unlearning_audit.study.schema import OUTPUTS, STAGES, Scenario, Study
from unlearning_audit.workflow import jobs

ROOT = "results"

#: Role of a job's input → the outputs of earlier jobs that make up the input. Inputs of other roles are signals.
ROLES: dict[str, tuple[str, ...]] = {
    "data": ("data",), "splits": ("membership",), "selection": ("selection",), "tuned": ("chosen",),
    **dict.fromkeys(("populations", "attacked"), ("data", "membership", "logits")),
    "metrics": ("metrics",), "effects": ("effects",),
    **dict.fromkeys(("base", "trained", "models", "like"), ("models",)),
    **dict.fromkeys(("originals", "unlearned", "retrained", "control"), ("logits",)),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Node:
    """The plan of one folder of results, ``stage``/``name``, which a job of its own makes, or the job of another node.

    Parameters
    ----------
    settings
        What decides the results besides the inputs.
    place
        Facts for the job that do not change the results, such as paths.
    inputs, outputs
        Role → path or list of paths.
    awaited
        The inputs whose nodes have jobs of their own.
    parents
        The nodes of the inputs, by name.
    within
        The node whose job makes this one too, if it has no job of its own.
    """

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
        """The node's name without the key."""
        return self.name.rpartition("-")[0]

    @property
    def task(self) -> dict[str, Any]:
        """The task of making the node, as a job gets it."""
        return {name: getattr(self, name) for name in jobs.TASK}


@dataclass(frozen=True)
class CaseFiles:
    """The files of one method in one scenario.

    Parameters
    ----------
    metrics
        The file of numbers.
    effects
        The file of effects: what each model and sample adds to the numbers that decide verdicts.
    records
        The file of records that are still recognised.
    scores
        The file of attacks' scores; None without attacks.
    unlearned
        For each batch of models, the file of logits after unlearning.
    originals
        For each batch of models, the file of logits before unlearning.
    splits
        For each batch of models, the file of memberships.
    data
        The file of samples.
    """

    scenario: Scenario
    method: str
    metrics: str
    effects: str
    records: str
    scores: str | None
    unlearned: list[str]
    originals: list[str]
    splits: list[str]
    data: str


@dataclass(frozen=True)
class Comparison:
    """The verdicts on all methods of one scenario.

    Parameters
    ----------
    outputs
        Name → path of the files.
    extended
        How the comparison was extended without a plan, as `extensions.unplanned` returns it.
    """

    scenario: Scenario
    outputs: dict[str, str]
    extended: dict[str, Any] = field(default_factory=dict)


@dataclass
class Plan:
    """All nodes of a study (stage → name → node), the cases that tables and figures show, and the comparisons.

    Parameters
    ----------
    models
        The largest number of models that are trained or unlearned.
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
        """Return label → names (label and key) of the folders in a stage's results, from this or any other study. They
        are listed on the first call only."""
        if stage not in self._folders:
            names = self._folders.setdefault(stage, {})
            for path in sorted(Path(ROOT, stage).glob("*")):
                # What stands before the last hyphen of a name is the label, and the rest is the key.
                names.setdefault(path.name.rpartition("-")[0], []).append(path.name)
        return self._folders[stage]

    def draft(self) -> "Plan":
        """Return an empty plan of the same study, for finding out the names of nodes. It shares with this plan what is
        known of files: digests and lists of folders."""
        return Plan(self.study, _codes=self._codes, _contents=self._contents, _folders=self._folders)

    def code(self, stage: str, plugins: Sequence[Plugin]) -> str:
        """Return the digest of a stage's code and of the plug-in files that it loads, without comments and
        docstrings. It is computed on the first call only.

        Files on which a plug-in ``depends``, its time limit, and the names of the quantities that a user's metric
        declares count too.
        """
        loaded = tuple((p.kind, p.name, p.file, p.depends, p.time_limit) for p in plugins)
        if (stage, loaded) not in self._codes:
            files = [registry.source_file(p.kind, p.name, p.file) for p in plugins]
            more: list[Any] = [code_of(stage, *files)]
            for plugin, file in zip(plugins, files, strict=True):
                if plugin.depends or plugin.time_limit:
                    more.append(([source.fingerprint(Path(path)) for path in plugin.depends], plugin.time_limit))
                if plugin.file:  # the digest of all files does not tell which file is which plug-in
                    more.append(source.digest(file))
                if plugin.file and plugin.kind == "metrics":
                    # The digest ignores the names of a metric's quantities, on which its results depend.
                    more.append([quantity.name for quantity in registry.quantities(plugin.name, plugin.file)])
            self._codes[stage, loaded] = hashlib.sha256(json.dumps(more).encode()).hexdigest()
        return self._codes[stage, loaded]

    def contents(self, plugin: Plugin) -> dict[str, str]:
        """Return path → digest of the user's files of a plug-in and of the files on which it depends; {} for a plug-in
        of the library that depends on none. It is computed on the first call only."""
        file = plugin.file or plugin.options.get("file")
        if (file, plugin.depends) not in self._contents:
            path = Path(file) if file else None
            self._contents[file, plugin.depends] = source.contents(path, plugin.depends)
        return self._contents[file, plugin.depends]

    def key(
        self, stage: str, settings: dict[str, Any], inputs: dict[str, list[Node]], plugins: Sequence[Plugin]
    ) -> str:
        """Return the key of everything on which the result of a job of this stage depends: its code, its settings and
        its inputs.

        Parameters
        ----------
        inputs
            Role of an input, such as "splits" → nodes.
        plugins
            The plug-ins that the job loads.
        """
        parents = {role: [parent.name for parent in group] for role, group in inputs.items()}
        return key(self.code(stage, plugins), settings, parents)

    def add(
        self,
        stage: str,
        label: str,
        settings: dict[str, Any],
        inputs: dict[str, list[Node]],
        plugins: Sequence[Plugin] = (),
        place: dict[str, Any] | None = None,
        within: Node | None = None,
    ) -> Node:
        """Add a node with these settings and inputs to the plan, unless it has it already, and return it.

        Parameters
        ----------
        label
            The node's name without its key.
        inputs
            Role of an input (`ROLES`) → nodes.
        plugins
            The plug-ins that the job loads.
        place
            Facts for the job that do not change results, such as paths; the digests of users' files are added, and all
            inputs if some are made within other nodes' jobs.
        within
            The node whose job makes this one too, as one of its ``parts``. It is ignored if that job is done without
            this node, or if this node had a job of its own before.
        """
        name = f"{label}-{self.key(stage, settings, inputs, plugins)}"
        nodes = self.nodes[stage]
        if name not in nodes:
            folder = f"{ROOT}/{stage}/{name}"
            files, awaited = _paths(inputs), _paths(inputs, lambda parent: parent.within is None)
            if within and _needs_own_job(Path(folder), within):
                within = None
            place = dict(place or {})
            contents = {path: content for plugin in plugins for path, content in self.contents(plugin).items()}
            place["contents"] = contents | place.get("contents", {})
            place["inputs"] = {} if files == awaited else files
            node = nodes[name] = Node(
                # Settings are sorted, as for the key. Snakemake takes settings in another order for different ones.
                stage, name, settings=json.loads(json.dumps(settings, sort_keys=True)), inputs=files, awaited=awaited,
                outputs={Path(output).stem: f"{folder}/{output}" for output in (*OUTPUTS[stage], "spec.json")},
                parents={parent.name: parent for group in inputs.values() for parent in group},
                # Entries of OF_JOB, such as time limits, are left out if they are empty.
                place={fact: value for fact, value in place.items() if fact not in OF_JOB or value}, within=within,
            )  # fmt: skip
            if within:
                within.place.setdefault("parts", {})[name] = node.task
        return nodes[name]

    def all(self) -> list[Node]:
        """Return all nodes, stage by stage."""
        return [node for stage in STAGES for node in self.nodes[stage].values()]

    def specs(self) -> list[str]:
        """Return the spec files of all nodes, stage by stage."""
        return [node.outputs["spec"] for node in self.all()]


def _paths(inputs: dict[str, list[Node]], chosen: Callable[[Node], bool] = bool) -> dict[str, str | list[str]]:
    """Return role of an input → paths of the files of its nodes in ``inputs`` for which ``chosen`` holds: one path for
    the role "data", a list for all others. Roles without files are left out. The default ``chosen``, bool, holds for
    every node."""
    paths: dict[str, str | list[str]] = {}
    for role, nodes in inputs.items():
        outputs = ROLES.get(role, ("signals",))  # the files of a node that count as input in this role
        of_role = [node.outputs[output] for node in nodes if chosen(node) for output in outputs]
        if of_role:
            paths[role] = of_role[0] if role == "data" else of_role  # a scenario has one file of samples
    return paths


def _needs_own_job(folder: Path, maker: Node) -> bool:
    """Return whether the node with the results ``folder`` needs a job of its own: it had one before, or the job of
    ``maker``, which would have made it too, was done without it."""
    had_own_job = (folder / "log.txt").exists()  # only a job of its own writes a log beside its results
    maker_done, done = Path(maker.outputs["spec"]).exists(), (folder / "spec.json").exists()
    return had_own_job or (maker_done and not done)


def code_of(stage: str, *files: Path) -> str:
    """Return the digest of what runs in the jobs of a ``stage``, and of further ``files``."""
    return source.digest(source.SCRIPTS / "job.py", jobs.file_of(stage), *files)


def terms(plugin: Plugin) -> dict[str, Any]:
    """Return the terms under which a job runs a plug-in: {"time_limit": seconds}; {} if it has no limit."""
    return {} if plugin.time_limit is None else {"time_limit": plugin.time_limit}


def key(code: str, settings: dict[str, Any], parents: dict[str, list[str]]) -> str:
    """Return ten hexadecimal digits that identify the digest of code, the settings and the ``parents`` (role of an
    input → names, in order). Of the parents' names only the keys count, and roles without parents do not count."""
    # The key of a parent is the end of its name, after the last hyphen.
    keys = {role: [name.rsplit("-", 1)[1] for name in names] for role, names in parents.items() if names}
    text = json.dumps([code, settings, keys], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]
