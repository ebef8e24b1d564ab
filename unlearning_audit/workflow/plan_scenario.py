"""Plan one scenario: its models, and the scores, metrics and comparisons that evaluate them."""

from collections.abc import Callable
from typing import Any

from unlearning_audit.plugins import registry
from unlearning_audit.stats import looks
from unlearning_audit.study.choice import Plugin
from unlearning_audit.workflow import extensions
from unlearning_audit.workflow.nodes import CaseFiles, Comparison, Node
from unlearning_audit.workflow.plan_models import Models, after_request, entries, method_label, sets

#: Role of a job's input → nodes.
Inputs = dict[str, list[Node]]


def role(signal: str) -> str:
    """Return the role of a job's inputs that hold this signal: the signal's ``ROLE`` if it has its own, else
    "readings"."""
    return registry.constant("signals", signal, None, "ROLE") or "readings"


def _signals_of(kind: str, plugin: Plugin) -> list[tuple[str, Plugin]]:
    """Return ("signals", plug-in) for every signal that an attack or a metric needs. Keys of its results depend on the
    code of these signals too."""
    needs = registry.declared(kind, plugin.name, plugin.file)
    return [("signals", Plugin(need, None, {})) for need in needs if need in registry.names("signals")]


def _read_by(metric: Plugin, inputs: Inputs) -> Inputs:
    """Return those of a scoring job's ``inputs`` that a metric reads. Signals that it does not need are left out."""
    asked = registry.defining("signals", "read")
    needs = {role(need) for need in registry.declared("metrics", metric.name, metric.file) if need in asked}
    # Roles of signals that the metric does not need; "signals" is the role of those that attacks read.
    others = {"signals", *map(role, asked)} - needs
    # A signal's key is its role after the models from which it is read, as in "retrained_readings".
    return {key: nodes for key, nodes in inputs.items() if key.rpartition("_")[2] not in others}


