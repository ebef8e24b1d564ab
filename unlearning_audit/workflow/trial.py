"""Try a user's file on a small problem: check that it keeps its contract, and report what it does."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, log_softmax

from unlearning_audit.evaluation import mistakes
from unlearning_audit.plugins import registry, syntax
from unlearning_audit.plugins.guard import PluginError, guard
from unlearning_audit.plugins.isolation import isolated
from unlearning_audit.plugins.names import LONGEST
from unlearning_audit.stats import phi
from unlearning_audit.store.files import NoAnswerError
from unlearning_audit.study.choice import Plugin
from unlearning_audit.study.schema import STAGES
from unlearning_audit.workflow.nodes import Plan

if TYPE_CHECKING:
    from torch import nn

    from unlearning_audit.training.recipe import Recipe
    from unlearning_audit.training.stack import ModelStack
    from unlearning_audit.training.streams import Rows

#: The number of training samples, and also of samples that are never seen; the share of training samples to forget.
TRAIN, FORGET = 400, 0.25

#: Seconds that training two models may take. If they would take longer, fewer epochs are trained.
SECONDS = 20.0


def kind(file: str, function: str = "") -> str:
    """Return the kind of plug-in that a file defines, such as "methods", by the names at its top level. If a
    ``function`` is named, the file is a method.

    Raises ValueError in one sentence for a missing file or function, and for a file that does not define a plug-in.
    """
    if Path(file).is_dir():
        raise ValueError(registry.no_file(file))
    if not Path(file).is_file():
        kinds = ", ".join(kind.with_article for kind in registry.KINDS.values())
        raise ValueError(f"{file}: there is no such file; give the file of {kinds}")
    names = syntax.defined(Path(file))
    if function and function.partition(".")[0] not in names:
        raise ValueError(f"{file}: a function {function} is missing; define it or name another one")
    known = registry.KINDS.items()
    plugin_kind = "methods" if function else next((name for name, kind in known if kind.mark in names), None)
    if plugin_kind is None:
        parts = ", ".join(f"{kind.mark} ({kind.with_article})" for _, kind in known)
        advice = "name the function that unlearns, such as --set function=forget, or let audit new write a file"
        raise ValueError(f"{file}: it defines none of {parts}; {advice}")
    return plugin_kind


def name_of(file: str | Path, kind: str = "") -> str:
    """Return the name of a user's file in a study: its stem, shortened if necessary.

    It begins with "my_" if the library has a plug-in of the same ``kind`` and name, or, for a ``study``, if results
    have a folder of that name.

    >>> [name_of("repo/Scrub-2.py", "methods"), name_of("scrub.py", "methods"), name_of("train.yaml", "study")]
    ['scrub_2', 'my_scrub', 'my_train']
    """
    stem = Path(file).stem.lower()
    name = "".join(c if c.isascii() and c.isalnum() else "_" for c in stem).lstrip("_")[:LONGEST] or "mine"
    existing = STAGES if kind == "study" else registry.names(kind) if kind else ()
    return f"my_{name}" if name in existing else name


@dataclass(frozen=True)
class Setting:
    """A small problem on which a user's file is tried.

    Samples ``x`` [samples, …] with labels ``y`` int64 [samples] of ``classes`` classes; ``rows``: the numbers of the
    samples that models may be trained on; ``build`` and ``recipe``: the network and its training; ``about``: a
    description in words; ``notes``: further lines of the report.
    """

    x: np.ndarray
    y: np.ndarray
    classes: int
    rows: np.ndarray
    build: Callable[[], "nn.Module"]
    recipe: "Recipe"
    about: str
    notes: tuple[str, ...] = ()

    @cached_property
    def sides(self) -> dict[str, np.ndarray]:
        """Row numbers int64 [2, …] that each of two models has "forgotten", "kept" or "never seen", drawn at random.
        Raises ValueError if there are fewer than eight rows."""
        half = min(TRAIN, len(self.rows) // 2)
        if half < 4:
            raise ValueError(f"{self.about}: {len(self.rows)} samples are too few to be split")
        orders = np.stack([np.random.default_rng(seed).permutation(self.rows)[: 2 * half] for seed in (0, 1)])
        lost = round(FORGET * half)
        return {"forgotten": orders[:, :lost], "kept": orders[:, lost:half], "never seen": orders[:, half:]}

    def stack(self) -> "ModelStack":
        """Return two untrained models."""
        import torch

        from unlearning_audit.training.stack import ModelStack

        torch.set_num_threads(1)  # as jobs have; more of them wait for each other
        return ModelStack.create(self.build, self.x, self.y, [0, 1], recipe=self.recipe)

    def read(self, stack: "ModelStack") -> dict[str, tuple[float, float]]:
        """Return "forgotten", "kept" and "never seen" → accuracy and mean loss on these rows, over both models. Raises
        NoAnswerError if logits are not finite."""
        logits = stack.logits().astype(np.float64)
        if not np.isfinite(logits).all():
            raise NoAnswerError("the models answer NaN or infinite logits; choose a smaller lr")
        loss = -log_softmax(logits, axis=-1)[:, np.arange(len(self.y)), self.y]
        right = logits.argmax(-1) == self.y
        return {
            side: (float(np.take_along_axis(right, rows, 1).mean()), float(np.take_along_axis(loss, rows, 1).mean()))
            for side, rows in self.sides.items()
        }

    def mask(self, side: str) -> np.ndarray:
        """Return which samples are on one of the `sides` of each model, bool [2, samples]."""
        mask = np.zeros((2, len(self.y)), bool)
        np.put_along_axis(mask, self.sides[side], True, axis=1)
        return mask

    @property
    def trained(self) -> "Rows":
        """The rows on which each of the two models is trained: those to forget and those to keep."""
        from unlearning_audit.training.streams import Rows

        return Rows(np.concatenate([self.sides["forgotten"], self.sides["kept"]], 1))

    def within(self, seconds: float) -> "Setting":
        """Return a setting with so few epochs, at least one, that training two models takes at most ``seconds``.

        One epoch is trained to measure its time. If all epochs fit, or there is only one, the setting is returned
        unchanged.
        """
        if self.recipe.epochs == 1:
            return self
        stack = replace(self, recipe=self.recipe.model_copy(update={"epochs": 1})).stack()
        started = time.perf_counter()
        stack.train(self.trained)
        epochs = int(seconds / max(time.perf_counter() - started, 1e-6))
        if epochs >= self.recipe.epochs:
            return self
        epochs = max(epochs, 1)
        note = f"  Trained for {epochs} of {self.recipe.epochs} epochs, so that it takes less than a minute."
        recipe = self.recipe.model_copy(update={"epochs": epochs})
        return replace(self, recipe=recipe, notes=(*self.notes, note))


def digits(shape: tuple[int, ...] = (64,), build: Callable[..., Any] | None = None) -> Setting:
    """Return a setting of handwritten digits with random labels, which can only be memorised. Samples are rows of 64
    numbers or, for a ``shape`` of three numbers, pictures of that shape.

    ``build`` maps a shape and the number of classes to a network, by default a multilayer perceptron.
    """
    from unlearning_audit.data import digits as source
    from unlearning_audit.models import mlp
    from unlearning_audit.training.recipe import Recipe

    loaded = source.load(source.Options(images=len(shape) == 3), Path.cwd())
    x = loaded.x
    if len(shape) == 3:
        times = shape[1] // x.shape[2]
        # Pixels become squares of ``times`` × ``times`` pixels, and every channel gets the same picture.
        x = np.ascontiguousarray(x.repeat(times, 2).repeat(times, 3).repeat(shape[0], 1))
    build = build or (lambda shape, classes: mlp.build(mlp.Options(hidden=[64]), shape, classes))
    return Setting(
        x, np.random.default_rng(2).permuted(loaded.y), loaded.classes, np.arange(len(x)),
        lambda: build(x.shape[1:], loaded.classes), Recipe(epochs=40, lr=0.1, momentum=0.9),
        "digits with random labels" + (f" as pictures {list(shape)}" if len(shape) == 3 else ""),
    )  # fmt: skip


def setting(plan: Plan, name: str = "") -> Setting:
    """Return the setting of a study: the data, model and recipe of the scenario ``name``, or of the first one.

    Raises ValueError if the study has no such scenario, or if the scenario trains no models.
    """
    from unlearning_audit.data import prepare, read_source
    from unlearning_audit.training.recipe import Recipe
    from unlearning_audit.workflow.open_stack import builder

    names = list(dict.fromkeys(scenario.name for scenario in plan.study.scenarios))
    if name and name not in names:
        raise ValueError(f"the study has no scenario {name!r}; it has {', '.join(names)}")
    name = name or names[0]
    trained = {node.outputs["logits"]: node for node in plan.nodes["train"].values()}
    originals = (path for case in plan.cases if case.scenario.name == name for path in case.originals)
    train = next((trained[path] for path in originals if path in trained), None)
    if train is None:
        raise ValueError(f"scenarios.{name}: this scenario trains no models to try the method on")
    source = next(node for node in train.parents.values() if node.stage == "data")
    data = prepare(read_source(source.settings, source.place, Path.cwd()), seed=source.settings["seed"],
                   **source.settings["use"])  # fmt: skip
    build, _ = builder(data, train.settings, train.place)
    return Setting(
        data.x, data.y, data.classes, (data.part == 0).nonzero()[0], build, Recipe(**train.settings["recipe"]),
        f"{name} of the study {plan.study.name}",
    )  # fmt: skip


def fields(plan: Plan, file: str, name: str = "") -> dict[str, Any]:
    """Return the options that a study sets for a user's ``file`` of data, model or method; {} if it does not use the
    file. With ``name``, only the scenario of that name is searched."""
    for scenario in plan.study.scenarios:
        for plugin in (scenario.data, scenario.model, *scenario.methods.values()):
            own = plugin.file or plugin.options.get("file")
            if own and Path(own).resolve() == Path(file).resolve() and scenario.name == (name or scenario.name):
                return {key: value for key, value in plugin.options.items() if key != "file"}
    return {}


def takes_pictures(file: str) -> bool:
    """Return whether a model's file builds a network for pictures but not for rows of numbers; False if it fails."""
    try:
        return "as pictures" in attempt(file)
    except ValueError:
        return False


