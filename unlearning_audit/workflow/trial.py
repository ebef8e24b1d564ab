"""Try a user's file on a small problem: check that it keeps its contract, and report what it does."""

import re
import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, log_softmax

from unlearning_audit.evaluation import mistakes
from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.plugins import registry, syntax
from unlearning_audit.plugins.guard import PluginError, guard
from unlearning_audit.plugins.isolation import isolated
from unlearning_audit.plugins.names import LONGEST
from unlearning_audit.stats import phi
from unlearning_audit.store.files import FailedError, Json, NoAnswerError
from unlearning_audit.study.choice import Plugin
from unlearning_audit.study.schema import STAGES
from unlearning_audit.workflow.nodes import Plan

if TYPE_CHECKING:
    from unlearning_audit.training.stack import ModelStack

#: The number of training samples, and also of samples that are never seen; the share of training samples to forget.
TRAIN, FORGET = 400, 0.25

#: Seconds that training two models may take. If they would take longer, fewer epochs are trained.
SECONDS = 20.0


def kind(file: str, function: str = "") -> str:
    """Return the kind of plug-in that a file defines, such as "methods", by the names at its top level: each kind has a
    mark, a name that its files define. If a ``function`` is named, the file is a method.

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
    if function:
        return "methods"
    for name, kind in registry.KINDS.items():
        if kind.marks(names):
            return name
    parts = ", ".join(f"{kind.parts[0]} ({kind.with_article})" for kind in registry.KINDS.values())
    advice = "name the function that unlearns, such as --set function=forget, or let audit new write a file"
    raise ValueError(f"{file}: it defines none of {parts}; {advice}")


def name_of(file: str | Path, kind: str) -> str:
    """Return the name of a user's file in a study: its stem in lower case, shortened if necessary. Characters that
    names may not have become "_", which is left out at the start; "mine" if nothing is left.

    The name begins with "my_" if the library has a plug-in of the same ``kind`` and name, or, for the kind "study", if
    a stage has that name, whose folder of results the study would share.

    >>> [name_of("repo/Scrub-2.py", "methods"), name_of("scrub.py", "methods"), name_of("train.yaml", "study")]
    ['scrub_2', 'my_scrub', 'my_train']
    """
    name = re.sub("[^a-z0-9]", "_", Path(file).stem.lower()).lstrip("_")[:LONGEST] or "mine"
    taken = STAGES if kind == "study" else registry.names(kind)
    return f"my_{name}" if name in taken else name


@dataclass(frozen=True)
class Setting:
    """A small problem on which a user's file is tried: two models of some data.

    Parameters
    ----------
    data
        The samples. Models are trained on some of the training part.
    settings, place
        The model, its options and the recipe, and the file of a user's own model, as jobs of the stage ``train`` have
        them.
    about
        A description in words.
    notes
        Further lines of the report.
    """

    data: Data
    settings: Json
    place: Json
    about: str
    notes: tuple[str, ...] = ()

    @cached_property
    def member(self) -> Membership:
        """The memberships of two models, drawn at random: as many samples are held out as a model is trained on, at
        most `TRAIN`; it forgets the share `FORGET` of the latter. Raises ValueError if there are fewer than eight
        training samples."""
        rows = np.flatnonzero(self.data.part == 0)
        count = min(TRAIN, len(rows) // 2)
        if count < 4:
            raise ValueError(f"{self.about}: {len(rows)} samples are too few to be split")
        orders = np.stack([np.random.default_rng(seed).permutation(rows)[: 2 * count] for seed in (0, 1)])
        train, forget, heldout = np.zeros((3, 2, len(self.data.y)), bool)
        np.put_along_axis(train, orders[:, :count], values=True, axis=1)
        np.put_along_axis(forget, orders[:, : round(FORGET * count)], values=True, axis=1)
        np.put_along_axis(heldout, orders[:, count:], values=True, axis=1)
        zeros = np.zeros(2, np.int64)
        # Seeds 0 and 1, then the numbers of split and block, and no shadow model.
        return Membership(train, forget, heldout, np.arange(2), zeros, zeros, zeros.astype(bool))

    @property
    def subsets(self) -> dict[str, np.ndarray]:
        """Subset ("forgotten", "kept" or "never seen") → which samples of each model are in it, bool [2, samples]."""
        return {"forgotten": self.member.forget, "kept": self.member.retain, "never seen": self.member.heldout}

    def stack(self) -> "ModelStack":
        """Return two untrained models of the setting's network."""
        from unlearning_audit.workflow.open_stack import ModelBatch

        return ModelBatch(self.data, self.member, self.settings, self.place, ()).stack(self.member)

    def train(self, stack: "ModelStack") -> float:
        """Train the models of a stack, and return the seconds that this took."""
        from unlearning_audit.training.streams import Rows

        started = time.perf_counter()
        stack.train(Rows.where(self.member.train), record=self.member.forget if stack.recipe.record_updates else None)
        return time.perf_counter() - started

    def evaluate(self, stack: "ModelStack") -> dict[str, tuple[float, float]]:
        """Return name of a subset (`subsets`) → accuracy and mean loss on its samples, over both models. Raises
        NoAnswerError if logits are not finite."""
        logits, y = stack.logits().astype(np.float64), self.data.y
        if not np.isfinite(logits).all():
            raise NoAnswerError("the models answer NaN or infinite logits; choose a smaller lr")
        loss, right = -log_softmax(logits, axis=-1)[:, np.arange(len(y)), y], logits.argmax(-1) == y
        return {name: (float(right[mask].mean()), float(loss[mask].mean())) for name, mask in self.subsets.items()}

    def with_epochs(self, epochs: int, *notes: str) -> "Setting":
        """Return the setting with another number of epochs, and with more notes."""
        settings = {**self.settings, "recipe": {**self.settings["recipe"], "epochs": epochs}}
        return replace(self, settings=settings, notes=(*self.notes, *notes))

    def within(self, seconds: float) -> "Setting":
        """Return a setting with so few epochs, at least one, that training two models takes at most ``seconds``.

        One epoch is trained to measure its time. If all epochs fit, or the recipe has only one, the setting is returned
        unchanged. If not all fit, the notes of the returned setting say how many epochs are left.
        """
        epochs = self.settings["recipe"]["epochs"]
        if epochs == 1:
            return self
        fitting = int(seconds / max(self.train(self.with_epochs(1).stack()), 1e-6))
        if fitting >= epochs:
            return self
        fitting = max(fitting, 1)
        note = f"  Trained for {fitting} of {epochs} epochs only, to save time."
        return self.with_epochs(fitting, note)


