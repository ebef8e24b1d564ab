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


def _batch_name(population: str, blocks: list[int]) -> str:
    """Return the part of a node's label that names a ``population`` and its first and last block, such as "target0to3",
    or "target5" for one block."""
    return f"{population}{blocks[0]}" + (f"to{blocks[-1]}" if len(blocks) > 1 else "")


def method_label(method: Plugin, name: str) -> str:
    """Return the name of a method in nodes' labels: its name in the library. For a user's function (option
    ``function``), which has none, it is ``name``, the method's name in the study."""
    return name if "function" in method.options else method.name


def label_without_batch(train: Node) -> str:
    """Return the label of a training job without its last part, the name of the batch: data, protocol and model."""
    return train.label.rpartition("-")[0]


def entries(plugins: dict[str, Plugin]) -> dict[str, dict[str, Any]]:
    """Return name in the study → {"name": name in the library, "options": options} of attacks or metrics, as jobs'
    settings hold them."""
    return {key: {"name": plugin.name, "options": plugin.options} for key, plugin in plugins.items()}


def files_of(data: Plugin) -> list[Path]:
    """Return the files and folders that a data source reads: its option ``path``, if it has one, and those that its
    function ``content`` returns, if its file defines one."""
    path = data.options.get("path")
    files = [Path(path)] if isinstance(path, str) else []
    if data.defines("content"):
        files += data.module.content(data.schema(**data.options))
    return files


def attack_sets(attacks: dict[str, Plugin]) -> dict[str, list[str]]:
    """Return name of a set of attacks, with the ending "_set" → the names of those ``attacks`` that belong to the set.

    Metrics that take the maximum over several attacks declare sets of attacks in ``ATTACK_SETS``.

    Parameters
    ----------
    attacks
        Name in the study → plug-in.
    """
    sets: dict[str, list[str]] = {}
    for metric in registry.defining("metrics", "ATTACK_SETS"):
        for name, members in registry.constant("metrics", metric, file=None, identifier="ATTACK_SETS").items():
            sets[f"{name}_set"] = [attack for attack in members if attack in attacks]
    return sets


def after_request(request: int) -> list[str]:
    """Return the part of a node's label that says after which ``request`` of a sequence its result was made, such as
    ["request2"]; [] without a sequence (0)."""
    return [f"request{request}"] if request else []


def _unlearning_settings(train: Node, method: Plugin) -> dict[str, Any]:
    """Return the settings of a job in which a method unlearns the models of the job ``train``: the settings of the
    training, the method with its options, and, for a user's function (option ``file``), the digest of its code."""
    file = method.options.get("file")
    code = {"method_code": source.digest(Path(file))} if file else {}
    return {**train.settings, "method": method.name, "method_options": method.options, **code}