class Judged(Models):
    """The planner of one scenario, which adds the jobs of its models, scores, metrics and comparisons to a plan."""

    def add(self) -> None:
        """Add all jobs of the scenario: data, then training and unlearning of every batch of models, then scores and
        metrics of every method, then the comparison of all methods."""
        batches = self._batches()
        unlearned = {
            name: [self._after(requests, train, name) for requests, train in batches] for name in self.scenario.methods
        }
        references = [unlearned[name] for name in self._references() if name in unlearned]
        judged = {name: self._score(batches, name, models, references) for name, models in unlearned.items()}
        # The label is a training's name without the name of its batch and its key.
        self._compare(batches[0][1].name.rsplit("-", 2)[0], judged)

    def _score(
        self, batches: list[tuple[list[Node], Node]], method: str, models: list[Node], references: list[list[Node]]
    ) -> Node:
        """Add the job that computes one method's scores and metrics, the jobs of the signals that it reads, and the
        method's case, which a sham does not have. Return the node of scores and metrics.

        ``batches``: the nodes of memberships and training of each batch. ``method``: the method's name in the study.
        ``models``: its unlearned models by batch. ``references``: the retrained models by batch, then those of the
        control, if the scenario has them.
        """
        splits, trains = [requests[-1] for requests, _ in batches], [train for _, train in batches]
        name = method_label(self.scenario.methods[method], method)
        # The label begins with a training's name without the name of its batch and its key.
        label = "-".join([trains[0].name.rsplit("-", 2)[0], *after_request(self.scenario.request), name])
        read = {"data": [self.data], "splits": splits, "originals": trains, "unlearned": models}
        # Not strict, because a scenario may lack the control, or both.
        populations = {"unlearned": models, **dict(zip(("retrained", "control"), references, strict=False))}
        # Signals of attacks, of metrics, and features (of hidden layers), each with the models from which it is read.
        signals = self._signals("metrics", self.scenario.metrics.values())
        features = {name: signals.pop(name) for name in [*signals] if role(name) == "features"}
        everyone, attacked = {"original": trains, **populations}, {"original": trains, "unlearned": models}
        kinds = (
            ("signals", self._signals("attacks", self.scenario.attacks.values()), attacked),
            ("readings", signals, populations),
            ("features", features, everyone),
        )
        signals_of = {
            f"{population}_{kind}": self._read_of(splits, nodes, settings)
            for kind, settings, populations_read in kinds
            for population, nodes in populations_read.items()
        }
        more = {**populations, **self._asked_again(splits, models, references), **signals_of}
        asked = {**read, **{role: nodes for role, nodes in signals_of.items() if role.endswith("_signals")}}
        extra = {"own_rows": True} if self.record.own_rows else {}
        metrics = self._judge(label, {**read, **more, "selection": self._selected}, asked, **extra)
        if method not in self.shams:
            self._case(method, metrics, models, trains, splits, self.data)
        return metrics

    def _judge(self, label: str, inputs: Inputs, asked: Inputs, **more: Any) -> Node:
        """Add the job that computes the scores of all attacks and then the numbers of all metrics, and return its node.

        ``inputs``: role → the nodes that metrics read. ``asked``: role → the nodes that attacks read. ``more``: further
        settings of the job. Each attack and each metric has a key of its own, by which later jobs find its results.
        """
        attacks, metrics = self.scenario.attacks, self.scenario.metrics
        numbers = {**sets(attacks), "bootstrap": self.study.bootstrap, "seed": self.study.seed, **more}
        scoring = {name: value for name, value in numbers.items() if name in ("seed", "own_rows", "attacked")}

        def keys(kind: str, settings: dict[str, Any], read: Callable[[Plugin], Inputs]) -> dict[str, str]:
            """Return name of each attack or metric (``kind``) → the key of its results, from its code, its options, the
            ``settings`` and the inputs that ``read`` returns for it."""
            chosen = getattr(self.scenario, kind)
            return {
                name: self.plan.key(
                    "metrics",
                    {"of": [name, entry], **settings},
                    read(chosen[name]),
                    [(kind, chosen[name]), *_signals_of(kind, chosen[name])],
                )
                for name, entry in entries(chosen).items()
            }

        of_attacks = keys("attacks", scoring, lambda attack: asked)
        of_metrics = keys("metrics", {**numbers, "scores": of_attacks}, lambda metric: _read_by(metric, inputs))
        settings = {"attacks": entries(attacks), "metrics": entries(metrics), **numbers}
        return self.plan.add(
            "metrics", label, settings, {**inputs, **asked},
            [part for kind, chosen in (("attacks", attacks), ("metrics", metrics)) for plugin in chosen.values()
             for part in ((kind, plugin), *_signals_of(kind, plugin))],
            place={"attacks": {**self._own_files("attacks"), "keys": of_attacks},
                   "metrics": {**self._own_files("metrics"), "keys": of_metrics}},
        )  # fmt: skip

    def _case(
        self, method: str, metrics: Node, models: list[Node], originals: list[Node], splits: list[Node], data: Node
    ) -> None:
        """Add one method's case to the plan: the files that tables and figures show.

        ``metrics``: the node of the method's scores and metrics. ``models``, ``originals`` and ``splits``: the nodes of
        its unlearned models, of those before unlearning, and of memberships, one for each batch. ``data``: the node of
        the samples.
        """
        unlearned, trained = ([node.outputs["logits"] for node in nodes] for nodes in (models, originals))
        files = metrics.outputs
        self.plan.cases.append(
            CaseFiles(
                self.scenario, method, files["metrics"], files["effects"], files["records"],
                files["scores"] if self.scenario.attacks else None, unlearned, trained,
                [node.outputs["membership"] for node in splits], data.outputs["data"],
            )
        )  # fmt: skip

    def _compare(self, label: str, judged: dict[str, Node]) -> None:
        """Add the job that compares all methods with retraining and decides the verdicts. Nothing is added if no metric
        has effects, from which distances are measured.

        ``label``: the label of its node. ``judged``: method → the node of its scores and metrics.
        """
        metrics = self.scenario.metrics.values()
        if not any(registry.defines("metrics", metric.name, metric.file, "effects") for metric in metrics):
            return
        names, alpha = sorted(judged), extensions.level(self.plan, self.scenario.protocol.options.get("pairs"))
        settings = {
            "methods": names, "margins": self.study.margins.model_dump(mode="json"),
            "draws": self.study.bootstrap, "seed": self.study.seed,
            # Settings at their defaults are left out, so that they do not enter the key.
            **({"alpha": alpha} if alpha != looks.ALPHA else {}),
            **({"spreads": self.study.retrain_spread} if self.study.retrain_spread else {}),
            **({"shams": self.shams} if self.shams else {}),
        }  # fmt: skip
        nodes = [judged[name] for name in names]
        compared = self.plan.add("comparisons", label, settings, {"metrics": nodes, "effects": nodes})
        self.plan.comparisons.append(Comparison(self.scenario, compared.outputs))

    def _asked_again(
        self, splits: list[Node], models: list[Node], references: list[list[Node]]
    ) -> dict[str, list[Node]]:
        """Add the jobs of those signals whose settings depend on the options of metrics, and return role → nodes.

        These signals are predictions after relearning half of the forget set or after rounding weights to fewer bits
        ("relearned"), one generated text ("generations") and several ("sampled"). They are computed for ``models`` and,
        with "compared_" before the role, for the first of ``references`` (retrained models, then their control) that
        differs from ``models``.
        """
        asked = {}
        for signal in registry.defining("signals", "asked"):
            metrics = self.scenario.metrics.values()
            options = [m.options for m in metrics if signal in registry.declared("metrics", m.name, m.file)]
            if options:
                asked[signal] = registry.load("signals", signal).asked(options)
        counterparts = [nodes for nodes in references if nodes != models][:1]
        return {
            f"{prefix}{role(signal)}": self._read_of(splits, nodes, {signal: settings})
            for signal, settings in asked.items()
            for prefix, nodes in (("", models), *(("compared_", nodes) for nodes in counterparts))
        }
