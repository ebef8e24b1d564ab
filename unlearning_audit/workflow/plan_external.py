"""Nodes of one scenario of external logits: nothing is trained, everything else is judged as ever."""

from pathlib import Path

from unlearning_audit.plugins import registry, source
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.study.schema import ADAPTIVE_SET, PAPER_SET, Plugin
from unlearning_audit.workflow.nodes import CaseFiles, Node
from unlearning_audit.workflow.plan_scenario import Judged


class External(Judged):
    """Adds the nodes of one scenario of external logits to a plan."""

    def add(self) -> None:
        """Populations of models that came from elsewhere, then scores and metrics of every method."""
        scenario = self.scenario
        options, named = self.protocol.Options(**scenario.protocol.options), list(scenario.methods)
        judged = {}
        for method in named:
            found = self.protocol.populations(options, method, named)
            made = {part: self._import(method, *one, options) for part, one in found.items()}
            judged[method] = self._score_external(method, made, options.design)
        self._compare(scenario.protocol.name, judged)

    def _import(self, method: str, kind: str, files: dict[str, Path], options: Settings) -> Node:
        own = f"{method}-{kind}" if kind in self.protocol.OWN else kind
        content = {name: source.fingerprint(path) for name, path in files.items()}
        settings, plugins = {"population": kind, "content": content}, {}
        if any(name.startswith("checkpoint_") for name in files):
            settings |= {"data": options.data, "model": options.model, "seed": self.study.seed}
            if "path" in options.data:
                settings["source"] = source.fingerprint(Path(options.data["path"]))
            named = {"data": options.data, "models": {"name": "llama", **options.model}}
            plugins = {part: Plugin(chosen["name"], chosen.get("file"), {}) for part, chosen in named.items()}
        return self.plan.add(
            "external", f"{self.scenario.protocol.name}-{own}", settings, {}, {},
            ("data.npz", "membership.npz", "logits.npz"), tuple(plugins.values()), tuple(plugins),
            place={"files": {name: str(path) for name, path in files.items()}},
        )  # fmt: skip

    def _score_external(self, method: str, made: dict[str, Node], design: str) -> Node:
        scenario, study = self.scenario, self.study
        label = f"{scenario.protocol.name}-{method}"
        roles = {"populations": ("data", "membership", "logits"), "scores": "scores", "reasons": "spec"}
        asked = [part for part in ("target", "shadow", "shadow_original") if part in made]
        attacks = {n: {"name": a.name, "options": a.options} for n, a in scenario.attacks.items()}
        scores = [self.plan.add(
            "attack", label, {"attacks": attacks, "populations": asked, "seed": study.seed},
            {"populations": [made[part] for part in asked]}, roles, ("scores.parquet",),
            tuple(scenario.attacks.values()), ("attacks",) * len(attacks),
            place=self._own_files("attacks"),
        )] if attacks else []  # fmt: skip
        (metric,) = registry.defaults(self.record.offers)
        others = registry.declared("metrics", metric, None, "READS")
        wanted = {metric: scenario.metrics[metric]} | {key: one for key, one in scenario.metrics.items() if one.file}
        metrics = self.plan.add(
            "metrics", label,
            {
                "metrics": {key: {"name": one.name, "options": one.options} for key, one in wanted.items()},
                "options": {name: scenario.metrics[name].options for name in others},
                "paper_set": [name for name in PAPER_SET if name in scenario.attacks],
                "adaptive_set": [name for name in ADAPTIVE_SET if name in scenario.attacks],
                "populations": list(made), "bootstrap": study.bootstrap, "seed": study.seed,
                "design": design,
            },
            {"populations": list(made.values()), "scores": scores, "reasons": scores}, roles,
            ("metrics.csv", "contributions.npz"),
            tuple(wanted.values()), ("metrics",) * len(wanted), place=self._own_files("metrics"),
        )  # fmt: skip
        target, original = made["target"].outputs, made.get("original")
        self.plan.cases.append(
            CaseFiles(
                scenario, method, metrics.outputs["metrics"], metrics.outputs["contributions"],
                scores[0].outputs["scores"] if scores else None, [target["logits"]],
                [original.outputs["logits"]] if original else [],
                [target["membership"]], target["data"],
            )
        )  # fmt: skip
        return metrics
