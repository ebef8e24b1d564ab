"""Plan one scenario: its models, and the scores, metrics and comparisons that evaluate them."""

from collections.abc import Callable
from typing import Any

from unlearning_audit.plugins import registry
from unlearning_audit.stats import looks
from unlearning_audit.store.files import Json
from unlearning_audit.study.choice import Plugin
from unlearning_audit.workflow import extensions
from unlearning_audit.workflow.nodes import CaseFiles, Comparison, Node
from unlearning_audit.workflow.plan_models import (
    ModelPlanner,
    after_request,
    attack_sets,
    entries,
    label_without_batch,
    method_label,
)

#: Role of a job's input → nodes.
Inputs = dict[str, list[Node]]


def role_of(signal: str) -> str:
    """Return the role of a job's inputs that hold this signal: the ``ROLE`` of a signal of the library that has one,
    else "readings", as for every user's signal."""
    role = registry.constant("signals", signal, None, "ROLE") if signal in registry.names("signals") else None
    return role or "readings"


def _loaded(plugin: Plugin) -> list[Plugin]:
    """Return what the results of an attack or a metric depend on: itself, and the signals that it needs."""
    return [plugin, *plugin.signals]


def _read_by(metric: Plugin, inputs: Inputs) -> Inputs:
    """Return those of a scoring job's ``inputs`` that a metric reads: all but the signals that it does not need."""
    signals = registry.defining("signals", "read")
    needs = {role_of(signal.name) for signal in metric.signals if signal.file or signal.name in signals}
    # Roles of signals that the metric does not need; "signals" is the role of those that attacks read.
    others = {"signals", *map(role_of, signals)} - needs
    # The role of a signal stands last in the name of an input, after the models from which the signal is read, as in
    # "retrained_readings".
    return {name: nodes for name, nodes in inputs.items() if name.rpartition("_")[2] not in others}


