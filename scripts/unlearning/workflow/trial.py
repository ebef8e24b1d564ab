"""Tries a method on two small models of real digits: whether it keeps its contract, and what it does."""

import time
from pathlib import Path

import numpy as np

from unlearning.artifacts.files import NoAnswerError
from unlearning.bank.bank import Bank
from unlearning.bank.recipe import Recipe
from unlearning.bank.streams import Rows
from unlearning.data import digits
from unlearning.models import mlp
from unlearning.plugins import registry
from unlearning.plugins.guard import guard
from unlearning.plugins.isolation import isolated
from unlearning.workflow.attempt import check_models, described

#: Samples that a model is trained on, that it shall forget of these, and that it never sees.
TRAIN, FORGET, HELDOUT = 400, 100, 400


def method(file: str) -> str:
    """What the method in ``file``, with its default options, did: accuracies before and after, and how long it took.

    Raises ValueError, in one sentence with the place, for a method that fails or breaks its contract.
    """
    if not Path(file).is_file():
        raise ValueError(f"{file}: there is no such file; give the file of a method")
    name = "".join(c if c.isalnum() else "_" for c in Path(file).stem.lower())
    options = registry.options("methods", name, file)()
    found = isolated(lambda: _measured(name, file, options), file, trace=False)
    before, after = found["before"], found["after"]
    lines = [f"{file} keeps the contract. Two models of {TRAIN} digits, {FORGET} of which to be forgotten:"]
    lines += [
        f"  accuracy on {what}: {before[what]:.2f} before, {after[what]:.2f} after"
        for what in ("forgotten", "kept", "never seen")
    ]
    if found["same"]:
        lines.append("  It changed nothing: the logits are identical.")
    lines.append(f"  {found['seconds']:.2f} s for both models; {found['training']:.2f} s to train them.")
    return "\n".join(lines)


def _measured(name: str, file: str, options) -> dict:
    source = digits.load(digits.Options(), Path.cwd())
    rows = np.stack([np.random.default_rng(seed).permutation(len(source.y))[: TRAIN + HELDOUT] for seed in (0, 1)])
    # Random labels can only be memorised, so that there is something to forget.
    labels = np.random.default_rng(2).permuted(source.y)
    bank = Bank.create(
        lambda: mlp.build(mlp.Options(hidden=[64]), source.x.shape[1:], source.classes), source.x, labels, [0, 1],
        recipe=Recipe(epochs=40, lr=0.1, momentum=0.9),
    )  # fmt: skip
    sides = {"forgotten": rows[:, :FORGET], "kept": rows[:, FORGET:TRAIN], "never seen": rows[:, TRAIN:]}
    started = time.perf_counter()
    bank.train(Rows(rows[:, :TRAIN]))
    trained = time.perf_counter()
    before, known = bank.logits(), described(bank)
    module, begun = registry.load("methods", name, file), time.perf_counter()
    with guard(file):
        returned = module.unlearn(bank, Rows(sides["forgotten"]), Rows(sides["kept"]), options)
        check_models(bank, known, returned, file)
    ended = time.perf_counter()
    after = bank.logits()
    if not np.isfinite(after).all():
        raise NoAnswerError(f"{file}: the models answer NaN or infinite logits after it; choose a smaller lr")

    def accuracies(logits: np.ndarray) -> dict[str, float]:
        right = logits.argmax(-1) == labels
        return {what: float(np.take_along_axis(right, which, axis=1).mean()) for what, which in sides.items()}

    return {
        "before": accuracies(before), "after": accuracies(after), "same": bool(np.array_equal(before, after)),
        "seconds": ended - begun, "training": trained - started,
    }  # fmt: skip