def digits(shape: tuple[int, ...] = (64,)) -> Setting:
    """Return a setting of handwritten digits with random labels, which can only be memorised, so that forgetting them
    shows. Samples are rows of 64 numbers or, for a ``shape`` of three numbers (channels, height and width), pictures of
    that shape. The network is a multilayer perceptron."""
    from unlearning_audit.data import digits as source
    from unlearning_audit.data import prepare
    from unlearning_audit.training.recipe import Recipe

    pictures = len(shape) == 3
    loaded = source.load(source.Options(images=pictures), Path.cwd())
    x = loaded.x
    if pictures:
        times = shape[1] // x.shape[2]  # the height that is wanted, by that of the digits
        # Pixels become squares of ``times`` × ``times`` pixels, and every channel gets the same picture.
        x = np.ascontiguousarray(x.repeat(times, axis=2).repeat(times, axis=3).repeat(shape[0], axis=1))
    data = prepare(replace(loaded, x=x, y=np.random.default_rng(2).permuted(loaded.y)), seed=0)
    recipe = Recipe(epochs=40, lr=0.1, momentum=0.9).model_dump(mode="json")
    about = "digits with random labels" + (f" as pictures {list(shape)}" if pictures else "")
    return Setting(data, {"model": "mlp", "options": {"hidden": [64]}, "recipe": recipe}, {}, about)


def setting(plan: Plan, name: str = "") -> Setting:
    """Return the setting of a study: the data, model and recipe of the scenario ``name``, or, without a name, of the
    study's first scenario, at the first values of its axes.

    Raises ValueError if the study has no such scenario, or if the scenario trains no models.
    """
    from unlearning_audit.data import prepare, read_source

    names = list(dict.fromkeys(scenario.name for scenario in plan.study.scenarios))
    if name and name not in names:
        raise ValueError(f"the study has no scenario {name!r}; it has {', '.join(names)}")
    name = name or names[0]
    job_of = {node.outputs["logits"]: node for node in plan.nodes["train"].values()}  # by the logits that it writes
    originals = [path for case in plan.cases if case.scenario.name == name for path in case.originals]
    train = next((job_of[path] for path in originals if path in job_of), None)
    if train is None:
        raise ValueError(f"scenarios.{name}: this scenario trains no models to try the method on")
    source = next(node for node in train.parents.values() if node.stage == "data")
    samples = read_source(source.settings, source.place, Path.cwd())
    data = prepare(samples, seed=source.settings["seed"], **source.settings["use"])
    return Setting(data, train.settings, train.place, f"{name} of the study {plan.study.name}")