def attempt(file: str, setting: Setting | None = None, fields: dict[str, Any] | None = None) -> str:
    """Try a user's file of data, a model or a method, and return a report of a few lines.

    ``setting``: the problem, by default one of digits. ``fields``: options that a study would set. The file runs in a
    process of its own. Raises ValueError, in one sentence with the file's name, if it fails or breaks its contract.
    """
    from unlearning_audit.study import choice

    fields = dict(fields or {})
    plugin_kind = kind(file, fields.get("function", ""))
    name = name_of(file, plugin_kind)
    try:
        plugin = choice.choose(plugin_kind, {"name": name, "file": file, **fields}, plugin_kind, name)
    except ValueError as error:
        raise ValueError(f"{file}: {str(error).removeprefix(f'{plugin_kind}.{name}').lstrip('.: ')}") from None
    tried = {"methods": _method, "models": _model, "data": _data}[plugin_kind]
    lines = isolated(lambda: {"lines": tried(plugin, file, setting)}, file, trace=False)["lines"]
    return "\n".join(lines)


def _method(plugin: Plugin, file: str, setting: Setting | None) -> list[str]:
    """Let a method unlearn two models, and return the lines of a report on their accuracy and loss before, after and by
    retraining.

    The report warns of a method that changed nothing, or that seems to have exchanged the samples to forget with those
    to keep. The training before takes at most about `SECONDS`.
    """
    from unlearning_audit.training.streams import Rows
    from unlearning_audit.workflow.attempt import run_method

    setting = (setting or digits()).within(SECONDS)
    stack, sides, mask = setting.stack(), setting.sides, setting.mask("forgotten")
    started = time.perf_counter()
    stack.train(setting.trained, record=mask if setting.recipe.record_updates else None)
    training = time.perf_counter() - started
    logits, before, retrained = stack.logits(), setting.read(stack), stack.copy()
    retrained.reset("retrain")
    retrained.train(Rows(sides["kept"]))
    module = registry.load("methods", plugin.name, plugin.file)
    options = module.Options(**plugin.options)
    rows = Rows(sides["forgotten"]), Rows(sides["kept"])
    seconds = run_method(stack, lambda *of: module.unlearn(*of, options), *rows, file)
    try:
        after = setting.read(stack)
    except NoAnswerError as error:
        raise NoAnswerError(f"{file}: {error}") from None
    readings = before, after, setting.read(retrained)
    one_label = len(np.unique(setting.y[setting.rows])) == 1

    def numbers(accuracy: float, loss: float) -> str:
        """Return two columns of the report. With one label, every model has accuracy 1, which says nothing."""
        return f"{'—' if one_label else format(accuracy, '.2f'):>6}{loss:>7.3g}"

    # Probabilities of the true labels, [models, samples], before and after unlearning.
    p_before, p_after = (expit(phi(logits=values, y=setting.y)) for values in (logits, stack.logits()))
    exchanged = mistakes.sides_exchanged(p_before, p_after, mask, setting.mask("kept"))
    forgotten, trained = sides["forgotten"].shape[1], len(setting.trained)
    return [
        f"{file} runs correctly. Two models of {trained} samples of {setting.about}, "
        f"{forgotten} of them to be forgotten:",
        *setting.notes,
        f"  {'accuracy, mean loss':<20}{'before':>13}{'after':>13}{'retrained':>13}",
        *(f"  {side:<20}" + "".join(numbers(*reading[side]) for reading in readings) for side in sides),
        # A list times False has no lines.
        *(["  It changed nothing: the logits are identical."] * bool(np.array_equal(logits, stack.logits()))),
        *([f"  {exchanged[0].upper()}{exchanged[1:]}"] if exchanged else []),
        f"  {seconds:.2f} s for both models; {training:.2f} s to train them.",
    ]


