"""A self-test of a graphics card: it compares the engine's results there with those on the processor.

Every check is small, so that all take a minute or two. Nothing is downloaded: images are random numbers.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from unlearning_audit.plugins import registry
from unlearning_audit.training import card
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

#: Weights on the card must differ from those on the processor by less than this: after training in double precision,
#: where the card still rounds learning rates to single precision; and after methods in single precision.
DOUBLE_GAP, SINGLE_GAP = 1e-5, 1e-3

IMAGE, CLASSES, SAMPLES, SEEDS = (3, 12, 12), 4, 60, (11, 12, 13)

#: Options that keep methods short.
SHORT = {"epochs": 1, "repair_epochs": 1, "refine_epochs": 1, "batch_size": 8}


@dataclass(frozen=True)
class Check:
    """One line of the self-test."""

    name: str
    passed: bool
    result: str
    seconds: float = 0.0


#: A network that is stacked and one that is not: name → (file in models/, its options).
NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "perceptron": ("mlp", {"hidden": (9, 7)}),
    "ResNet-8": ("resnet_cifar", {"depth": 8}),
}


def run(device: str) -> Iterator[Check]:
    """Yield the result of each check on ``device`` ("cuda") as soon as it is done: trainings of two networks by two
    optimisers, then every method of the library. A check that raises an exception has failed, and the exception is its
    result."""
    checks = {
        f"{label}, {optimiser}, recorded": partial(_training, NETWORKS[label], optimiser, device)
        for label in ("perceptron", "ResNet-8") for optimiser in ("sgd", "adamw")
    }  # fmt: skip
    checks |= {f"method {method}": partial(_method, method, NETWORKS["perceptron"], device) for method in methods()}
    for name, check in checks.items():
        start = time.perf_counter()
        try:
            passed, result = check()
        except Exception as error:
            passed, result = False, f"{type(error).__name__}: {card.first_line(error)}"
        yield Check(name, passed, result, round(time.perf_counter() - start, 2))


def methods() -> list[str]:
    """Return the names of the library's methods, without the adapter that runs users' functions."""
    names = registry.names("methods")
    return [name for name in names if not registry.defines("methods", name, file=None, identifier="ADAPTER")]


def _stack(
    network: tuple[str, dict[str, Any]], device: str, dtype: torch.dtype = torch.float32, **recipe: object
) -> ModelStack:
    """Return a stack of three untrained models of a ``network`` (file in models/, options) on random images.
    ``recipe``: fields of the training recipe that differ from the self-test's."""
    name, options = network
    architecture = registry.load("models", name)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (SAMPLES, *IMAGE), dtype=np.uint8)
    training = Recipe(**{"lr": 0.05, "momentum": 0.9, "weight_decay": 5e-4, "batch_size": 8, "epochs": 2, **recipe})
    model_options = architecture.Options(**options)
    return ModelStack.create(
        lambda: architecture.build(model_options, IMAGE, CLASSES), x, rng.integers(0, CLASSES, SAMPLES), SEEDS,
        recipe=training, device=device, dtype=dtype,
    )  # fmt: skip


def _rows() -> tuple[Rows, Rows, np.ndarray]:
    """Return the rows to forget and those to retain of each model, and bool [models, samples] that is True for the rows
    to forget. Every model has a random order of the 60 samples of its own: it forgets the first 13 and retains 31."""
    orders = np.stack([np.random.default_rng(seed).permutation(SAMPLES) for seed in SEEDS])  # [models, samples]
    forget = np.zeros((len(SEEDS), SAMPLES), bool)
    np.put_along_axis(forget, orders[:, :13], values=True, axis=1)
    return Rows(orders[:, :13]), Rows(orders[:, 13:44]), forget


def _gap(first: ModelStack, second: ModelStack) -> float:
    """Return the largest absolute difference between two stacks in any weight or buffer, in double precision; NaN if
    one of them is NaN."""
    values, others = first.parameters | first.buffers, second.parameters | second.buffers
    pairs = ((value.detach().cpu().double(), others[name].detach().cpu().double()) for name, value in values.items())
    return float(torch.stack([(value - other).abs().max() for value, other in pairs]).max())


def _training(network: tuple[str, dict[str, Any]], optimiser: str, device: str) -> tuple[bool, str]:
    """Train the same models on the processor and on the ``device`` in double precision; return whether their weights
    differ by less than `DOUBLE_GAP`, and a sentence on the difference."""
    settings = {"optimiser": optimiser, "schedule": "cosine", "lr": 0.05 if optimiser == "sgd" else 1e-3}
    stacks = [_stack(network, each, dtype=torch.float64, **settings) for each in ("cpu", device)]
    _, retain, _ = _rows()  # the rows to forget and their mask are not needed
    for stack in stacks:
        stack.train(retain)
    gap = _gap(*stacks)
    return gap < DOUBLE_GAP, f"weights differ from the processor's by {gap:.1e} after training in double precision"


def _method(name: str, network: tuple[str, dict[str, Any]], device: str) -> tuple[bool, str]:
    """Train the same models on the processor and on the ``device``, and let a method unlearn them there, in single
    precision; return whether their weights differ by less than `SINGLE_GAP`, and a sentence on the difference."""
    module, (forget, retain, mask) = registry.load("methods", name), _rows()
    options = module.Options(**{key: value for key, value in SHORT.items() if key in module.Options.model_fields})
    stacks = [_stack(network, each, epochs=1) for each in ("cpu", device)]
    for stack in stacks:
        stack.train(Rows(np.concatenate([forget.index, retain.index], axis=1)), record=mask)
        module.unlearn(stack, forget, retain, options)
    gap = _gap(*stacks)
    return gap < SINGLE_GAP, f"weights differ from the processor's by {gap:.1e}"
