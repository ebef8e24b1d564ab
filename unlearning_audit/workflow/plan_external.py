"""Plan one scenario of imported models: nothing is trained, and evaluation is as for other models."""

from pathlib import Path
from typing import Any

from unlearning_audit.plugins import registry, source
from unlearning_audit.study import choice
from unlearning_audit.study.choice import Plugin
from unlearning_audit.workflow.nodes import Node
from unlearning_audit.workflow.plan_models import files_of
from unlearning_audit.workflow.plan_scenario import ScenarioPlanner


class ExternalPlanner(ScenarioPlanner):
    """The planner of one scenario of imported models, which adds its jobs to a plan."""

    def add(self) -> None:
        """Add the jobs that import every method's populations of models, then those of scores and metrics of every
        method, then the comparison of all methods."""
        scenario = self.scenario
        options, methods = self.protocol.Options(**scenario.protocol.options), list(scenario.methods)
        # Method → role of a population in its evaluation, such as "target" → the node that imports the population.
        nodes: dict[str, dict[str, Node]] = {}
        for method in methods:
            populations = self.protocol.populations(options, method, methods)
            nodes[method] = {
                role: self._add_import(method, kind, files, options) for role, (kind, files) in populations.items()
            }
        # The models before unlearning are the same for all methods. Retraining's evaluation has none.
        original = next((by_role["original"] for by_role in nodes.values() if "original" in by_role), None)
        judged = {
            method: self._add_scores_of(method, by_role, original, options.design) for method, by_role in nodes.items()
        }
        self._add_comparison(scenario.protocol.name, judged)

    def _add_import(self, method: str, kind: str, files: dict[str, Path], options: Any) -> Node:
        """Add the job that imports one population of models, and return its node.

        If one of the files is a checkpoint, the job runs the model: it then also loads the data source and the model
        that the options name, and the attacks and metrics that score texts. Their code, and the content of the files
        that the data source reads, then count in the node's key.

        Parameters
        ----------
        kind
            The population, such as "target". The label has the name of the ``method`` only if every method has a
            population of this kind of its own.
        files
            Name → path: of checkpoints, whose names begin with "checkpoint_", or of logits or published results; and of
            masks of samples such as "forget".
        options
            The options of the protocol.
        """
        label = f"{method}-{kind}" if kind in self.protocol.PER_METHOD else kind
        content = {name: source.fingerprint(path) for name, path in files.items()}
        settings: dict[str, Any] = {"population": kind, "content": content}
        plugins: list[Plugin] = []
        if any(name.startswith("checkpoint_") for name in files):
            settings |= {"data": options.data, "model": options.model, "generations": options.generations}
            settings["seed"] = self.study.seed
            data = choice.choose("data", options.data, "protocol", "data")  # protocol.data: the path for messages
            if data_files := files_of(data):
                settings["source"] = [source.fingerprint(path) for path in data_files]
            for scorer, function in registry.OF_TEXTS.items():
                plugins += [Plugin(scorer, name) for name in registry.defining(scorer, function)]
            # One file of models/ defines READS_FOLDERS; its model runs checkpoints unless the options name another.
            model = {"name": registry.defining("models", "READS_FOLDERS")[0], "file": None, **options.model}
            plugins += [Plugin("data", data.name, data.file), Plugin("models", model["name"], model["file"])]
        return self.plan.add(
            "external", f"{self.scenario.protocol.name}-{label}", settings, {},  # {}: no inputs
            plugins,
            place={"files": {name: str(path) for name, path in files.items()},
                   "contents": {str(path): content[name] for name, path in files.items()}},
        )  # fmt: skip

    def _add_scores_of(self, method: str, nodes: dict[str, Node], before: Node | None, design: str) -> Node:
        """Add the job that computes one method's scores and metrics, and the method's case; return the job's node.

        Parameters
        ----------
        nodes
            Role of a population → node of its import.
        before
            The node of the models before unlearning, which are the same for all methods, or None.
        design
            How forgotten and held-out samples were chosen.
        """
        scenario = self.scenario
        label = f"{scenario.protocol.name}-{method}"
        attacked = {role: nodes[role] for role in nodes if role in ("target", "shadow", "shadow_original")}
        attacks = scenario.attacks
        # Only attacks that need the signal "before" read models before unlearning, even if the method is retraining.
        if before and any("before" in attack.declared() for attack in attacks.values()):
            attacked["original"] = before
        metrics = self._add_metrics(
            label, {"populations": list(nodes.values())}, {"attacked": list(attacked.values())},
            populations=list(nodes), attacked=list(attacked), design=design,
        )  # fmt: skip
        originals, target = [nodes["original"]] if "original" in nodes else [], nodes["target"]
        # The job that imports the audited models ("target") also writes their memberships and samples.
        self._add_case(method, metrics, models=[target], originals=originals, splits=[target], data=target)
        return metrics