def fields(plan: Plan, file: str, name: str = "") -> dict[str, Any]:
    """Return the options that a study sets where it first uses a user's ``file`` of data, model or method; {} if it
    does not use the file. With ``name``, only the scenario of that name is searched."""
    scenarios = [scenario for scenario in plan.study.scenarios if name in ("", scenario.name)]
    for scenario in scenarios:
        for plugin in (scenario.data, scenario.model, *scenario.methods.values()):
            own = plugin.file or plugin.options.get("file")
            if own and Path(own).resolve() == Path(file).resolve():
                return {key: value for key, value in plugin.options.items() if key != "file"}
    return {}


def takes_pictures(file: str) -> bool:
    """Return whether a model's file builds a network for pictures but not for rows of numbers; False if it fails."""
    try:
        return "as pictures" in attempt(file)  # the report names the first shape that fits; rows are tried first
    except ValueError:
        return False


def attempt(file: str, setting: Setting | None = None, fields: dict[str, Any] | None = None) -> str:
    """Try a user's file of data, a model, a method or a signal, and return a report of a few lines.

    The file runs in a process of its own. Raises ValueError, in one sentence with the file's name, if it fails or
    breaks its contract.

    Parameters
    ----------
    setting
        The data, network and recipe on which the file is tried; by default digits.
    fields
        Options that a study would set.
    """
    from unlearning_audit.study import choice

    fields = dict(fields or {})
    plugin_kind = kind(file, fields.get("function", ""))
    name = name_of(file, plugin_kind)
    try:
        plugin = choice.choose(plugin_kind, {"name": name, "file": file, **fields}, plugin_kind, name)
    except ValueError as error:  # its message begins with a field's path in a study, and there is no study
        message = str(error).removeprefix(f"{plugin_kind}.{name}").lstrip(".: ")
        raise ValueError(f"{file}: {message}") from None
    try_plugin = {"methods": _try_method, "models": _try_model, "data": _try_data, "signals": _try_signal}[plugin_kind]
    lines = isolated(lambda: {"lines": try_plugin(plugin, file, setting)}, file, trace=False)["lines"]
    return "\n".join(lines)


def _try_method(plugin: Plugin, file: str, setting: Setting | None) -> list[str]:
    """Let a method unlearn two models, and return the lines of a report on their accuracy and loss before and after
    unlearning, and on those of retrained models.

    Without a ``setting``, the models learn digits. The report warns of a method that changed nothing, or that seems to
    have exchanged the samples to forget with those to keep. The training before takes at most about `SECONDS`.
    """
    from unlearning_audit.training.streams import Rows
    from unlearning_audit.workflow.attempt import run_method

    setting = (setting or digits()).within(SECONDS)
    stack, member = setting.stack(), setting.member
    forget, retain = Rows.where(member.forget), Rows.where(member.retain)
    training = setting.train(stack)
    logits, before, retrained = stack.logits(), setting.evaluate(stack), stack.copy()
    retrained.reset("retrain")  # new weights, drawn for retraining
    retrained.train(retain)
    module, options = plugin.module, plugin.schema(**plugin.options)
    seconds = run_method(
        stack, lambda *given: registry.call("methods", module, "unlearn", *given, options), forget, retain, file
    )
    try:
        after = setting.evaluate(stack)
    except NoAnswerError as error:
        raise NoAnswerError(f"{file}: {error}") from None
    y = setting.data.y
    one_label = len(np.unique(y[setting.data.part == 0])) == 1

    def columns(accuracy: float, loss: float) -> str:
        """Return two columns of the report. If the training part has ``one_label``, every model has accuracy 1, which
        says nothing, and a dash stands in its place."""
        return f"{'—' if one_label else format(accuracy, '.2f'):>6}{loss:>7.3g}"

    trained = len(forget) + len(retain)
    lines = [
        f"{file} runs correctly. Two models of {trained} samples of {setting.about}, "
        f"{len(forget)} of them to be forgotten:",
        *setting.notes,
        f"  {'accuracy, mean loss':<20}{'before':>13}{'after':>13}{'retrained':>13}",
    ]
    readings = before, after, setting.evaluate(retrained)
    lines += [f"  {name:<20}" + "".join(columns(*reading[name]) for reading in readings) for name in setting.subsets]
    if np.array_equal(logits, stack.logits()):
        lines.append("  It changed nothing: the logits are identical.")
    # Probabilities of the true labels, [models, samples], before and after unlearning.
    p_before, p_after = (expit(phi(logits=values, y=y)) for values in (logits, stack.logits()))
    exchanged = mistakes.sides_exchanged(p_before, p_after, member.forget, member.retain)
    if exchanged:
        lines.append(f"  {exchanged[0].upper()}{exchanged[1:]}")  # a sentence, which here begins a line
    return [*lines, f"  {seconds:.2f} s for both models; {training:.2f} s to train them."]


