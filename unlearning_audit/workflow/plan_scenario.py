"""Nodes of one scenario: its models, and the scores, metrics and comparisons that judge them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from unlearning_audit.artifacts.files import ArtifactError, read_json
from unlearning_audit.plugins import registry
from unlearning_audit.study.schema import Plugin
from unlearning_audit.workflow import extensions
from unlearning_audit.workflow.nodes import ROOT, CaseFiles, Comparison, Node, Plan
from unlearning_audit.workflow.plan_models import Models, after_request, entries, method_label, sets

#: Of how many retained and of how many test samples language models continue, where only a user's own metric asks.
MOST = 200

#: How many answers they sample, where only a user's own metric asks.
ANSWERS = 32


class Judged(Models):
    """Adds all nodes of one scenario to a plan."""

    def add(self) -> None:
        """Data, then every batch of models and what the methods make of it, then scores and metrics."""
        scenario = self.scenario
        data = self._data()
        batches = self._batches(data)
        requests = [self._requests(data, *batch) for batch in self._blocks(data)]
        unlearned = {
            name: [self._after(data, steps, train, name) for steps, (_, train) in zip(requests, batches, strict=True)]
            for name in scenario.methods
        }
        references = [unlearned[name] for name in self._references() if name in unlearned]
        judged = {name: self._score(data, batches, name, models, references) for name, models in unlearned.items()}
        self._compare(batches[0][1].name.rsplit("-", 2)[0], judged)

    def _score(
        self,
        data: Node,
        batches: list[tuple[Node, Node]],
        method: str,
        models: list[Node],
        references: list[list[Node]],
    ) -> Node:
        splits, trains = [s for s, _ in batches], [t for _, t in batches]
        name = method_label(self.scenario.methods[method], method)
        label = "-".join([trains[0].name.rsplit("-", 2)[0], *after_request(self.scenario.request), name])
        read = {"data": [data], "splits": splits, "originals": trains, "unlearned": models}
        scores = [self._attacked(label, read)] if self.scenario.attacks else []
        populations = {"unlearned": models, **dict(zip(("retrained", "control"), references, strict=False))}
        signals = self._signals("metrics", self.scenario.metrics.values())
        hidden = {name: signals.pop(name) for name in ("features",) if name in signals}
        kinds = (("readings", signals, populations), ("features", hidden, {"original": trains, **populations}))
        readings = {
            f"{role}_{name}": self._read_of(data, splits, nodes, of)
            for name, of, roles in kinds
            for role, nodes in roles.items()
        }
        more = {**populations, **self._asked_again(data, splits, models, references), **readings}
        inputs = {**read, **more, "scores": scores, "selection": self._selected}
        metrics = self._measured(label, self.scenario.metrics, inputs)
        self._case(method, metrics, scores, models, trains, splits, data)
        return metrics

    def _attacked(self, label: str, read: dict[str, list[Node]]) -> Node:
        """Scores by all attacks of the models that are ``read``."""
        extra = {"own_rows": True} if self.record.own_rows else {}
        signals = self._signals("attacks", self.scenario.attacks.values())
        readings = {
            f"{role}_readings": self._read_of(read["data"][0], read["splits"], read[models], signals)
            for role, models in (("original", "originals"), ("unlearned", "unlearned"))
        }

        def attack(plan: Plan, plugins: dict[str, Plugin], place: dict | None = None) -> Node:
            return self._scores(plan, label, plugins, {**read, **readings}, place, **extra)

        return attack(self.plan, self.scenario.attacks, {**self._own_files("attacks"), **self._scored(label, attack)})

    def _scores(
        self, plan: Plan, label: str, attacks: dict[str, Plugin], inputs: dict[str, list[Node]],
        place: dict | None = None, **more: Any,
    ) -> Node:  # fmt: skip
        """The scores by ``attacks`` of the models among ``inputs``; ``more`` settings."""
        settings = {"attacks": entries(attacks), "seed": self.study.seed, **more}
        return plan.add(
            "attack", label, settings, inputs, ("scores.parquet",),
            [("attacks", attack) for attack in attacks.values()], place=place,
        )  # fmt: skip

    def _measured(self, label: str, metrics: dict[str, Plugin], inputs: dict[str, list[Node]], **more: Any) -> Node:
        """The numbers of ``metrics`` from ``inputs``; ``more`` settings."""
        settings = {"metrics": entries(metrics), **sets(self.scenario.attacks), "bootstrap": self.study.bootstrap,
                    "seed": self.study.seed, **more}  # fmt: skip
        return self.plan.add(
            "metrics", label, settings, inputs, ("metrics.csv", "contributions.npz", "records.csv"),
            [("metrics", metric) for metric in metrics.values()], place=self._own_files("metrics"),
        )  # fmt: skip

    def _case(
        self, method: str, metrics: Node, scores: list[Node], models: list[Node], originals: list[Node],
        splits: list[Node], data: Node,
    ) -> None:  # fmt: skip
        """Add what tables and figures show of a method."""
        logits = ([node.outputs["logits"] for node in nodes] for nodes in (models, originals))
        self.plan.cases.append(
            CaseFiles(
                self.scenario, method,
                *(metrics.outputs[name] for name in ("metrics", "contributions", "records")),
                scores[0].outputs["scores"] if scores else None, *logits,
                [node.outputs["membership"] for node in splits], data.outputs["data"],
            )
        )  # fmt: skip

    def _scored(self, label: str, attack: Callable[..., Node]) -> dict[str, str]:
        """Where scores lie of the same models by the most of these attacks, of a study that had fewer (known)."""
        names, attacks = self.plan.folders("attack").get(label, []), self.scenario.attacks
        if not names or attack(self.plan.draft(), attacks).name in names:
            return {}
        best: dict[str, Plugin] = {}
        for name in names:
            try:
                recorded = read_json(Path(ROOT, "attack", name, "spec.json"))["settings"]["attacks"]
            except (ArtifactError, KeyError, OSError):
                continue
            subset = {key: attacks[key] for key in recorded if key in attacks}
            if len(best) < len(subset) == len(recorded) and attack(self.plan.draft(), subset).name == name:
                best = subset
        return {"known": attack(self.plan.draft(), best).outputs["scores"]} if best else {}

    def _level(self) -> dict[str, float]:
        """The level of these verdicts, where looks were planned or a false one is rare in the whole study, whichever of
        its scenarios are asked for."""
        pairs = self.scenario.protocol.options.get("pairs")
        alpha = extensions.level(self.plan, pairs)
        return {"alpha": alpha} if (self.study.looks and pairs is not None) or self.study.family > 1 else {}

    def _compare(self, label: str, judged: dict[str, Node]) -> None:
        """Verdicts on all methods together, where some metric says how far they are from retraining."""
        metrics = self.scenario.metrics.values()
        if not any(registry.defines("metrics", metric.name, metric.file, "contributions") for metric in metrics):
            return
        names = sorted(judged)
        settings = {
            "methods": names, "margins": self.study.margins.model_dump(mode="json"),
            "draws": self.study.bootstrap, "seed": self.study.seed, **self._level(),
        }  # fmt: skip
        nodes = [judged[name] for name in names]
        compared = self.plan.add(
            "comparisons", label, settings, {"metrics": nodes, "contributions": nodes},
            ("verdicts.csv", "distances.csv", "ranks.csv", "resolution.csv"),
        )  # fmt: skip
        self.plan.comparisons.append(Comparison(self.scenario, compared.outputs))

    def _asked_again(
        self, data: Node, splits: list[Node], models: list[Node], references: list[list[Node]]
    ) -> dict[str, list[Node]]:
        """Where that is asked for, what these models and retrained ones (the control, for retraining itself) say while
        they learn a half of it once more or with their weights rounded, and what language models say by themselves."""
        metrics, asked = self.scenario.metrics.values(), {}

        def asking(need: str) -> list[dict[str, Any]]:
            """Options of the metrics that need it."""
            return [m.options for m in metrics if need in registry.declared("metrics", m.name, m.file)]

        if relearned := asking("relearned"):
            widths = [options["bits"] for options in relearned if isinstance(options.get("bits"), list)]
            bits = sorted(set().union(*widths), reverse=True)
            steps = max((options["steps"] for options in relearned if "steps" in options), default=0)
            asked["relearned"] = {"steps": steps, **({"bits": bits} if bits else {})}
        if asking("generations"):
            most = [metric.options["most"] for metric in metrics if metric.file is None and "most" in metric.options]
            asked["generations"] = {"most": max(most, default=MOST)}
        if sampled := asking("sampled"):
            answers = max(options.get("samples", ANSWERS) for options in sampled)
            asked["sampled"] = {"most": 0, "answers": answers}
        counterparts = [nodes for nodes in references if nodes != models][:1]
        return {
            f"{of}{'generated' if signal == 'generations' else signal}": self._read_of(
                data, splits, nodes, {signal: settings}
            )
            for signal, settings in asked.items()
            for of, nodes in (("", models), *(("compared_", nodes) for nodes in counterparts))
        }