class ModelPlanner:
    """The planner of one scenario's models: it adds the jobs that read data, draw memberships, train and unlearn to
    ``plan``. A job that the plan has already is not added again.

    A population, such as "target", consists of numbered blocks: groups of models, such as pairs, whose memberships are
    drawn together. One job trains a batch of blocks.

    ``seed`` is the seed of memberships, and ``prefix`` begins the names of blocks. Tuning replaces both, because its
    models must differ from the evaluated ones.
    """

    def __init__(self, plan: Plan, scenario: Scenario) -> None:
        self.plan, self.study, self.scenario = plan, plan.study, scenario
        self.protocol = scenario.protocol.module
        self.declaration = scenario.record
        self.seed, self.prefix = plan.study.seed, ""
        self.signals: dict[str, Plugin] = {}  # those that attacks and metrics ask for, by name

    def most_models(self) -> int:
        """Return an upper bound on the models that are trained or unlearned for this scenario.

        It assumes that scenarios share nothing and that every method makes all models anew. A block counts as one model
        if the protocol has no function ``models`` that states the number.
        """
        methods = sum(plugin.name != "none" for plugin in self.scenario.methods.values())
        per_block: int = self._ask_protocol("models") if hasattr(self.protocol, "models") else 1
        return sum(self._populations().values()) * per_block * (1 + methods)

    def _populations(self) -> dict[str, int]:
        """Return population → number of its blocks, as the protocol's function ``blocks`` states them."""
        return dict(self._ask_protocol("blocks"))

    def _ask_protocol(self, name: str) -> Any:
        """Call the function ``name`` of the protocol's file with the scenario's options of the protocol, and return its
        result. Errors in it raise PluginError."""
        with guard(self.protocol.__file__):
            return getattr(self.protocol, name)(self.protocol.Options(**self.scenario.protocol.options))

    def add_selection(self) -> Node:
        """Add the job that selects samples by a metric of this scenario's trained models, with the memberships after
        the last request, and the jobs that it needs. Return the node of the selection, for another scenario that
        evaluates unlearning on the selected samples."""
        metric, batches = self.declaration.selects, self._add_batches()
        # Of each batch: the memberships after the last request, and the training.
        splits, trains = [requests[-1] for requests, _ in batches], [train for _, train in batches]
        return self.plan.add(
            "selection", label_without_batch(trains[0]),
            {"metric": metric, "options": self.scenario.metrics[metric].options},
            {"data": [self.data], "splits": splits, "originals": trains}, [Plugin("metrics", metric)],
        )  # fmt: skip

    @functools.cached_property
    def _selected(self) -> list[Node]:
        """The job that selects this scenario's samples by another scenario's models, as a list of one node; [] if the
        scenario does not select samples in this way. The job is added to the plan when this is first read."""
        scenario = selecting.source(self.scenario, self.study.scenarios)
        return [ModelPlanner(self.plan, scenario).add_selection()] if scenario else []

    def _add_batches(self) -> list[tuple[list[Node], Node]]:
        """Add the jobs of all batches of models, and return for each batch the nodes of its memberships after each
        request, and the node of its training.

        The models of one batch are trained by one job. A batch has as many blocks as the study's ``batch`` says. The
        last batch of a population may have fewer. A batch is divided if an earlier job has trained its first blocks as
        one batch (`_reusable_parts`).
        """
        size, batches = self.study.batch, []
        for population, count in self._populations().items():
            for start in range(0, count, size):
                blocks = list(range(start, min(start + size, count)))
                batches += [self._add_batch(population, part) for part in self._reusable_parts(population, blocks)]
        return batches

    @functools.cached_property
    def data(self) -> Node:
        """The job that reads the scenario's data, which is added to the plan when this is first read.

        The job's key depends on the content of the files that the data source reads, and not on where a source of the
        library finds them. Label noise and a smaller size than the source's are part of the job's label.
        """
        choice = self.scenario.data
        use = self.scenario.use.model_dump(mode="json")
        # Options that say where the files of a library's source lie; in a user's source, they may mean something else.
        found_at = {name: value for name, value in choice.options.items() if name in PLACES and choice.file is None}
        options = {name: value for name, value in choice.options.items() if name not in found_at}
        settings = {"source": choice.name, "options": options, "use": use, "seed": self.study.seed}
        files = files_of(choice)
        if files:
            settings["content"] = [source.fingerprint(path) for path in files]
        label = choice.name + (f"-noise{use['label_noise']:g}" if use["label_noise"] else "")
        label += f"-size{use['size']:g}" if use["size"] is not None else ""
        return self.plan.add(
            "data", label, settings, {}, [choice],  # {}: no inputs
            place={
                "file": choice.file, "where": f"scenarios.{self.scenario.name}.data",
                "terms": terms(choice), "contents": source.contents(None, files), **found_at,
            },
        )  # fmt: skip

    def _reusable_parts(self, population: str, blocks: list[int]) -> list[list[int]]:
        """Divide the ``blocks`` of one batch, so that models which an earlier run of the study with fewer blocks has
        trained are used again.

        The first part is the longest run of leading blocks that an earlier job trained as one batch. The blocks after
        it are divided in the same way. If no run of leading blocks was trained, all remaining blocks are one part. No
        number depends on how models are batched.
        """
        label = f"{self.data.label}-{self.scenario.protocol.name}-{self.scenario.model.name}"
        folders, parts = self.plan.folders("train"), []
        while blocks:
            runs = [blocks[:size] for size in range(len(blocks), 0, -1)]
            # Names of folders are compared first, because `_is_trained` plans the batch, which takes longer.
            runs = [run for run in runs if f"{label}-{_batch_name(population, run)}" in folders]
            parts.append(next((run for run in runs if self._is_trained(population, run)), blocks))
            blocks = blocks[len(parts[-1]) :]  # the blocks after the part that was just found
        return parts

    def _is_trained(self, population: str, blocks: list[int]) -> bool:
        """Return whether a finished job trained exactly these ``blocks`` as one batch: the spec.json of such a job
        exists, which a job writes last."""
        draft = ModelPlanner(self.plan.draft(), self.scenario)  # adds the batch to an empty plan, only to find its name
        draft.data = self.data  # has been planned: this fills the cached property, so that data are not planned again
        _, train = draft._add_batch(population, blocks)
        return Path(train.outputs["spec"]).exists()

    def _add_splits(self, population: str, blocks: list[int], request: int) -> Node:
        """Add the job that draws the memberships of one batch of models, and return its node.

        Parameters
        ----------
        blocks
            The numbers of the batch's blocks.
        request
            In a sequence of requests, the one after which the memberships hold; 0 without a sequence.
        """
        protocol = self.scenario.protocol
        # The node's key is computed from its settings. The number of blocks is left out of them, so that adding blocks
        # changes no key. So is the name of the scenario that selects the samples, because its selection is an input of
        # the node, and the number of requests if there is no sequence.
        unnamed = [*self.declaration.counts, "select_from"]
        if not request:
            unnamed.append("requests")
        options = {name: value for name, value in protocol.options.items() if name not in unnamed}
        step = {"request": request} if request else {}
        batch = self.prefix + _batch_name(population, blocks)
        label = [self.data.label, protocol.name, batch, *after_request(request)]
        return self.plan.add(
            "splits", "-".join(label),
            {"protocol": protocol.name, "options": options, "population": population, "blocks": blocks,
             "seed": self.seed, **step},
            {"data": [self.data], "selection": self._selected},
            [protocol],
            place={"file": protocol.file, "where": f"scenarios.{self.scenario.name}.protocol",
                   "terms": terms(protocol)},
        )  # fmt: skip

    def _add_batch(self, population: str, blocks: list[int]) -> tuple[list[Node], Node]:
        """Add the jobs that draw the memberships of one batch and train its models.

        Returns a list with the node of the memberships after each request of a sequence, or one node without a
        sequence; and the node of the models, which are trained before any request. Training reads the memberships
        after the first request; a request changes none of the rows on which models are trained.
        """
        scenario = self.scenario
        numbers = range(1, scenario.request + 1) if scenario.request else (0,)  # 0: no sequence
        requests = [self._add_splits(population, blocks, request) for request in numbers]
        batch, recipe = self.prefix + _batch_name(population, blocks), scenario.recipe.model_dump(mode="json")
        train = self.plan.add(
            "train", f"{self.data.label}-{scenario.protocol.name}-{scenario.model.name}-{batch}",
            {"model": scenario.model.name, "options": scenario.model.options, "recipe": recipe,
             **self._weights_digest()},
            {"data": [self.data], "splits": requests[:1], "base": self._add_base()},
            [scenario.model], place=self._place(),
        )  # fmt: skip
        return requests, train

    def _place(self, method: Plugin | None = None) -> dict[str, Any]:
        """Return a job's ``place``: facts that do not change its results.

        ``file`` and ``method_file`` are the files of the user's own model and ``method``, None for the library's;
        ``terms`` is {"time_limit": seconds} if the method has a time limit, else {}; models have none. Without a
        ``method``, ``method_file`` is missing.
        """
        model = self.scenario.model
        if method is None:
            return {"file": model.file, "terms": {}}
        return {"file": model.file, "method_file": method.file, "terms": terms(method)}

    def _own_files(self, kind: str) -> dict[str, dict[str, str]]:
        """Return facts for a job's ``place`` on the scenario's attacks or metrics (``kind``).

        ``files``: name → file of each user's own plug-in. ``terms``: name → {"time_limit": seconds} of each plug-in
        that has a time limit.
        """
        plugins = getattr(self.scenario, kind)
        return {
            "files": {name: plugin.file for name, plugin in plugins.items() if plugin.file},
            "terms": {name: conditions for name, plugin in plugins.items() if (conditions := terms(plugin))},
        }

    def _references(self) -> tuple[str, ...]:
        """Return the names of the methods with whose logits metrics compare.

        If the protocol names such methods, its names are returned. If it names none, what is returned depends on the
        metrics that the scenario adds to the protocol's defaults. If one of these compares with retrained models, the
        names of retraining and its control (an independent retraining) are returned, and () if none of these does.
        """
        if self.declaration.references:
            return self.declaration.references
        defaults = registry.defaults(self.declaration.offers)
        added = [metric for metric in self.scenario.metrics.values() if metric.name not in defaults]
        # A metric that needs no retrained models has ``ALONE = True`` in its file.
        alone = all(metric.constant("ALONE") for metric in added)
        return () if alone else ("retrain", "retrain_control")

    def _add_base(self) -> list[Node]:
        """Add the job that pretrains one network, from which all models of the scenario start, on the public text of
        the scenario's data. Return its node in a list; [] if the model's option ``base`` is not a recipe, which asks
        for this job."""
        model = self.scenario.model
        if not isinstance(model.options.get("base"), dict):
            return []
        label = f"{self.data.label}-{model.name}"
        settings = {"model": model.name, "options": model.options, "recipe": model.options["base"],
                    "seed": self.study.seed, **self._weights_digest()}  # fmt: skip
        return [self.plan.add(
            "pretrain", label, settings, {"data": [self.data]}, [model],
            place={**self._place(), "where": f"scenarios.{self.scenario.name}.model"},
        )]  # fmt: skip

    def _weights_digest(self) -> dict[str, str]:
        """Return {"weights_content": digest} of the file or folder from which the model's weights are read; {} if the
        option ``weights`` is not the path of an existing one."""
        path = self.scenario.model.options.get("weights")
        if isinstance(path, str) and path and Path(path).exists():
            return {"weights_content": source.fingerprint(Path(path))}
        return {}

    def _signal_settings(self, kind: str, plugins: Iterable[Plugin]) -> dict[str, dict[str, str]]:
        """Return signal → the settings of its job, such as which rows to query, for the signals that these ``plugins``
        need.

        ``kind``: "attacks" or "metrics". The settings are what the function ``settings`` of the signal's file returns.
        Without this function, all candidates are queried: forgotten and held-out samples. A signal with a ``RECORD``
        and without ``settings`` is left out, because its settings depend on the metrics' options: relearned predictions
        and generated texts. `ScenarioPlanner._add_configured_signals` plans these. Signals of the library without
        ``read``, which no job computes, are left out too. Needs that are no signals are ignored. All signals that the
        plug-ins need are added to ``signals`` of this planner.
        """
        asked = {signal.name: signal for plugin in plugins for signal in plugin.signals}
        signals = {}
        for name, signal in sorted(asked.items()):
            settings_for = signal.constant("settings")
            if signal.file or (signal.defines("read") and (settings_for or not signal.defines("RECORD"))):
                signals[name] = settings_for(kind) if settings_for else {"rows": "candidates"}
        self.signals |= asked
        return signals

    def _add_signals(self, splits: list[Node], models: list[Node], signals: dict[str, dict[str, Any]]) -> list[Node]:
        """Add one job for each signal and batch of models, which computes the signal; return their nodes, signal by
        signal.

        The job that makes the models computes their signals too (``within``), unless it is done already without them or
        they had a job of their own before; then a signal has a job of its own.

        Parameters
        ----------
        splits
            For each batch, the node of its memberships.
        models
            For each batch, the node of its models.
        signals
            Name → settings.
        """
        nodes = []
        for signal, settings in signals.items():
            chosen = self.signals.get(signal, Plugin("signals", signal))
            for memberships, node in zip(splits, models, strict=True):
                of_model = {name: node.settings[name] for name in ("model", "options", "recipe")}
                nodes.append(self.plan.add(
                    "signals", f"{node.label}-{signal}", {**of_model, "signal": signal, **settings},
                    {"data": [self.data], "splits": [memberships], "models": [node]},
                    [self.scenario.model, chosen], place={**self._place(), "signal_file": chosen.file}, within=node,
                ))  # fmt: skip
        return nodes

    def _add_method(self, requests: list[Node], train: Node, name: str) -> Node:
        """Add the jobs by which a method unlearns one batch of models, and return the node of the models after the last
        request.

        The requests are handled one after the other, unless the study states that the method handles all at once.
        Retraining handles all requests at once, because the result is the same. A sham, too, handles all requests at
        once: it is a random change of the weights, as large as the change by another method, whose jobs are added too.
        If options of the method are tuned, the job of tuning is added too.

        Parameters
        ----------
        requests
            The nodes of the memberships after each request.
        train
            The node of the trained models, which the method ``none`` leaves unchanged.
        name
            The method's name in the study.
        """
        method, models = self.scenario.methods[name], train
        several = len(requests) > 1
        if method.name == "none":
            return train
        if name in self.shams:
            other = self.shams[name]
            like = [self._add_method(requests, train, other)] if other else []
            return self._add_unlearning(requests[-1], train, before=train, name=name, at_once=several, like=like)
        if several and (name in self.scenario.at_once or method.name == "retrain"):
            return self._add_unlearning(requests[-1], train, before=train, name=name, at_once=True)
        tuned = [self._add_tuning(method, name, method.tune)] if method.tune else []
        for splits in requests:  # each request changes the models that the preceding one left
            models = self._add_unlearning(splits, train, before=models, name=name, tuned=tuned)
        return models

    @functools.cached_property
    def shams(self) -> dict[str, str | None]:
        """Name of each sham of the scenario (a random change of the weights) → the method whose change it matches in
        size, as the sham's option ``like`` says, or None without this option.

        Raises ValueError if the scenario lacks that method, or if that method does not unlearn.
        """
        methods = self.scenario.methods
        shams = {name: method.options.get("like") for name, method in methods.items() if method.name == "sham"}
        unlearning = [name for name, method in methods.items() if method.name not in ("none", "retrain", "sham")]
        for name, like in shams.items():
            if like and like not in unlearning:
                raise ValueError(
                    f"scenarios.{self.scenario.name}.methods.{name}.like: a sham cannot be like {like!r}; choose a "
                    f"method of this scenario: {', '.join(unlearning) or 'add one'}"
                )
        return shams

    def _add_tuning(self, method: Plugin, name: str, tune: Tune) -> Node:
        """Add the job that searches the best options of a method, and the jobs that train and retrain the models on
        which it searches.

        Return the node of the search. The models on which it searches are ``tune.pairs`` blocks (pairs of models, where
        the protocol has pairs) of the protocol's first population. They are one batch, drawn with a seed of their own,
        and share only the data with the evaluated models.

        Parameters
        ----------
        name
            The method's name in the study.
        tune
            The settings of the search.
        """
        scenario, trials = self.scenario, ModelPlanner(self.plan, self.scenario)  # ``trials``: for models of the search
        trials.seed, trials.prefix, trials.data = seed_of(self.study.seed, "tune"), "tuning", self.data
        population = next(iter(self._populations()))
        # There is one node of memberships, because a scenario with tuned methods has no sequence of requests.
        (splits,), train = trials._add_batch(population, list(range(tune.pairs)))
        retrained = trials._add_unlearning(splits, train, before=train, name="retrain")
        attacks, metrics = self._trial_plugins(tune.objective)
        settings = {
            **_unlearning_settings(train, method),
            "tune": tune.model_dump(mode="json"), "margins": self.study.margins.model_dump(mode="json"),
            "attacks": entries(attacks), "metrics": entries(metrics), **attack_sets(attacks), "seed": self.study.seed,
        }  # fmt: skip
        return self.plan.add(
            "tune", f"{train.label}-{method_label(method, name)}", settings,
            {"data": [self.data], "splits": [splits], "trained": [train], "originals": [train],
             "retrained": [retrained], "base": self._add_base()},
            [scenario.model, method, *attacks.values(), *metrics.values()], place=self._place(method),
        )  # fmt: skip

    def _trial_plugins(self, objective: str) -> tuple[dict[str, Plugin], dict[str, Plugin]]:
        """Return the attacks and the metrics, name → plug-in, that measure how far a trial of tuning is from
        retraining.

        With the ``objective`` "accuracy", there are no attacks, and only the library's metrics that compute accuracies.
        Otherwise, all attacks and metrics of the scenario are returned, except users' own files, plug-ins that read
        more than logits, and metrics that cannot be compared with retraining.
        """
        attacks, metrics = self.scenario.attacks, self.scenario.metrics
        if objective == "accuracy":
            of_accuracy = registry.defining("metrics", "accuracies_by_role")
            of_library = {key: metric for key, metric in metrics.items() if not metric.file}
            return {}, {key: metric for key, metric in of_library.items() if metric.name in of_accuracy}
        attacks = {key: attack for key, attack in attacks.items() if not self._is_left_out(attack)}
        metrics = {key: metric for key, metric in metrics.items() if not self._is_left_out(metric)}
        return attacks, metrics

    def _is_left_out(self, plugin: Plugin) -> bool:
        """Return whether trials of tuning leave out this attack or metric: a user's own file, one that reads more than
        logits, or a metric whose file has no function ``effects``, so that it cannot be compared with retraining."""
        signals = {*plugin.declared()} & {*registry.defining("signals", "read")}
        return bool(plugin.file or signals) or (plugin.kind == "metrics" and not plugin.defines("effects"))

    def _add_unlearning(
        self,
        splits: Node,
        train: Node,
        before: Node,
        name: str,
        tuned: Sequence[Node] = (),
        at_once: bool = False,
        like: Sequence[Node] = (),
    ) -> Node:
        """Add the job in which a method unlearns one batch of models, and return its node.

        Parameters
        ----------
        splits
            The memberships after the request.
        train
            The training of the models.
        before
            The job that made the models which the method changes: ``train``, or the method's job of the preceding
            request.
        name
            The method's name in the study.
        tuned
            At most one job, which chooses the method's options.
        at_once
            The method gets all requests of a sequence together.
        like
            For a sham (a random change of the weights), at most one job, whose change it matches in size.
        """
        method = self.scenario.methods[name]
        settings = {**_unlearning_settings(train, method), **({"at_once": True} if at_once else {})}
        step = after_request(splits.settings.get("request", 0))
        return self.plan.add(
            "unlearn", "-".join([train.label, *step, method_label(method, name)]), settings,
            {"data": [self.data], "splits": [splits], "trained": [before], "base": self._add_base(), "tuned": [*tuned],
             "like": [*like]},
            [self.scenario.model, method],
            place=self._place(method),
        )  # fmt: skip
