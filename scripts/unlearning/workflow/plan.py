"""Study → nodes: what has to be made, from what, under which name (`workflow.nodes`).

Pure: nothing is imported from torch, no artifact is read.
"""

import functools
import json
from pathlib import Path
from typing import Any

from unlearning.plugins import registry, source
from unlearning.study import selecting
from unlearning.study.schema import PAPER_SET, PLACES, Plugin, Scenario, Study
from unlearning.workflow.nodes import ROOT, Case, Node, Plan, key


def make(study: Study) -> Plan:
    """The plan of a study."""
    plan = Plan(study)
    todo = [_Scenario(plan, scenario) for scenario in study.scenarios]
    _refuse_endless(study, todo)
    for one in todo:
        one.add()
    return plan


def _refuse_endless(study: Study, todo: list["_Scenario"]) -> None:
    """Raise ValueError, before anything is planned, for a study of more jobs or blocks of models than its limit."""
    counted = {one.scenario.name: (0, 0) for one in todo}
    for one in todo:
        counted[one.scenario.name] = tuple(map(sum, zip(counted[one.scenario.name], one.count(), strict=True)))
    blocks, jobs = (sum(column) for column in zip(*counted.values(), strict=True))
    if max(blocks, jobs) > study.limit:
        most = max(counted, key=lambda name: max(counted[name]))
        raise ValueError(
            f"scenarios.{most}: the study would be up to {jobs:,} jobs with {blocks:,} blocks of models, most of them "
            f"for this scenario, and more than limit ({study.limit:,}) are not planned; make it smaller, or set limit "
            f"to {max(blocks, jobs)} at the top of the study to have them all"
        )


@functools.cache
def _read(text: str) -> dict[str, Any]:
    """Settings from JSON; those of thousands of nodes are equal, and one object, which nobody changes."""
    return json.loads(text)


def _roles(files: str | tuple[str, ...]) -> tuple[str, ...]:
    return (files,) if isinstance(files, str) else files


