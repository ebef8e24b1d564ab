"""Plan the models of one scenario: data, memberships, training and unlearning."""

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from unlearning_audit.plugins import registry, source
from unlearning_audit.plugins.guard import guard
from unlearning_audit.randomness.keyed import seed_of
from unlearning_audit.study import selecting
from unlearning_audit.study.choice import Plugin, Tune
from unlearning_audit.study.schema import PLACES, Scenario
from unlearning_audit.workflow.nodes import Node, Plan, terms


def _where(population: str, blocks: list[int]) -> str:
    """Return the part of a node's label that names a ``population`` and its first and last block, such as "target0to3",
    or "target5" for one block."""
    return f"{population}{blocks[0]}" + (f"to{blocks[-1]}" if len(blocks) > 1 else "")


def method_label(method: Plugin, name: str) -> str:
    """Return the name of a method in nodes' labels: its name in the library or, for a user's function (option
    ``function``), ``name``, its name in the study."""
    return name if "function" in method.options else method.name


def entries(plugins: dict[str, Plugin]) -> dict[str, dict[str, Any]]:
    """Return name in the study → {"name": name in the library, "options": options} of attacks or metrics, as jobs'
    settings hold them."""
    return {key: {"name": plugin.name, "options": plugin.options} for key, plugin in plugins.items()}


def inputs(data: Plugin) -> list[Path]:
    """Return the files and folders that a data source reads: its option ``path``, and those that its function
    ``content`` returns."""
    path = data.options.get("path")
    files = [Path(path)] if isinstance(path, str) else []
    if registry.defines("data", data.name, data.file, "content"):
        module = registry.load("data", data.name, data.file)
        files += module.content(module.Options(**data.options))
    return files


def sets(attacks: dict[str, Plugin]) -> dict[str, list[str]]:
    """Return name of a set of attacks, with the ending "_set" → the names of those ``attacks`` that belong to the set.

    ``attacks``: name in the study → plug-in. Metrics that take the maximum over several attacks declare sets of attacks
    in ``ATTACK_SETS``.
    """
    metrics = registry.defining("metrics", "ATTACK_SETS")
    # Pairs of the name of a set and the names of all attacks in it, of all metrics that declare sets.
    pairs = [item for name in metrics for item in registry.constant("metrics", name, None, "ATTACK_SETS").items()]
    return {f"{name}_set": [attack for attack in names if attack in attacks] for name, names in pairs}


def after_request(request: int) -> list[str]:
    """Return the part of a node's label that says after which ``request`` of a sequence its result was made, such as
    ["request2"]; [] without a sequence (0)."""
    return [f"request{request}"] if request else []


def _unlearning(train: Node, method: Plugin) -> dict[str, Any]:
    """Return the settings of a job in which a method unlearns the models of the job ``train``, with the digest of a
    user's function."""
    file = method.options.get("file")
    code = {"method_code": source.digest(Path(file))} if file else {}
    return {**train.settings, "method": method.name, "method_options": method.options, **code}


