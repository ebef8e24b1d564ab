"""Tries a user's file on something small: whether it keeps its contract, and what it does."""

import time
from pathlib import Path

import numpy as np

from unlearning.adversary import scoring
from unlearning.adversary.reference import Reference, needs
from unlearning.artifacts.files import NoAnswerError
from unlearning.plugins import registry
from unlearning.plugins.guard import PluginError, guard
from unlearning.plugins.isolation import isolated

#: Samples that a model is trained on, that it shall forget of these, and that it never sees.
TRAIN, FORGET, HELDOUT = 400, 100, 400

#: What a file must define to be tried → its kind.
KINDS = {"unlearn": "methods", "score": "attacks", "build": "models", "load": "data"}


def kind(file: str) -> str:
    """The kind of plug-in that a file is. Raises ValueError in one sentence if it is none that can be tried."""
    if not Path(file).is_file():
        raise ValueError(f"{file}: there is no such file; give that of a method, an attack, a model or a data source")
    found = registry.defined(Path(file))
    known = next((kind for part, kind in KINDS.items() if part in found), None)
    if known is None:
        parts = "unlearn (a method), score (an attack), build (a model) and load (a data source)"
        raise ValueError(f"{file}: it defines none of {parts}; audit new writes one to start from")
    return known


def attempt(file: str) -> str:
    """What the file, with its default options, did, in a few lines.

    Raises ValueError, in one sentence with the place, for a file that fails or breaks its contract.
    """
    what = kind(file)
    name = "".join(c if c.isalnum() else "_" for c in Path(file).stem.lower())
    options = registry.options(what, name, file)()
    tried = {"methods": _method, "attacks": _attack, "models": _model, "data": _data}[what]
    return "\n".join(isolated(lambda: {"lines": tried(name, file, options)}, file, trace=False)["lines"])


def _bank(build, seconds: dict):
    """Two models of digits whose labels are random, so that they can only be memorised, and the rows of each."""
    import torch

    from unlearning.bank.bank import Bank
    from unlearning.bank.recipe import Recipe
    from unlearning.bank.streams import Rows
    from unlearning.data import digits

    torch.set_num_threads(1)  # as jobs have; more of them wait for each other
    source = digits.load(digits.Options(), Path.cwd())
    rows = np.stack([np.random.default_rng(seed).permutation(len(source.y))[: TRAIN + HELDOUT] for seed in (0, 1)])
    labels = np.random.default_rng(2).permuted(source.y)
    recipe = Recipe(epochs=40, lr=0.1, momentum=0.9)
    bank = Bank.create(lambda: build(source.x.shape[1:], source.classes), source.x, labels, [0, 1], recipe=recipe)
    sides = {"forgotten": rows[:, :FORGET], "kept": rows[:, FORGET:TRAIN], "never seen": rows[:, TRAIN:]}
    started = time.perf_counter()
    bank.train(Rows(rows[:, :TRAIN]))
    seconds["training"] = time.perf_counter() - started

    def accuracies(logits: np.ndarray) -> dict[str, float]:
        right = logits.argmax(-1) == labels
        return {what: float(np.take_along_axis(right, which, axis=1).mean()) for what, which in sides.items()}

    return bank, sides, accuracies


def _method(name: str, file: str, options) -> list[str]:
    from unlearning.bank.streams import Rows
    from unlearning.models import mlp
    from unlearning.workflow.attempt import check_models, described

    seconds = {}
    bank, sides, accuracies = _bank(
        lambda shape, classes: mlp.build(mlp.Options(hidden=[64]), shape, classes), seconds
    )  # fmt: skip
    logits, known = bank.logits(), described(bank)
    module, begun = registry.load("methods", name, file), time.perf_counter()
    with guard(file):
        returned = module.unlearn(bank, Rows(sides["forgotten"]), Rows(sides["kept"]), options)
        check_models(bank, known, returned, file)
    took, after = time.perf_counter() - begun, bank.logits()
    if not np.isfinite(after).all():
        raise NoAnswerError(f"{file}: the models answer NaN or infinite logits after it; choose a smaller lr")
    lines = [f"{file} keeps the contract. Two models of {TRAIN} digits, {FORGET} of which to be forgotten:"]
    was, now = accuracies(logits), accuracies(after)
    lines += [f"  accuracy on {what}: {was[what]:.2f} before, {now[what]:.2f} after" for what in sides]
    lines += ["  It changed nothing: the logits are identical."] * bool(np.array_equal(logits, after))
    return [*lines, f"  {took:.2f} s for both models; {seconds['training']:.2f} s to train them."]


