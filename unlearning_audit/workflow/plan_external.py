"""Plan one scenario of imported models: nothing is trained, and evaluation is as for other models."""

from pathlib import Path
from typing import Any

from unlearning_audit.plugins import registry, source
from unlearning_audit.study import choice
from unlearning_audit.study.choice import Plugin
from unlearning_audit.workflow.nodes import Node
from unlearning_audit.workflow.plan_models import inputs
from unlearning_audit.workflow.plan_scenario import Judged


class External(Judged):
    """The planner of one scenario of imported models, which adds its jobs to a plan."""

    def add(self) -> None:
        """Add the jobs that import every method's populations of models, then those of scores and metrics of every
        method, then the comparison of all methods."""
        scenario = self.scenario
        options, methods = self.protocol.Options(**scenario.protocol.options), list(scenario.methods)
        # Method → role of a population in its evaluation, such as "target" → the node that imports the population.
        nodes = {
            method: {
                role: self._import(method, kind, files, options)
                for role, (kind, files) in self.protocol.populations(options, method, methods).items()
            }
            for method in methods
        }
        original = next((of_method["original"] for of_method in nodes.values() if "original" in of_method), None)
        judged = {
            method: self._score_external(method, by_role, original, options.design) for method, by_role in nodes.items()
        }
        self._compare(scenario.protocol.name, judged)

    def _import(self, method: str, kind: str, files: dict[str, Path], options: Any) -> Node:
        """Add the job that imports one population of models, and return its node.

        ``kind``: the population, such as "target". The label has the name of the ``method`` only if every method has a
        population of this kind of its own. ``files``: name → path, as `evaluation.external` reads them. ``options``:
        the protocol's. If one of the files is a checkpoint, the job runs the model: it then also loads the data source
        and the model that the options name, and the attacks and metrics that score texts.
        """
        label = f"{method}-{kind}" if kind in self.protocol.PER_METHOD else kind
        content = {name: source.fingerprint(path) for name, path in files.items()}
        settings: dict[str, Any] = {"population": kind, "content": content}
        plugins: list[tuple[str, dict[str, Any]]] = []
        if any(name.startswith("checkpoint_") for name in files):
            settings |= {"data": options.data, "model": options.model, "generations": options.generations}
            settings["seed"] = self.study.seed
            if of_source := inputs(choice.choose("data", options.data, "protocol", "data")):
                settings["source"] = [source.fingerprint(path) for path in of_source]
            model = {"name": registry.defining("models", "READS_FOLDERS")[0], **options.model}
            plugins = [(plugin_kind, {"name": name}) for plugin_kind, function in registry.OF_TEXTS.items()
                       for name in registry.defining(plugin_kind, function)]  # fmt: skip
            plugins += [("data", options.data), ("models", model)]
        return self.plan.add(
            "external", f"{self.scenario.protocol.name}-{label}", settings, {},
            [(plugin_kind, Plugin(entry["name"], entry.get("file"), {})) for plugin_kind, entry in plugins],
            place={"files": {name: str(path) for name, path in files.items()},
                   "contents": {str(path): content[name] for name, path in files.items()}},
        )  # fmt: skip

    def _score_external(self, method: str, nodes: dict[str, Node], before: Node | None, design: str) -> Node:
        """Add the job that computes one method's scores and metrics, and the method's case; return the job's node.

        ``nodes``: population → node of its import. ``before``: the node of the models before unlearning, or None. Only
        attacks that compare models before and after unlearning read ``before``, also if the method is retraining.
        ``design``: how forgotten and held-out samples were chosen.
        """
        scenario = self.scenario
        label = f"{scenario.protocol.name}-{method}"
        populations = {role: node for role, node in nodes.items() if role in ("target", "shadow", "shadow_original")}
        attacks = scenario.attacks
        # Only an attack that needs the signal "before" reads models before unlearning.
        if before and any("before" in registry.declared("attacks", a.name, a.file) for a in attacks.values()):
            populations["original"] = before
        metrics = self._judge(
            label, {"populations": list(nodes.values())}, {"attacked": list(populations.values())},
            populations=list(nodes), attacked=list(populations), design=design,
        )  # fmt: skip
        originals = [nodes["original"]] if "original" in nodes else []
        # The import of the audited models also made the files of their memberships and samples.
        self._case(method, metrics, [nodes["target"]], originals, [nodes["target"]], nodes["target"])
        return metrics