class Models:
    """The planner of one scenario's models: it adds the jobs that read data, draw memberships, train and unlearn to
    ``plan``.

    A population, such as "target", consists of numbered blocks: groups of models, such as pairs, whose memberships are
    drawn together. One job trains a batch of blocks.

    ``seed`` is the seed of memberships, and ``prefix`` begins the names of blocks. Tuning replaces both, because its
    models must differ from the evaluated ones.
    """

    def __init__(self, plan: Plan, scenario: Scenario) -> None:
        self.plan, self.study, self.scenario = plan, plan.study, scenario
        self.protocol = registry.load("protocols", scenario.protocol.name, scenario.protocol.file)
        self.record = scenario.record
        self.seed, self.prefix = plan.study.seed, ""

    def count(self) -> int:
        """Return an upper bound on the models that are trained or unlearned for this scenario.

        It assumes that scenarios share nothing and that every method makes all models anew. A block counts as one model
        if the protocol has no function ``models`` that states the number.
        """
        methods = sum(plugin.name != "none" for plugin in self.scenario.methods.values())
        per_block: int = self._answer("models") if hasattr(self.protocol, "models") else 1
        return sum(self._populations().values()) * per_block * (1 + methods)

    def _populations(self) -> dict[str, int]:
        """Return population → number of its blocks, as the protocol's function ``blocks`` states them."""
        return dict(self._answer("blocks"))

    def _answer(self, name: str) -> Any:
        """Call the protocol's function ``name`` with the scenario's options of the protocol, and return its result."""
        with guard(self.protocol.__file__):
            return getattr(self.protocol, name)(self.protocol.Options(**self.scenario.protocol.options))

    def selection(self) -> Node:
        """Add the job that selects samples by a metric of this scenario's trained models, and the jobs that it needs.
        Return its node, for another scenario that evaluates unlearning on the selected samples."""
        metric, batches = self.record.selects, self._batches()
        # The label is a training's name without the name of its batch and its key. Of each batch, memberships after the
        # last request and trained models are read.
        return self.plan.add(
            "selection", batches[0][1].name.rsplit("-", 2)[0],
            {"metric": metric, "options": self.scenario.metrics[metric].options},
            {"data": [self.data], "splits": [r[-1] for r, _ in batches], "originals": [t for _, t in batches]},
            [("metrics", Plugin(metric, None, {}))],
        )  # fmt: skip

    @functools.cached_property
    def _selected(self) -> list[Node]:
        """The job that selects this scenario's samples by another scenario's models, as a list of one node; [] if the
        scenario does not select samples in this way."""
        scenario = selecting.source(self.scenario, self.study.scenarios)
        return [Models(self.plan, scenario).selection()] if scenario else []

    def _batches(self) -> list[tuple[list[Node], Node]]:
        """Add the jobs of all batches of models, and return for each batch the nodes of its memberships after each
        request, and the node of its training."""
        return [self._batch(population, blocks) for population, blocks in self._blocks()]

    @functools.cached_property
    def data(self) -> Node:
        """The job that reads the scenario's data. The digests of files that the data source reads count in its key."""
        choice = self.scenario.data
        use = self.scenario.use.model_dump(mode="json")
        places = {k: v for k, v in choice.options.items() if k in PLACES and choice.file is None}
        options = {k: v for k, v in choice.options.items() if k not in places}
        settings = {"source": choice.name, "options": options, "use": use, "seed": self.study.seed}
        files = inputs(choice)
        if files:
            settings["content"] = [source.fingerprint(path) for path in files]
        label = choice.name + (f"-noise{use['label_noise']:g}" if use["label_noise"] else "")
        label += f"-size{use['size']:g}" if use["size"] is not None else ""
        return self.plan.add(
            "data", label, settings, {}, [("data", choice)],
            place={
                "file": choice.file, "where": f"scenarios.{self.scenario.name}.data",
                "terms": terms(choice), "contents": source.contents(None, files), **places,
            },
        )  # fmt: skip

    def _blocks(self) -> list[tuple[str, list[int]]]:
        """Return every batch of blocks as (population, block numbers). The models of one batch are trained by one
        job."""
        size = self.study.batch
        return [
            (population, part)
            for population, count in self._populations().items()
            for start in range(0, count, size)
            for part in self._parts(population, list(range(start, min(start + size, count))))
        ]

    def _parts(self, population: str, blocks: list[int]) -> list[list[int]]:
        """Divide the ``blocks`` of one batch, so that batches which a study with fewer blocks has trained are used
        again.

        Each part is the longest run of leading blocks that exists in the results as one batch; if there is none, all
        remaining blocks are one part. No number depends on how models are batched.
        """
        label = f"{self.data.label}-{self.scenario.protocol.name}-{self.scenario.model.name}"
        folders, parts = self.plan.folders("train"), []
        while blocks:
            sizes = [n for n in range(len(blocks), 0, -1) if f"{label}-{_where(population, blocks[:n])}" in folders]
            size = next((n for n in sizes if self._trained(population, blocks[:n])), len(blocks))
            parts.append(blocks[:size])
            blocks = blocks[size:]
        return parts

    def _trained(self, population: str, blocks: list[int]) -> bool:
        """Return whether a finished job trained exactly these ``blocks`` as one batch."""
        draft = Models(self.plan.draft(), self.scenario)  # adds the batch to an empty plan, only to find its name
        draft.data = self.data  # is planned already: this fills the cached property
        _, train = draft._batch(population, blocks)
        return Path(train.outputs["spec"]).exists()

    def _splits(self, population: str, blocks: list[int], request: int) -> Node:
        """Add the job that draws the memberships of one batch of models, and return its node.

        ``blocks``: the numbers of the batch's blocks. ``request``: in a sequence of requests, the one after which the
        memberships hold; 0 without a sequence.
        """
        protocol = self.scenario.protocol
        # Settings name a node. The number of blocks is left out, so that adding blocks renames no node. So is the name
        # of the scenario that selects the samples, because its selection is an input of the node.
        unnamed = (*self.record.counts, "select_from", *(() if request else ("requests",)))
        options = {k: v for k, v in protocol.options.items() if k not in unnamed}
        step = {"request": request} if request else {}
        where = self.prefix + _where(population, blocks)
        label = [self.data.label, protocol.name, where, *after_request(request)]
        return self.plan.add(
            "splits", "-".join(label),
            {"protocol": protocol.name, "options": options, "population": population, "blocks": blocks,
             "seed": self.seed, **step},
            {"data": [self.data], "selection": self._selected},
            [("protocols", protocol)],
            place={"file": protocol.file, "where": f"scenarios.{self.scenario.name}.protocol",
                   "terms": terms(protocol)},
        )  # fmt: skip

    def _batch(self, population: str, blocks: list[int]) -> tuple[list[Node], Node]:
        """Add the jobs that draw the memberships of one batch and train its models.

        Returns a list with the node of the memberships after each request of a sequence, or one node without a
        sequence; and the node of the models, which were trained before any request.
        """
        scenario = self.scenario
        numbers = range(1, scenario.request + 1) if scenario.request else (0,)
        requests = [self._splits(population, blocks, request) for request in numbers]
        where, recipe = self.prefix + _where(population, blocks), scenario.recipe.model_dump(mode="json")
        train = self.plan.add(
            "train", f"{self.data.label}-{scenario.protocol.name}-{scenario.model.name}-{where}",
            {"model": scenario.model.name, "options": scenario.model.options, "recipe": recipe,
             **self._weights()},
            {"data": [self.data], "splits": requests[:1], "base": self._base()},
            [("models", scenario.model)], place=self._on(),
        )  # fmt: skip
        return requests, train

    def _on(self, method: Plugin | None = None) -> dict[str, Any]:
        """Return facts for a job's ``place`` that do not change results.

        ``file`` and ``method_file`` are the files of the user's own model and ``method``, None for the library's;
        ``terms`` holds the job's time limit, if one is set. Without a ``method``, ``method_file`` is missing.
        """
        model = self.scenario.model
        if method is None:
            return {"file": model.file, "terms": terms(model)}
        return {"file": model.file, "method_file": method.file, "terms": terms(model, method)}

    def _own_files(self, kind: str) -> dict[str, dict[str, str]]:
        """Return facts for a job's ``place`` on the scenario's attacks or metrics (``kind``).

        ``files``: name → file of each user's own plug-in. ``terms``: name → time limit of each plug-in that has one.
        """
        plugins = getattr(self.scenario, kind)
        return {
            "files": {name: plugin.file for name, plugin in plugins.items() if plugin.file},
            "terms": {name: conditions for name, plugin in plugins.items() if (conditions := terms(plugin))},
        }

    def _references(self) -> tuple[str, ...]:
        """Return the names of the methods with whose logits metrics compare.

        If the protocol names such methods, its names are returned. Otherwise, the names of retraining and its control
        are returned if the study itself names a metric that compares with retrained models, and () if it does not.
        """
        defaults = registry.defaults(self.record.offers)
        also = [metric for metric in self.scenario.metrics.values() if metric.name not in defaults]
        # A metric that needs no retrained models has ``ALONE = True`` in its file.
        compare = not all(registry.constant("metrics", metric.name, metric.file, "ALONE") for metric in also)
        return self.record.references or (("retrain", "retrain_control") if compare else ())

    def _base(self) -> list[Node]:
        """Add the job that trains one model on public text, if all others start from it (the model's option ``base`` is
        a recipe). Return its node in a list; [] otherwise."""
        model = self.scenario.model
        if not isinstance(model.options.get("base"), dict):
            return []
        label = f"{self.data.label}-{model.name}"
        settings = {"model": model.name, "options": model.options, "recipe": model.options["base"],
                    "seed": self.study.seed, **self._weights()}  # fmt: skip
        return [self.plan.add(
            "pretrain", label, settings, {"data": [self.data]}, [("models", model)],
            place={**self._on(), "where": f"scenarios.{self.scenario.name}.model"},
        )]  # fmt: skip

    def _weights(self) -> dict[str, str]:
        """Return {"weights_content": digest} of the file or folder from which the model's weights are read; {} if the
        option ``weights`` is not the path of an existing one."""
        path = self.scenario.model.options.get("weights")
        exists = isinstance(path, str) and path and Path(path).exists()
        return {"weights_content": source.fingerprint(Path(str(path)))} if exists else {}

    def _signals(self, kind: str, plugins: Iterable[Plugin]) -> dict[str, dict[str, str]]:
        """Return signal → the settings of its job, such as which rows to query, for the signals that these ``plugins``
        need.

        ``kind``: "attacks" or "metrics". A signal whose file has no function ``settings`` queries all candidates:
        forgotten and held-out samples. A signal with a ``RECORD`` and without ``settings`` is left out, because its
        settings depend on the metrics' options (`Judged._asked_again`): relearned predictions and generated texts.
        """
        asked = {signal for plugin in plugins for signal in registry.declared(kind, plugin.name, plugin.file)}
        signals = {}
        for signal in sorted(asked.intersection(registry.defining("signals", "read"))):
            settings = registry.constant("signals", signal, None, "settings")
            if settings or not registry.defines("signals", signal, None, "RECORD"):
                signals[signal] = settings(kind) if settings else {"rows": "candidates"}
        return signals

    def _read_of(self, splits: list[Node], models: list[Node], signals: dict[str, dict[str, Any]]) -> list[Node]:
        """Add one job for each signal and batch of models, which computes the signal; return their nodes, signal by
        signal.

        ``splits`` and ``models``: for each batch, the nodes of memberships and models. ``signals``: name → settings.
        The job that makes the models computes their signals too (``within``), unless it is done already; then a signal
        has a job of its own.
        """
        return [
            self.plan.add(
                "signals", f"{node.label}-{signal}",
                {**{name: node.settings[name] for name in ("model", "options", "recipe")}, "signal": signal, **more},
                {"data": [self.data], "splits": [memberships], "models": [node]},
                [("models", self.scenario.model), ("signals", Plugin(signal, None, {}))],
                place=self._on(), within=node,
            )
            for signal, more in signals.items()
            for memberships, node in zip(splits, models, strict=True)
        ]  # fmt: skip

    def _after(self, requests: list[Node], train: Node, name: str) -> Node:
        """Add the jobs by which a method unlearns one batch of models, and return the node of the models after the last
        request.

        ``requests``: the nodes of the memberships after each request. ``train``: the node of the trained models, which
        the method ``none`` leaves unchanged. ``name``: the method's name in the study.

        The requests are handled one after the other, unless the study states that the method handles all at once.
        Retraining handles all requests at once, because the result is the same. A sham does so too: it is a random
        change of the weights, as large as the change by another method. If options of the method are tuned, the jobs of
        tuning are added too.
        """
        method, models = self.scenario.methods[name], train
        if method.name == "none":
            return train
        if name in self.shams:
            like = [self._after(requests, train, other)] if (other := self.shams[name]) else []
            return self._unlearn(requests[-1], train, train, name, at_once=len(requests) > 1, like=like)
        if len(requests) > 1 and (name in self.scenario.at_once or method.name == "retrain"):
            return self._unlearn(requests[-1], train, train, name, at_once=True)
        tuned = [self._tune(method, name, method.tune)] if method.tune else []
        for splits in requests:
            models = self._unlearn(splits, train, models, name, tuned)
        return models

    @functools.cached_property
    def shams(self) -> dict[str, str | None]:
        """Name of each sham of the scenario (a control that changes weights at random) → the method whose change it
        matches in size, or None. Raises ValueError if the scenario lacks that method, or if that method does not
        unlearn."""
        methods = self.scenario.methods
        shams = {name: method.options.get("like") for name, method in methods.items() if method.name == "sham"}
        others = [name for name, method in methods.items() if method.name not in ("none", "retrain", "sham")]
        for name, like in shams.items():
            if like and like not in others:
                raise ValueError(
                    f"scenarios.{self.scenario.name}.methods.{name}.like: a sham cannot be like {like!r}; choose a "
                    f"method of this scenario: {', '.join(others) or 'add one'}"
                )
        return shams

    def _tune(self, method: Plugin, name: str, tune: Tune) -> Node:
        """Add the job that searches the best options of a method, on models drawn for tuning only, and the jobs that it
        needs. Return its node.

        ``method``: the method, with the name ``name`` in the study. ``tune``: the search; its ``pairs`` are the most
        pairs of models that are drawn for it, or blocks if the protocol has no pairs. The models are one batch of the
        protocol's first population, drawn with a seed of their own. They share only the data with the evaluated models.
        """
        scenario, trials = self.scenario, Models(self.plan, self.scenario)
        trials.seed, trials.prefix, trials.data = seed_of(self.study.seed, "tune"), "tuning", self.data
        population = next(iter(self._populations()))
        # There is one node of memberships, because a scenario with tuned methods has no sequence of requests.
        (splits,), train = trials._batch(population, list(range(tune.pairs)))
        retrained = trials._unlearn(splits, train, train, "retrain")
        attacks, metrics = self._asked_of_trials(tune.objective)
        settings = {
            **_unlearning(train, method),
            "tune": tune.model_dump(mode="json"), "margins": self.study.margins.model_dump(mode="json"),
            "attacks": entries(attacks), "metrics": entries(metrics), **sets(attacks), "seed": self.study.seed,
        }  # fmt: skip
        plugins = [("models", scenario.model), ("methods", method)]
        plugins += [("attacks", attack) for attack in attacks.values()]
        plugins += [("metrics", metric) for metric in metrics.values()]
        return self.plan.add(
            "tune", f"{train.label}-{method_label(method, name)}", settings,
            {"data": [self.data], "splits": [splits], "trained": [train], "originals": [train],
             "retrained": [retrained], "base": self._base()},
            plugins, place=self._on(method),
        )  # fmt: skip

    def _asked_of_trials(self, objective: str) -> tuple[dict[str, Plugin], dict[str, Plugin]]:
        """Return the attacks and the metrics, name → plug-in, that measure how far a trial of tuning is from
        retraining.

        With the ``objective`` "accuracy", there are no attacks, and only the library's metrics that compute accuracies.
        Otherwise, all attacks and metrics of the scenario are returned, except those that `_beyond` excludes.
        """
        attacks, metrics = self.scenario.attacks, self.scenario.metrics
        if objective == "accuracy":
            able = registry.defining("metrics", "accuracies_by_role")
            return {}, {key: metric for key, metric in metrics.items() if not metric.file and metric.name in able}
        attacks, metrics = (
            {key: plugin for key, plugin in plugins.items() if not self._beyond(kind, plugin)}
            for kind, plugins in (("attacks", attacks), ("metrics", metrics))
        )
        return attacks, metrics

    def _beyond(self, kind: str, plugin: Plugin) -> bool:
        """Return whether trials of tuning leave out this attack or metric: a user's own file, one that reads more than
        logits, or a metric without effects, which cannot be compared with retraining."""
        signals = {*registry.declared(kind, plugin.name, plugin.file)} & {*registry.defining("signals", "read")}
        comparable = kind != "metrics" or registry.defines(kind, plugin.name, plugin.file, "effects")
        return bool(plugin.file or signals) or not comparable

    def _unlearn(
        self, splits: Node, train: Node, before: Node, name: str, tuned: Sequence[Node] = (), at_once: bool = False,
        like: Sequence[Node] = (),
    ) -> Node:  # fmt: skip
        """Add the job in which a method unlearns one batch of models, and return its node.

        ``splits``: the memberships after the request. ``before``: the job that made the models which the method
        changes, the training ``train`` or the preceding request. ``name``: the method's name in the study. ``tuned``:
        jobs that choose the method's options. ``at_once``: the method gets all requests of a sequence together.
        ``like``: for a sham (a random change of the weights), the job whose change it matches in size.
        """
        method = self.scenario.methods[name]
        settings = {**_unlearning(train, method), **({"at_once": True} if at_once else {})}
        step = after_request(splits.settings.get("request", 0))
        return self.plan.add(
            "unlearn", "-".join([train.label, *step, method_label(method, name)]), settings,
            {"data": [self.data], "splits": [splits], "trained": [before], "base": self._base(), "tuned": [*tuned],
             "like": [*like]},
            [("models", self.scenario.model), ("methods", method)],
            place=self._on(method),
        )  # fmt: skip
