"""Small stacks for tests: networks whose sizes are no multiples of a vector, data that can be learned."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from unlearning_audit.plugins import registry
from unlearning_audit.training import lanes
from unlearning_audit.training.fitting import Fit
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Order, Rows, Stream

SAMPLES, CLASSES, KEPT, LOST = 60, 4, 31, 13
SEEDS = [11, 12, 13, 14, 15, 16, 17, 18]
RECIPE = Recipe(lr=0.1, momentum=0.9, weight_decay=5e-4, batch_size=8, epochs=3)

#: Few steps, because a training of many is chaotic: rounding errors grow until models differ.
SHORT = {"epochs": 1, "repair_epochs": 1, "refine_epochs": 1, "batch_size": 8}

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="asks a real NVIDIA GPU, and there is none here")

#: Options under which a method does something in a few steps of a small stack.
OPTIONS = {
    "amnesiac": {"repair_epochs": 2},
    "classic": {"file": str(Path(__file__).parent / "classic_function.py")},
    "competition_first": {"epochs": 2},
    "lfssd": {"a": 0.8},
    "noisy_finetune": {"steps": 5},
    "ssd": {"a": 0.8},
    "unsir": {"noise_steps": 5},
}

torch.set_num_threads(1)


def mlp() -> nn.Module:
    """A chain of linear layers, 6-9-7-4."""
    model = nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 7), nn.ReLU(), nn.Linear(7, CLASSES))
    model.head = "4"
    return model


def tanh() -> nn.Module:
    """A chain with another activation and a layer without bias, 6-5-4."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(6, 5, bias=False), nn.Tanh(), nn.Linear(5, CLASSES))
    model.head = "3"
    return model


def conv() -> nn.Module:
    """A convolution with batch-norm and a linear head, for images [2, 6, 6]."""
    model = nn.Sequential(
        nn.Conv2d(2, 5, 3, bias=False), nn.BatchNorm2d(5), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(5, CLASSES),
    )  # fmt: skip
    model.head = "5"
    return model


def samples(build) -> tuple[np.ndarray, np.ndarray]:
    """x for that network (float32 vectors or uint8 images) and y, the largest of four noisy projections."""
    rng = np.random.default_rng(0)
    if build is not conv:
        x = rng.normal(size=(SAMPLES, 6)).astype(np.float32)
        flat = x
    else:
        x = rng.integers(0, 256, (SAMPLES, 2, 6, 6), dtype=np.uint8)
        flat = x.reshape(SAMPLES, -1) / 128 - 1
    y = (flat @ rng.normal(size=(flat.shape[1], CLASSES))).argmax(1)
    return x, y.astype(np.int64)


def masks(seeds) -> tuple[np.ndarray, np.ndarray]:
    """retain and forget, bool [models, samples]; a model's own depend on its seed alone."""
    retain, forget = np.zeros((2, len(seeds), SAMPLES), bool)
    for m, seed in enumerate(seeds):
        order = np.random.default_rng(seed).permutation(SAMPLES)
        retain[m, order[:KEPT]] = forget[m, order[KEPT : KEPT + LOST]] = True
    return retain, forget


def rows(seeds) -> tuple[Rows, Rows]:
    """(forget, retain) rows."""
    retain, forget = masks(seeds)
    return Rows.where(forget), Rows.where(retain)


def fresh(build=mlp, seeds=SEEDS, **settings) -> ModelStack:
    """Untrained models."""
    return ModelStack.create(build, *samples(build), seeds, **{"recipe": RECIPE, "backend": "stacked", **settings})


def trained(build=mlp, seeds=SEEDS, **settings) -> ModelStack:
    """Models trained on retain and forget that keep the updates which touched forget."""
    stack = fresh(build, seeds, **settings)
    retain, forget = masks(seeds)
    stack.train(Rows.where(retain | forget), record=forget)
    return stack


