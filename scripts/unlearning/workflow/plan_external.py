"""Nodes of one scenario of external logits: nothing is trained, everything else is judged as ever."""

from pathlib import Path

from unlearning.plugins import source
from unlearning.study.schema import PAPER_SET
from unlearning.workflow.nodes import CaseFiles, Node
from unlearning.workflow.plan_scenario import Judged


class External(Judged):
    """Adds the nodes of one scenario of external logits to a plan."""

    def add(self) -> None:
        """Populations of models that came from elsewhere, then scores and metrics of every method."""
        scenario = self.scenario
        options, named = self.protocol.Options(**scenario.protocol.options), list(scenario.methods)
        judged = {}
        for method in named:
            found = self.protocol.populations(options, method, named)
            made = {part: self._import(method, *one) for part, one in found.items()}
            judged[method] = self._score_external(method, made)
        self._compare(scenario.protocol.name, judged)

    def _import(self, method: str, kind: str, files: dict[str, Path]) -> Node:
        own = f"{method}-{kind}" if kind in self.protocol.OWN else kind
        content = {name: source.fingerprint(path) for name, path in files.items()}
        return self.plan.add(
            "external", f"{self.scenario.protocol.name}-{own}", {"population": kind, "content": content}, {}, {},
            ("data.npz", "membership.npz", "logits.npz"),
            place={"files": {name: str(path) for name, path in files.items()}},
        )  # fmt: skip

    def _score_external(self, method: str, made: dict[str, Node]) -> Node:
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
        metric, *others = self.record.metrics
        wanted = (scenario.metrics[metric], *(one for one in scenario.metrics.values() if one.file))
        metrics = self.plan.add(
            "metrics", label,
            {
                "metrics": {one.name: one.options for one in wanted},
                "options": {name: scenario.metrics[name].options for name in others},
                "paper_set": [name for name in PAPER_SET if name in scenario.attacks],
                "populations": list(made), "bootstrap": study.bootstrap, "seed": study.seed,
            },
            {"populations": list(made.values()), "scores": scores, "reasons": scores}, roles,
            ("metrics.csv", "contributions.npz"),
            wanted, ("metrics",) * len(wanted), place=self._own_files("metrics"),
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