def _model(plugin: Plugin, file: str, setting: Setting | None) -> list[str]:
    """Train two networks of a user's file, and return the lines of a report on their size, accuracy and time.

    Without a ``setting``, rows of numbers and pictures of two sizes are tried, and the first that the network takes is
    used. Raises PluginError if no shape fits.
    """
    from unlearning_audit.workflow.open_stack import check_built, check_model

    module = registry.load("models", plugin.name, file)
    options = module.Options(**plugin.options)

    def build(shape: tuple[int, ...], classes: int) -> "nn.Module":
        """Return one network of the user's file, whose final layer has a name."""
        with guard(file):
            model = module.build(options, shape, classes)
        return check_built(model, classes, file)

    if setting is None:
        problems = []
        for shape in ((64,), (1, 8, 8), (3, 32, 32)):
            setting = digits(shape, build)
            try:
                check_model(setting.stack(), setting.classes, file)
            except PluginError as error:
                problems.append(error)
                continue
            break
        else:  # the network took none of the shapes
            raise problems[0]
    else:
        x, classes = setting.x, setting.classes
        setting = replace(setting, build=lambda: build(x.shape[1:], classes))
        check_model(setting.stack(), classes, file)
    with guard(file):
        setting = setting.within(SECONDS)
        stack, started = setting.stack(), time.perf_counter()
        stack.train(setting.trained)
    seconds, right = time.perf_counter() - started, setting.read(stack)
    counts = {side: rows.shape[1] for side, rows in setting.sides.items()}
    samples = counts["forgotten"] + counts["kept"]
    learned = sum(right[side][0] * counts[side] for side in ("forgotten", "kept")) / samples
    size = sum(value[0].numel() for value in stack.parameters.values())
    return [
        f"{file} runs correctly: {size:,} weights, last layer {stack.final_layer!r}.",
        *setting.notes,
        f"  Two models of {samples} samples of {setting.about}: accuracy {learned:.2f} on these and "
        f"{right['never seen'][0]:.2f} on others",
        f"  {seconds:.2f} s to train both.",
    ]