def _model(name: str, file: str, options) -> list[str]:
    from unlearning.bank.bank import Bank
    from unlearning.workflow.attempt import check_built, check_model

    module, seconds = registry.load("models", name, file), {}

    def build(shape: tuple[int, ...], classes: int):
        with guard(file):
            model = module.build(options, shape, classes)
        check_built(model, file)
        return model

    nothing = np.zeros((4, 64), np.float32), np.zeros(4, np.int64), [0]
    check_model(Bank.create(lambda: build((64,), 10), *nothing), 10, file)
    bank, _, accuracies = _bank(build, seconds)
    right, size = accuracies(bank.logits()), sum(value[0].numel() for value in bank.parameters.values())
    learned = (right["forgotten"] * FORGET + right["kept"] * (TRAIN - FORGET)) / TRAIN
    return [
        f"{file} keeps the contract: {size:,} weights, head {bank.model.head!r}.",
        f"  Two models of {TRAIN} digits with random labels: accuracy {learned:.2f} on these, "
        f"{right['never seen']:.2f} on others (chance is 0.10)",
        f"  {seconds['training']:.2f} s to train both.",
    ]


def _attack(name: str, file: str, options) -> list[str]:
    module = registry.load("attacks", name, file)
    if signals := needs(getattr(module, "NEEDS", None)):
        raise ValueError(f"{file}: it reads {', '.join(signals)}, which only models in a study tell; name it in one")
    rng = np.random.default_rng(0)
    y, member = rng.integers(4, size=400), rng.permuted(np.tile(np.arange(400) < 200, (6, 1)), axis=1)
    logits = rng.normal(size=(6, 400, 4)).astype(np.float32)
    # What was forgotten is answered surer than what was never seen, by as much as chance varies.
    label = np.broadcast_to(y[:, None], (6, 400, 1))
    np.put_along_axis(logits, label, np.take_along_axis(logits, label, -1) + member[..., None], axis=-1)
    reference = Reference(logits[2:], y, member[2:], ~member[2:])
    began = time.perf_counter()
    score, decision = scoring.called(module, logits[:2], y, reference, {"options": options.model_dump()}, rng)
    if not np.isfinite(score).all():
        raise PluginError(f"{file}: score returned scores that are not finite")
    wins = [(s[m][:, None] > s[~m]) + 0.5 * (s[m][:, None] == s[~m]) for s, m in zip(score, member[:2], strict=True)]
    caught = [float(decision[side].mean()) for side in (member[:2], ~member[:2])]
    return [
        f"{file} keeps the contract. Two models with 200 forgotten and 200 never seen samples, four shadow models:",
        f"  AUC {np.mean(wins):.2f} (chance is 0.50; their logits of the label differ by one standard deviation)",
        f"  it says forgotten of {caught[0]:.0%} of the forgotten, and of {caught[1]:.0%} of the never seen",
        f"  {time.perf_counter() - began:.2f} s.",
    ]


def _data(name: str, file: str, options) -> list[str]:
    from unlearning.data import duplicates, loaded, prepare

    module, began = registry.load("data", name, file), time.perf_counter()
    found = prepare(loaded(module, options, Path.cwd()), seed=0)
    took = time.perf_counter() - began
    counts = np.bincount(found.y, minlength=found.classes)
    copies = sum(len(group) - 1 for group in duplicates(found.x))
    test = int((found.part == 1).sum())
    return [
        f"{file} keeps the contract: {len(found.y):,} samples, {found.x.dtype} {list(found.x.shape[1:])}, "
        f"{test:,} of them the test part" + ("" if test else "; set test_size in the study to split one off"),
        f"  {found.classes} classes of {counts.min():,} to {counts.max():,} samples, {copies:,} exact copies",
        f"  {took:.2f} s to load.",
    ]