def part(stack: ModelStack, models: list[int], **settings) -> ModelStack:
    """A stack of some of the models, in that order, with its own settings, such as another device."""
    subset = fresh(stack.build, [stack.seeds[m] for m in models], **{"dtype": stack.dtype, **settings})
    for name in ("parameters", "buffers", "updates"):
        tensors = getattr(stack, name)
        taken = {k: v[models].clone().to(subset.device) for k, v in (tensors or {}).items()}
        setattr(subset, name, None if tensors is None else taken)
    return subset


def home(stack: ModelStack) -> ModelStack:
    """The stack, with its weights and statistics in main memory."""
    for tensors in (stack.parameters, stack.buffers):
        tensors.update({name: value.cpu() for name, value in tensors.items()})
    return stack


def fit(stack: ModelStack, **changed) -> Fit:
    """A fit of ``stack`` as its ``train`` asks for it; 31 rows in batches of 8, so that the last batch is smaller."""
    stack.model.train()
    passes = ((Stream(rows(stack.seeds)[1]),),)
    return Fit(stack, **({"optimiser": RECIPE, "epochs": 3, "purpose": "train", "passes": passes} | changed))


def twins(build=conv, seeds=SEEDS, optimiser=RECIPE, **settings) -> tuple[ModelStack, ModelStack]:
    """Two stacks of the same models, one after the ordinary fit and one after that on lanes."""
    plain, laned = (fresh(build, seeds, **settings) for _ in range(2))
    fit(plain, optimiser=optimiser).run()
    lanes.run(fit(laned, optimiser=optimiser))
    return plain, laned


def short(name: str) -> dict:
    """Options of a method by which it takes few steps."""
    fields = registry.load("methods", name).Options.model_fields
    return {option: value for option, value in SHORT.items() if option in fields}


def unlearned(
    stack: ModelStack, name: str, forget: Rows | None = None, retain: Rows | None = None, **options
) -> ModelStack:
    """A copy after the method ``name``; rows as `rows` draws them unless given."""
    lost, rest = rows(stack.seeds)
    forget, retain = lost if forget is None else forget, rest if retain is None else retain
    copy = stack.copy()
    method = registry.load("methods", name)
    method.unlearn(copy, forget, retain, method.Options(**{**OPTIONS.get(name, {}), **options}))
    return copy


def state(stack: ModelStack) -> dict[str, Tensor]:
    """Parameters and buffers."""
    return stack.parameters | stack.buffers


def same(a: ModelStack, b: ModelStack, slots_a=slice(None), slots_b=slice(None)) -> bool:
    """Whether all weights and buffers of these models agree bit by bit."""
    return all(torch.equal(v[slots_a], state(b)[k][slots_b]) for k, v in state(a).items())


def largest_gap(a: ModelStack, b: ModelStack) -> float:
    """The largest absolute difference of any weight or buffer."""
    return max(float((v.double() - state(b)[k].double()).abs().max()) for k, v in state(a).items())


def plain_training(stack: ModelStack, model: int, selection: Rows) -> nn.Module:
    """One model of an untrained stack as a module, after an ordinary loop by the stack's recipe of SGD over the batches
    that its stream announces."""
    module, recipe = stack.extract(model).train(), stack.recipe
    optimiser = torch.optim.SGD(
        module.parameters(), recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay
    )
    jitter = recipe.augment == "crop_flip"
    order = Order(selection[[model]], [stack.seeds[model]], "train/0.0", recipe.batch_size, jitter=jitter)
    for _, (index, shifts) in zip(range(order.steps * recipe.epochs), order, strict=False):
        batch = stack.read([model], index, shifts)
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(batch.x[0]), batch.labels[0]).backward()
        optimiser.step()
    return module


def batches(selection: Rows, model: int, seed: int, key: str, size: int, passes: int) -> list[list[np.ndarray]]:
    """For each pass, the batches of sample numbers that a model reads from a stream with that key."""
    order = Order(selection[[model]], [seed], key, size)
    reader = iter(order)
    return [[next(reader)[0][0].numpy() for _ in range(order.steps)] for _ in range(passes)]