class ScenarioPlanner(ModelPlanner):
    """The planner of one scenario, which adds the jobs of its models, scores, metrics and comparisons to a plan."""

    def add(self) -> None:
        """Add all jobs of the scenario: data, then training and unlearning of every batch of models, then scores and
        metrics of every method, then the comparison of all methods."""
        batches = self._add_batches()
        unlearned: dict[str, list[Node]] = {}  # method → the nodes of its models, one for each batch
        for name in self.scenario.methods:
            unlearned[name] = [self._add_method(requests, train, name) for requests, train in batches]
        references = [unlearned[name] for name in self._references() if name in unlearned]
        judged = {name: self._add_scores(batches, name, models, references) for name, models in unlearned.items()}
        # The label of the first batch's training, which without the name of the batch is that of every training.
        self._add_comparison(label_without_batch(batches[0][1]), judged)

    def _add_scores(
        self, batches: list[tuple[list[Node], Node]], method: str, models: list[Node], references: list[list[Node]]
    ) -> Node:
        """Add the jobs of the signals that attacks and metrics read of one method's models, then the job that computes
        the method's scores and metrics, and the method's case (the entry of tables and figures). Return the node of
        scores and metrics.

        A sham has no case, because methods are only compared with it. Memberships after the last request are read.

        Parameters
        ----------
        batches
            For each batch, the nodes of its memberships after each request, and the node of its training.
        method
            The method's name in the study.
        models
            For each batch, the node of the models that the method has unlearned.
        references
            The nodes of retrained models, one for each batch, then the nodes of the control's models; each only if the
            scenario has them.
        """
        # Of each batch: the memberships after the last request, and the training.
        splits, trains = [requests[-1] for requests, _ in batches], [train for _, train in batches]
        name = method_label(self.scenario.methods[method], method)
        label = "-".join([label_without_batch(trains[0]), *after_request(self.scenario.request), name])
        read = {"data": [self.data], "splits": splits, "originals": trains, "unlearned": models}
        # ``references`` may be shorter than this tuple, because a scenario may lack the control, or both.
        populations = {"unlearned": models, **dict(zip(("retrained", "control"), references, strict=False))}
        of_metrics = self._signal_settings("metrics", self.scenario.metrics.values())
        features = {name: of_metrics.pop(name) for name in [*of_metrics] if role_of(name) == "features"}
        # Ending of the role, settings of the signals by name, and the models from which they are read: the signals of
        # attacks, those of metrics, and features (of hidden layers), which metrics read too.
        kinds = (
            ("signals", self._signal_settings("attacks", self.scenario.attacks.values()),
             {"original": trains, "unlearned": models}),
            ("readings", of_metrics, populations),
            ("features", features, {"original": trains, **populations}),
        )  # fmt: skip
        signals = {
            f"{population}_{kind}": self._add_signals(splits, nodes, settings)
            for kind, settings, populations_read in kinds for population, nodes in populations_read.items()
        }  # fmt: skip
        configured = self._add_configured_signals(splits, models, references)
        read_by_metrics = {**read, **populations, **configured, **signals, "selection": self._selected}
        of_attacks = {role: nodes for role, nodes in signals.items() if role.endswith("_signals")}
        extra = {"own_rows": True} if self.declaration.own_rows else {}
        metrics = self._add_metrics(label, read_by_metrics, {**read, **of_attacks}, **extra)
        if method not in self.shams:
            self._add_case(method, metrics, models, trains, splits, self.data)
        return metrics

    def _add_metrics(self, label: str, read_by_metrics: Inputs, read_by_attacks: Inputs, **more: Any) -> Node:
        """Add the job that computes one method's scores by all attacks and then its numbers by all metrics, and return
        its node.

        Each attack and each metric has a key of its own, by which later jobs find its results and need not compute them
        again.

        Parameters
        ----------
        read_by_metrics
            Role of an input → the nodes whose files metrics read.
        read_by_attacks
            Role of an input → the nodes whose files attacks read.
        more
            Further settings of the job. Of these, only "own_rows" and "attacked" count in the keys of attacks.
        """
        attacks, metrics = self.scenario.attacks, self.scenario.metrics
        common = {**attack_sets(attacks), "bootstrap": self.study.bootstrap, "seed": self.study.seed, **more}
        # Scores depend on these settings only, so that a change of the others leaves the keys of attacks as they are.
        scoring = {name: value for name, value in common.items() if name in ("seed", "own_rows", "attacked")}

        def keys(chosen: dict[str, Plugin], settings: Json, read: Callable[[Plugin], Inputs]) -> dict[str, str]:
            """Return name of each ``chosen`` attack or metric → the key of its results, from its code, its options, the
            ``settings`` and the inputs that ``read`` returns for it."""
            return {
                name: self.plan.key(
                    "metrics", {"of": [name, entry], **settings}, read(chosen[name]), _loaded(chosen[name])
                )
                for name, entry in entries(chosen).items()
            }

        of_attacks = keys(attacks, scoring, lambda attack: read_by_attacks)
        # A metric may read the scores of any attack, so its key depends on the keys of all attacks.
        of_metrics = keys(metrics, {**common, "scores": of_attacks}, lambda metric: _read_by(metric, read_by_metrics))
        settings = {"attacks": entries(attacks), "metrics": entries(metrics), **common}
        return self.plan.add(
            "metrics", label, settings, {**read_by_metrics, **read_by_attacks},
            [plugin for _, scorer in self.scenario.scorers for plugin in _loaded(scorer)],
            place={"attacks": {**self._own_files("attacks"), "keys": of_attacks},
                   "metrics": {**self._own_files("metrics"), "keys": of_metrics}},
        )  # fmt: skip

    def _add_case(
        self, method: str, metrics: Node, models: list[Node], originals: list[Node], splits: list[Node], data: Node
    ) -> None:
        """Add one method's case to the plan: the files that tables and figures show. Without attacks, the case has no
        file of scores.

        Parameters
        ----------
        metrics
            The node of the method's scores and metrics.
        models
            For each batch, the node of its unlearned models.
        originals
            For each batch, the node of its models before unlearning.
        splits
            For each batch, the node of its memberships.
        data
            The node of the samples.
        """
        unlearned, trained = ([node.outputs["logits"] for node in nodes] for nodes in (models, originals))
        files = metrics.outputs
        self.plan.cases.append(
            CaseFiles(
                self.scenario, method, metrics=files["metrics"], effects=files["effects"], records=files["records"],
                scores=files["scores"] if self.scenario.attacks else None, unlearned=unlearned, originals=trained,
                splits=[node.outputs["membership"] for node in splits], data=data.outputs["data"],
            )
        )  # fmt: skip

    def _add_comparison(self, label: str, judged: dict[str, Node]) -> None:
        """Add the job that compares all methods with retraining and decides the verdicts.

        Nothing is added if no metric has effects, from which distances are measured.

        Parameters
        ----------
        label
            The label of its node.
        judged
            Method → the node of its scores and metrics.
        """
        metrics = self.scenario.metrics.values()
        if not any(metric.defines("effects") for metric in metrics):
            return
        names, alpha = sorted(judged), extensions.level(self.plan, self.scenario.protocol.options.get("pairs"))
        settings = {
            "methods": names, "margins": self.study.margins.model_dump(mode="json"),
            "draws": self.study.bootstrap, "seed": self.study.seed,
            # Three settings are left out if they have their defaults, because each setting changes the key: the level
            # of the tests, the spread of retrained models that a study may state, and the shams.
            **({"alpha": alpha} if alpha != looks.ALPHA else {}),
            **({"spreads": self.study.retrain_spread} if self.study.retrain_spread else {}),
            **({"shams": self.shams} if self.shams else {}),
        }  # fmt: skip
        nodes = [judged[name] for name in names]
        compared = self.plan.add("comparisons", label, settings, {"metrics": nodes, "effects": nodes})
        self.plan.comparisons.append(Comparison(self.scenario, compared.outputs))

    def _add_configured_signals(
        self, splits: list[Node], models: list[Node], references: list[list[Node]]
    ) -> dict[str, list[Node]]:
        """Add the jobs of those signals whose settings depend on the options of metrics; return role of an input →
        nodes, {} if no metric needs one.

        These signals are predictions after relearning half of the forget set or after rounding weights to fewer bits
        ("relearned"), and one generated text for each prompt ("generations") or several ("sampled"). They are computed
        if a metric needs them: for ``models`` and, with "compared_" before the role, for the first of ``references``
        (retrained models, then their control) that differs from ``models``.
        """
        counterparts = [nodes for nodes in references if nodes != models]
        compared = {"": models} | ({"compared_": counterparts[0]} if counterparts else {})
        metrics, added = self.scenario.metrics.values(), {}
        for signal in registry.defining("signals", "asked"):
            options = [metric.options for metric in metrics if signal in metric.declared()]
            if options:
                settings = registry.load("signals", signal).asked(options)
                for prefix, nodes in compared.items():
                    added[f"{prefix}{role_of(signal)}"] = self._add_signals(splits, nodes, {signal: settings})
        return added