class _Scenario:
    """Adds the nodes of one scenario."""

    def __init__(self, plan: Plan, scenario: Scenario) -> None:
        self.plan, self.study, self.scenario = plan, plan.study, scenario
        self.protocol = registry.load("protocols", scenario.protocol.name, scenario.protocol.file)
        self.record = registry.protocol(scenario.protocol.name, scenario.protocol.file)

    def add(self) -> None:
        """Data, then every batch of models and what the methods make of it, then scores and metrics."""
        scenario = self.scenario
        if hasattr(self.protocol, "populations"):
            return self._add_imported()
        data = self._data()
        batches, selection = self._batches(data), self._selected
        unlearned = {
            name: [train if plugin.name == "none" else self._unlearn(data, splits, train, plugin)
                   for splits, train in batches]
            for name, plugin in scenario.methods.items()
        }  # fmt: skip
        references = [unlearned[name] for name in self._references() if name in unlearned]
        for method, made in unlearned.items():
            self._score(data, batches, method, made, references, selection)
        return None

    def count(self) -> tuple[int, int]:
        """Blocks of models, and jobs if none is shared with another scenario."""
        counts = self.protocol.blocks(self.protocol.Options(**self.scenario.protocol.options)).values()
        made = sum(plugin.name != "none" for plugin in self.scenario.methods.values())
        batches = sum(-(-count // self.study.batch) for count in counts)
        return sum(counts), 1 + batches * (2 + made) + 2 * len(self.scenario.methods)

    def selection(self) -> Node:
        """Verdicts of this scenario's models on every sample, and what it takes to get them."""
        data, metric = self._data(), self.record.selects
        batches = self._batches(data)
        return self._node(
            "selection", batches[0][1].name.rsplit("-", 2)[0],
            {"metric": metric, "options": self.scenario.metrics[metric].options},
            {"data": [data], "splits": [s for s, _ in batches], "originals": [t for _, t in batches]},
            {"data": "data", "splits": "membership", "originals": "logits"},
            ("selection.npz",), (Plugin(metric, None, {}),), ("metrics",),
        )  # fmt: skip

    @functools.cached_property
    def _selected(self) -> list[Node]:
        """The selection by which this scenario chooses its samples, if it does."""
        chosen = selecting.source(self.scenario, self.study.scenarios)
        return [_Scenario(self.plan, chosen).selection()] if chosen else []

    def _batches(self, data: Node) -> list[tuple[Node, Node]]:
        """Memberships and models of every batch."""
        return [self._batch(data, population, blocks) for population, blocks in self._blocks()]

    def _node(
        self,
        stage: str,
        label: str,
        settings: dict[str, Any],
        inputs: dict[str, list[Node]],
        files: dict[str, str | tuple[str, ...]],
        outputs: tuple[str, ...],
        chosen: tuple[Plugin, ...] = (),
        kinds: tuple[str, ...] = (),
        place: dict[str, Any] | None = None,
    ) -> Node:
        """The node, made once however often it is asked for. ``files`` maps an input role to an output role."""
        plugin_files = tuple((kind, p.name, p.file) for kind, p in zip(kinds, chosen, strict=True))
        code = self.plan.code(stage, plugin_files)
        parents = {role: [parent.name for parent in group] for role, group in inputs.items()}
        name = f"{label}-{key(code, settings, parents)}"
        nodes = self.plan.nodes[stage]
        if name not in nodes:
            folder = f"{ROOT}/{stage}/{name}"
            paths = {
                role: [parent.outputs[output] for parent in group for output in _roles(files[role])]
                for role, group in inputs.items()
            }
            nodes[name] = Node(
                # In the order of the key: Snakemake takes settings in another order for other settings.
                stage, name, _read(json.dumps(settings, sort_keys=True)),
                {role: found[0] if role == "data" else found for role, found in paths.items() if found},
                {Path(output).stem: f"{folder}/{output}" for output in (*outputs, "spec.json")},
                place or {},
            )  # fmt: skip
        return nodes[name]

    def _data(self) -> Node:
        chosen = self.scenario.data
        use = self.scenario.use.model_dump(mode="json")
        options = {k: v for k, v in chosen.options.items() if k not in PLACES}
        settings = {"source": chosen.name, "options": options, "use": use, "seed": self.study.seed}
        if "path" in chosen.options:
            settings["content"] = source.fingerprint(Path(chosen.options["path"]))
        label = chosen.name + (f"-noise{use['label_noise']:g}" if use["label_noise"] else "")
        label += f"-size{use['size']:g}" if use["size"] is not None else ""
        return self._node(
            "data", label, settings, {}, {},
            ("data.npz",), (chosen,), ("data",),
            place={"file": chosen.file, **{k: v for k, v in chosen.options.items() if k in PLACES}},
        )  # fmt: skip

    def _blocks(self) -> list[tuple[str, list[int]]]:
        """(population, block numbers) of every batch."""
        options = self.protocol.Options(**self.scenario.protocol.options)
        size = self.study.batch
        return [
            (population, list(range(start, min(start + size, count))))
            for population, count in self.protocol.blocks(options).items()
            for start in range(0, count, size)
        ]

    def _batch(self, data: Node, population: str, blocks: list[int]) -> tuple[Node, Node]:
        """The memberships of one batch and the models trained on them."""
        scenario = self.scenario
        # How many blocks there are is no part of a block's name, so that more blocks rename nothing; what another
        # scenario is called is none either, its selection is.
        unnamed = (*self.record.counts, "select_from")
        options = {k: v for k, v in scenario.protocol.options.items() if k not in unnamed}
        base = data.name.rsplit("-", 1)[0]
        where = f"{population}{blocks[0]}" + (f"to{blocks[-1]}" if len(blocks) > 1 else "")
        splits = self._node(
            "splits", f"{base}-{scenario.protocol.name}-{where}",
            {"protocol": scenario.protocol.name, "options": options, "population": population, "blocks": blocks,
             "seed": self.study.seed},
            {"data": [data], "selection": self._selected}, {"data": "data", "selection": "selection"},
            ("membership.npz",), (scenario.protocol,), ("protocols",), place={"file": scenario.protocol.file},
        )  # fmt: skip
        recipe = scenario.recipe.model_dump(mode="json")
        train = self._node(
            "train", f"{base}-{scenario.protocol.name}-{scenario.model.name}-{where}",
            {"model": scenario.model.name, "options": scenario.model.options, "recipe": recipe,
             "gradients": self._gradients()},
            {"data": [data], "splits": [splits]}, {"data": "data", "splits": "membership"},
            ("models.safetensors", "logits.npz"), (scenario.model,), ("models",),
            place={"file": scenario.model.file},
        )  # fmt: skip
        return splits, train

    def _own_files(self, kind: str) -> dict[str, dict[str, str]]:
        """Where the user's own attacks or metrics lie."""
        return {"files": {name: one.file for name, one in getattr(self.scenario, kind).items() if one.file}}

    def _references(self) -> tuple[str, ...]:
        """Methods whose logits the metrics compare with: those of the protocol, or of metrics asked for besides."""
        also = [metric for name, metric in self.scenario.metrics.items() if name not in self.record.metrics]
        files = [registry.source_file("metrics", metric.name, metric.file) for metric in also]
        compare = not all(registry.constant(file, "ALONE") for file in files)
        return self.record.references or (("retrain", "retrain_control") if compare else ())

    def _gradients(self) -> bool | str:
        """Whether gradient norms are kept: False, True (of the forget set, for metrics) or "all" (for an attack)."""

        def needed(kind: str, *plugin: str | None) -> bool:
            return registry.constant(registry.source_file(kind, *plugin), "NEEDS") == "squared_norms"

        if any(needed("attacks", attack.name, attack.file) for attack in self.scenario.attacks.values()):
            return "all"
        return self.record.gradients or any(
            needed("metrics", one.name, one.file) for one in self.scenario.metrics.values()
        )

    def _unlearn(self, data: Node, splits: Node, train: Node, method: Plugin) -> Node:
        settings = {**train.settings, "method": method.name, "method_options": method.options}
        if "file" in method.options:
            settings["method_code"] = source.digest(Path(method.options["file"]))
        return self._node(
            "unlearn", f"{train.name.rsplit('-', 1)[0]}-{method.name}", settings,
            {"data": [data], "splits": [splits], "trained": [train]},
            {"data": "data", "splits": "membership", "trained": "models"},
            ("models.safetensors", "logits.npz"), (self.scenario.model, method), ("models", "methods"),
            place={"file": self.scenario.model.file, "method_file": method.file},
        )  # fmt: skip

    def _score(
        self,
        data: Node,
        batches: list[tuple[Node, Node]],
        method: str,
        made: list[Node],
        references: list[list[Node]],
        selection: list[Node],
    ) -> None:
        scenario, study = self.scenario, self.study
        splits, trains = [s for s, _ in batches], [t for _, t in batches]
        plugin = scenario.methods[method]
        label = f"{trains[0].name.rsplit('-', 2)[0]}-{plugin.name}"
        read = {"data": [data], "splits": splits, "originals": trains, "unlearned": made}
        roles = {
            "data": "data",
            "splits": "membership",
            "originals": "logits",
            "unlearned": "logits",
            "scores": "scores",
            "retrained": "logits",
            "control": "logits",
            "selection": "selection",
        }
        compared = dict(zip(("retrained", "control"), references, strict=False))
        scores = None
        if self.record.attacked or scenario.attacks:
            attacks = {n: {"name": a.name, "options": a.options} for n, a in scenario.attacks.items()}
            own = {"own_rows": True} if self.record.own_rows else {}
            scores = self._node(
                "attack", label, {"attacks": attacks, "seed": study.seed, **own}, read, roles, ("scores.parquet",),
                tuple(scenario.attacks.values()), ("attacks",) * len(attacks),
                place=self._own_files("attacks"),
            )  # fmt: skip
        wanted = tuple(scenario.metrics.values())
        metrics = self._node(
            "metrics", label,
            {
                "metrics": {name: metric.options for name, metric in scenario.metrics.items()},
                "paper_set": [name for name in PAPER_SET if name in scenario.attacks],
                "bootstrap": study.bootstrap, "seed": study.seed,
            },
            {**read, **compared, "scores": [scores] if scores else [], "selection": selection}, roles,
            ("metrics.csv",),
            wanted, ("metrics",) * len(wanted), place=self._own_files("metrics"),
        )  # fmt: skip
        self.plan.cases.append(
            Case(
                scenario, method, metrics.outputs["metrics"], scores.outputs["scores"] if scores else None,
                [n.outputs["logits"] for n in made], [n.outputs["logits"] for n in trains],
                [n.outputs["membership"] for n in splits], data.outputs["data"],
            )
        )  # fmt: skip

    def _add_imported(self) -> None:
        """Populations of models that came from elsewhere, then scores and metrics of every method."""
        scenario = self.scenario
        options, named = self.protocol.Options(**scenario.protocol.options), list(scenario.methods)
        for method in named:
            found = self.protocol.populations(options, method, named)
            self._score_imported(method, {part: self._import(method, *one) for part, one in found.items()})

    def _import(self, method: str, kind: str, files: dict[str, Path]) -> Node:
        own = f"{method}-{kind}" if kind in self.protocol.OWN else kind
        content = {name: source.fingerprint(path) for name, path in files.items()}
        return self._node(
            "external", f"{self.scenario.protocol.name}-{own}", {"population": kind, "content": content}, {}, {},
            ("data.npz", "membership.npz", "logits.npz"),
            place={"files": {name: str(path) for name, path in files.items()}},
        )  # fmt: skip

    def _score_imported(self, method: str, made: dict[str, Node]) -> None:
        scenario, study = self.scenario, self.study
        label = f"{scenario.protocol.name}-{method}"
        roles = {"populations": ("data", "membership", "logits"), "scores": "scores", "reasons": "spec"}
        asked = [part for part in ("target", "shadow", "shadow_original") if part in made]
        attacks = {n: {"name": a.name, "options": a.options} for n, a in scenario.attacks.items()}
        scores = [self._node(
            "attack", label, {"attacks": attacks, "populations": asked, "seed": study.seed},
            {"populations": [made[part] for part in asked]}, roles, ("scores.parquet",),
            tuple(scenario.attacks.values()), ("attacks",) * len(attacks),
            place=self._own_files("attacks"),
        )] if attacks else []  # fmt: skip
        metric, *others = self.record.metrics
        wanted = (scenario.metrics[metric], *(one for one in scenario.metrics.values() if one.file))
        metrics = self._node(
            "metrics", label,
            {
                "metrics": {one.name: one.options for one in wanted},
                "options": {name: scenario.metrics[name].options for name in others},
                "paper_set": [name for name in PAPER_SET if name in scenario.attacks],
                "populations": list(made), "bootstrap": study.bootstrap, "seed": study.seed,
            },
            {"populations": list(made.values()), "scores": scores, "reasons": scores}, roles, ("metrics.csv",),
            wanted, ("metrics",) * len(wanted), place=self._own_files("metrics"),
        )  # fmt: skip
        target, original = made["target"].outputs, made.get("original")
        self.plan.cases.append(
            Case(
                scenario, method, metrics.outputs["metrics"], scores[0].outputs["scores"] if scores else None,
                [target["logits"]], [original.outputs["logits"]] if original else [],
                [target["membership"]], target["data"],
            )
        )  # fmt: skip
