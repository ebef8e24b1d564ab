"""Study → nodes: what has to be made, from what, under which name (`workflow.nodes`).

Pure: nothing is imported from torch, no artifact is read.
"""

import functools
from pathlib import Path

from unlearning.adversary.reference import needs
from unlearning.plugins import registry, source
from unlearning.study import selecting
from unlearning.study.schema import PAPER_SET, PLACES, Plugin, Scenario, Study
from unlearning.workflow.nodes import Case, Comparison, Node, Plan


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


def _where(population: str, blocks: list[int]) -> str:
    return f"{population}{blocks[0]}" + (f"to{blocks[-1]}" if len(blocks) > 1 else "")


def _step(request: int) -> list[str]:
    return [f"request{request}"] if request else []


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
        requests = [self._requests(data, *which) for which in self._blocks()]
        unlearned = {
            name: [self._after(data, steps, train, name) for steps, (_, train) in zip(requests, batches, strict=True)]
            for name in scenario.methods
        }
        references = [unlearned[name] for name in self._references() if name in unlearned]
        judged = {
            method: self._score(data, batches, method, made, references, selection)
            for method, made in unlearned.items()
        }
        self._compare(batches[0][1].name.rsplit("-", 2)[0], judged)
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
        return self.plan.add(
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

    def _data(self) -> Node:
        chosen = self.scenario.data
        use = self.scenario.use.model_dump(mode="json")
        options = {k: v for k, v in chosen.options.items() if k not in PLACES}
        settings = {"source": chosen.name, "options": options, "use": use, "seed": self.study.seed}
        files = [Path(chosen.options["path"])] if chosen.options.get("path") is not None else []
        module = registry.load("data", chosen.name) if chosen.file is None else None
        if hasattr(module, "content"):
            files += module.content(module.Options(**chosen.options))
        if files:
            content = [source.fingerprint(file) for file in files]
            settings["content"] = content[0] if len(content) == 1 else content
        label = chosen.name + (f"-noise{use['label_noise']:g}" if use["label_noise"] else "")
        label += f"-size{use['size']:g}" if use["size"] is not None else ""
        return self.plan.add(
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

    def _splits(self, data: Node, population: str, blocks: list[int], request: int) -> Node:
        """The memberships of one batch; in a sequence, after that request."""
        protocol = self.scenario.protocol
        # How many blocks there are is no part of a block's name, so that more blocks rename nothing; what another
        # scenario is called is none either, its selection is.
        unnamed = (*self.record.counts, "select_from", *(() if request else ("requests",)))
        options = {k: v for k, v in protocol.options.items() if k not in unnamed}
        step = {"request": request} if request else {}
        label = [data.name.rsplit("-", 1)[0], protocol.name, _where(population, blocks), *_step(request)]
        return self.plan.add(
            "splits", "-".join(label),
            {"protocol": protocol.name, "options": options, "population": population, "blocks": blocks,
             "seed": self.study.seed, **step},
            {"data": [data], "selection": self._selected}, {"data": "data", "selection": "selection"},
            ("membership.npz",), (protocol,), ("protocols",), place={"file": protocol.file},
        )  # fmt: skip

    def _requests(self, data: Node, population: str, blocks: list[int]) -> list[Node]:
        """The memberships of one batch after each request that was made, or just the one."""
        made = range(1, self.scenario.request + 1) if self.scenario.request else (0,)
        return [self._splits(data, population, blocks, request) for request in made]

    def _batch(self, data: Node, population: str, blocks: list[int]) -> tuple[Node, Node]:
        """The memberships of one batch and the models trained on them, which know of no request."""
        scenario = self.scenario
        requests = self._requests(data, population, blocks)
        base, where = data.name.rsplit("-", 1)[0], _where(population, blocks)
        recipe = scenario.recipe.model_dump(mode="json")
        train = self.plan.add(
            "train", f"{base}-{scenario.protocol.name}-{scenario.model.name}-{where}",
            {"model": scenario.model.name, "options": scenario.model.options, "recipe": recipe,
             "gradients": self._gradients(), **({"tokens": True} if self._needed("tokens") else {}),
             **self._weights()},
            {"data": [data], "splits": requests[:1], "base": self._base(data)},
            {"data": "data", "splits": "membership", "base": "models"},
            ("models.safetensors", "logits.npz"), (scenario.model,), ("models",),
            place={"file": scenario.model.file},
        )  # fmt: skip
        return requests[-1], train

    def _own_files(self, kind: str) -> dict[str, dict[str, str]]:
        """Where the user's own attacks or metrics lie."""
        return {"files": {name: one.file for name, one in getattr(self.scenario, kind).items() if one.file}}

    def _references(self) -> tuple[str, ...]:
        """Methods whose logits the metrics compare with: those of the protocol, or of metrics asked for besides."""
        also = [metric for name, metric in self.scenario.metrics.items() if name not in self.record.metrics]
        files = [registry.source_file("metrics", metric.name, metric.file) for metric in also]
        compare = not all(registry.constant(file, "ALONE") for file in files)
        return self.record.references or (("retrain", "retrain_control") if compare else ())

    def _base(self, data: Node) -> list[Node]:
        """The model that learns the public text first, if all others start from one."""
        model = self.scenario.model
        if model.options.get("base") is None:
            return []
        label = f"{data.name.rsplit('-', 1)[0]}-{model.name}"
        settings = {"model": model.name, "options": model.options, "recipe": model.options["base"],
                    "seed": self.study.seed, **self._weights()}  # fmt: skip
        return [self.plan.add(
            "pretrain", label, settings, {"data": [data]}, {"data": "data"}, ("models.safetensors",),
            (model,), ("models",), place={"file": model.file},
        )]  # fmt: skip

    def _weights(self) -> dict[str, str]:
        """What lies where a model's weights are taken from, if that is a file or folder here."""
        path = self.scenario.model.options.get("weights")
        return {"weights_content": source.fingerprint(Path(path))} if path and Path(path).exists() else {}

    def _gradients(self) -> bool | str:
        """Whether gradient norms are kept: False, True (of the forget set, for metrics) or "all" (for an attack)."""
        readers = self._needed("squared_norms")
        wanted = self.record.gradients or "metrics" in readers
        # What will be forgotten after each request is not known to the models before.
        return "all" if "attacks" in readers or (wanted and self.scenario.request) else wanted

    def _needed(self, signal: str) -> set[str]:
        """Which kinds of plug-ins of the scenario, attacks or metrics, read a signal besides logits."""
        chosen = [(kind, one.name, one.file) for kind in ("attacks", "metrics")
                  for one in getattr(self.scenario, kind).values()]  # fmt: skip
        declared = {one: registry.constant(registry.source_file(*one), "NEEDS") for one in chosen}
        return {kind for (kind, *_), found in declared.items() if signal in needs(found)}

    def _after(self, data: Node, requests: list[Node], train: Node, name: str) -> Node:
        """What a method makes of one batch, request by request; all at once where that is asked for, or is the same."""
        method, made = self.scenario.methods[name], train
        if method.name == "none":
            return train
        if len(requests) > 1 and (name in self.scenario.at_once or method.name == "retrain"):
            return self._unlearn(data, requests[-1], train, train, method, {"at_once": True})
        for splits in requests:
            made = self._unlearn(data, splits, train, made, method, {})
        return made

    def _unlearn(
        self, data: Node, splits: Node, train: Node, before: Node, method: Plugin, how: dict[str, bool]
    ) -> Node:
        """A request to the models that came out of ``before``, the training or an earlier request."""
        settings = {**train.settings, "method": method.name, "method_options": method.options, **how}
        if "file" in method.options:
            settings["method_code"] = source.digest(Path(method.options["file"]))
        step = _step(splits.settings.get("request", 0))
        return self.plan.add(
            "unlearn", "-".join([train.name.rsplit("-", 1)[0], *step, method.name]), settings,
            {"data": [data], "splits": [splits], "trained": [before], "base": self._base(data)},
            {"data": "data", "splits": "membership", "trained": "models", "base": "models"},
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
    ) -> Node:
        scenario, study = self.scenario, self.study
        splits, trains = [s for s, _ in batches], [t for _, t in batches]
        plugin = scenario.methods[method]
        label = "-".join([trains[0].name.rsplit("-", 2)[0], *_step(scenario.request), plugin.name])
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
            "relearned": "relearned",
            "compared_relearned": "relearned",
        }
        compared = dict(zip(("retrained", "control"), references, strict=False))
        compared |= self._relearned(data, splits, made, references)
        scores = None
        if self.record.attacked or scenario.attacks:
            attacks = {n: {"name": a.name, "options": a.options} for n, a in scenario.attacks.items()}
            own = {"own_rows": True} if self.record.own_rows else {}
            scores = self.plan.add(
                "attack", label, {"attacks": attacks, "seed": study.seed, **own}, read, roles, ("scores.parquet",),
                tuple(scenario.attacks.values()), ("attacks",) * len(attacks),
                place=self._own_files("attacks"),
            )  # fmt: skip
        wanted = tuple(scenario.metrics.values())
        metrics = self.plan.add(
            "metrics", label,
            {
                "metrics": {name: metric.options for name, metric in scenario.metrics.items()},
                "paper_set": [name for name in PAPER_SET if name in scenario.attacks],
                "bootstrap": study.bootstrap, "seed": study.seed,
            },
            {**read, **compared, "scores": [scores] if scores else [], "selection": selection}, roles,
            ("metrics.csv", "contributions.npz"),
            wanted, ("metrics",) * len(wanted), place=self._own_files("metrics"),
        )  # fmt: skip
        self.plan.cases.append(
            Case(
                scenario, method, metrics.outputs["metrics"], metrics.outputs["contributions"],
                scores.outputs["scores"] if scores else None,
                [n.outputs["logits"] for n in made], [n.outputs["logits"] for n in trains],
                [n.outputs["membership"] for n in splits], data.outputs["data"],
            )
        )  # fmt: skip
        return metrics

    def _compare(self, label: str, judged: dict[str, Node]) -> None:
        """Verdicts on all methods together, where some metric says how far they are from retraining."""
        files = [registry.source_file("metrics", name, one.file) for name, one in self.scenario.metrics.items()]
        if not any("DECIDES" in registry.defined(file) for file in files):
            return
        names = sorted(judged)
        settings = {
            "methods": names, "margins": self.study.margins.model_dump(mode="json"),
            "draws": self.study.bootstrap, "seed": self.study.seed,
        }  # fmt: skip
        nodes = [judged[name] for name in names]
        compared = self.plan.add(
            "comparisons", label, settings, {"metrics": nodes, "contributions": nodes},
            {"metrics": "metrics", "contributions": "contributions"},
            ("verdicts.csv", "distances.csv", "ranks.csv", "resolution.csv"),
        )  # fmt: skip
        self.plan.comparisons.append(Comparison(self.scenario, compared.outputs))

    def _relearned(
        self, data: Node, splits: list[Node], made: list[Node], references: list[list[Node]]
    ) -> dict[str, list[Node]]:
        """Where that is asked for, what these models and retrained ones (the control, for retraining itself) say while
        they learn a half of it once more."""
        if "relearn" not in self.scenario.metrics:
            return {}
        steps = self.scenario.metrics["relearn"].options["steps"]
        others = [one for one in references if one != made][:1]

        def node(of: Node, memberships: Node) -> Node:
            settings = {name: of.settings[name] for name in ("model", "options", "recipe")}
            return self.plan.add(
                "relearn", of.name.rsplit("-", 1)[0], {**settings, "steps": steps},
                {"data": [data], "splits": [memberships], "unlearned": [of]},
                {"data": "data", "splits": "membership", "unlearned": "models"}, ("relearned.npz",),
                (self.scenario.model,), ("models",), place={"file": self.scenario.model.file},
            )  # fmt: skip

        return {
            role: [node(of, memberships) for of, memberships in zip(some, splits, strict=True)]
            for role, some in (("relearned", made), *(("compared_relearned", some) for some in others))
        }

    def _add_imported(self) -> None:
        """Populations of models that came from elsewhere, then scores and metrics of every method."""
        scenario = self.scenario
        options, named = self.protocol.Options(**scenario.protocol.options), list(scenario.methods)
        judged = {}
        for method in named:
            found = self.protocol.populations(options, method, named)
            made = {part: self._import(method, *one) for part, one in found.items()}
            judged[method] = self._score_imported(method, made)
        self._compare(scenario.protocol.name, judged)

    def _import(self, method: str, kind: str, files: dict[str, Path]) -> Node:
        own = f"{method}-{kind}" if kind in self.protocol.OWN else kind
        content = {name: source.fingerprint(path) for name, path in files.items()}
        return self.plan.add(
            "external", f"{self.scenario.protocol.name}-{own}", {"population": kind, "content": content}, {}, {},
            ("data.npz", "membership.npz", "logits.npz"),
            place={"files": {name: str(path) for name, path in files.items()}},
        )  # fmt: skip

    def _score_imported(self, method: str, made: dict[str, Node]) -> Node:
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
            Case(
                scenario, method, metrics.outputs["metrics"], metrics.outputs["contributions"],
                scores[0].outputs["scores"] if scores else None, [target["logits"]],
                [original.outputs["logits"]] if original else [],
                [target["membership"]], target["data"],
            )
        )  # fmt: skip
        return metrics