def _data(plugin: Plugin, file: str, setting: Setting | None) -> list[str]:
    """Load a user's data, and return the lines of a report on samples, classes, copies and time.

    Raises PluginError if a second call loads other samples. Data that take longer than `SECONDS` are loaded only once.
    """
    from unlearning_audit.data import duplicates, loaded, prepare

    module, start = registry.load("data", plugin.name, file), time.perf_counter()
    source = loaded(module, module.Options(**plugin.options), Path.cwd())
    data, seconds = prepare(source, seed=0), time.perf_counter() - start
    again = loaded(module, module.Options(**plugin.options), Path.cwd()) if seconds < SECONDS else source
    if not all(np.array_equal(getattr(source, name), getattr(again, name)) for name in ("x", "y", "part")):
        why = "load returned other samples when it was called again, so results could not be reproduced"
        raise PluginError(f"{file}: {why}; draw from a generator with a seed, np.random.default_rng(0)")
    counts = np.bincount(data.y, minlength=data.classes)
    copies = sum(len(group) - 1 for group in duplicates(data.x))
    test = int((data.part == 1).sum())
    return [
        f"{file} runs correctly: {len(data.y):,} samples, {data.x.dtype} {list(data.x.shape[1:])}, "
        f"{test:,} of them the test part" + ("" if test else "; set test_size in the study to split one off"),
        f"  {data.classes} classes of {counts.min():,} to {counts.max():,} samples, {copies:,} exact copies",
        *_brightness(data.x, file),
        f"  {seconds:.2f} s to load.",
    ]


#: The largest absolute value of pixels, normalised or not. Larger ones may be bytes up to 255.
BRIGHT = 20.0


def _brightness(x: np.ndarray, file: str) -> list[str]:
    """Return a line, in a list, on float32 images with values outside 0 to 1; [] for all other data. Raises PluginError
    if values are beyond `BRIGHT`."""
    if x.ndim != 4 or x.dtype != np.float32 or not x.size:
        return []
    low, high = float(x.min()), float(x.max())
    if max(-low, high) > BRIGHT:
        problem = f"images in float32 must lie between 0 and 1, but range from {low:.3g} to {high:.3g}"
        raise PluginError(f"{file}: {problem}; divide them by their largest value, or give uint8 from 0 to 255")
    if low >= -0.01 and high <= 1.01:
        return []
    return [f"  Its images range from {low:.3g} to {high:.3g}; models and augmentations expect 0 to 1."]