def _try_model(plugin: Plugin, file: str, setting: Setting | None) -> list[str]:
    """Train two networks of a user's file, and return the lines of a report on their size, accuracy and time.

    With a ``setting``, the networks learn its data. Without a setting, they learn digits, in the first of three shapes
    that they accept: rows of numbers, small pictures and larger pictures. Raises the FailedError of the first shape if
    no shape fits.
    """
    problems = []
    for shape in ((64,), (1, 8, 8), (3, 32, 32)):
        tried = setting or digits(shape)
        model = {**tried.settings, "model": plugin.name, "options": plugin.options}
        tried = replace(tried, settings=model, place={"file": file})
        try:
            tried.stack()
            break
        except FailedError as error:
            problems.append(error)
    else:  # the network took none of them; the problem with the first shape is raised
        raise problems[0]
    with guard(file):
        tried = tried.within(SECONDS)
        stack = tried.stack()
        seconds = tried.train(stack)
    accuracy = {name: accuracy for name, (accuracy, _) in tried.evaluate(stack).items()}
    counts = {name: mask[0].sum() for name, mask in tried.subsets.items()}  # of the first model; the other has as many
    samples = counts["forgotten"] + counts["kept"]  # nothing is unlearned here: the models are trained on both
    learned = sum(accuracy[name] * counts[name] for name in ("forgotten", "kept")) / samples
    size = sum(value[0].numel() for value in stack.parameters.values())
    return [
        f"{file} runs correctly: {size:,} weights, last layer {stack.final_layer!r}.",
        *tried.notes,
        f"  Two models of {samples} samples of {tried.about}: accuracy {learned:.2f} on these and "
        f"{accuracy['never seen']:.2f} on others",
        f"  {seconds:.2f} s to train both.",
    ]


def _try_signal(plugin: Plugin, file: str, setting: Setting | None) -> list[str]:
    """Train two networks, by default on digits, read a user's signal of them, and return the lines of a report on its
    mean over samples that would be forgotten, which these networks know, and over samples that they never saw."""
    from unlearning_audit.workflow.measured import measured

    setting = (setting or digits()).within(SECONDS)
    stack = setting.stack()
    setting.train(stack)
    with guard(file):
        values = measured(registry.load("signals", plugin.name, plugin.file), stack, np.arange(len(setting.data.y)))
    each = list(values.shape[2:]) if values.ndim > 2 else "one number"
    lines = [f"{file} runs correctly: {each} for each sample. Its mean in two models of {setting.about}:"]
    return lines + [f"  {name:<20}{values[setting.subsets[name]].mean():.3g}" for name in ("forgotten", "never seen")]


def _try_data(plugin: Plugin, file: str, setting: Setting | None) -> list[str]:
    """Load a user's data, and return the lines of a report on samples, classes, copies and time. The ``setting`` is not
    used.

    Raises PluginError if a second call loads other samples. Data that take longer than `SECONDS` are loaded only once.
    """
    from unlearning_audit.data import duplicates, loaded, prepare

    module, start = registry.load("data", plugin.name, file), time.perf_counter()
    source = loaded(module, module.Options(**plugin.options), Path.cwd())
    data, seconds = prepare(source, seed=0), time.perf_counter() - start
    if seconds < SECONDS:
        again = loaded(module, module.Options(**plugin.options), Path.cwd())
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
    """Return a line, in a list, on float32 images with values clearly outside 0 to 1; [] for all other data. Raises
    PluginError if a value is larger than `BRIGHT`, positive or negative."""
    if x.ndim != 4 or x.dtype != np.float32 or not x.size:
        return []
    low, high = float(x.min()), float(x.max())
    if max(-low, high) > BRIGHT:  # the largest absolute value
        problem = f"images in float32 must lie between 0 and 1, but range from {low:.3g} to {high:.3g}"
        raise PluginError(f"{file}: {problem}; divide them by their largest value, or give uint8 from 0 to 255")
    if low >= -0.01 and high <= 1.01:
        return []
    return [f"  Its images range from {low:.3g} to {high:.3g}; models and augmentations expect 0 to 1."]
