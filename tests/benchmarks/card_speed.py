"""How fast does a card train a CIFAR recipe? ``python tests/benchmarks/card_speed.py`` on a machine with a GPU.

Prints of three networks how many models are trained in an hour, how many times as fast as an ordinary loop that is, and
the share of the ceiling of bfloat16 products.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from unlearning_audit.plugins import registry
from unlearning_audit.training.bank import Bank
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.streams import Rows

#: Batches that speed is measured on, at least and at most: the first two steps are ordinary and recorded, not replayed.
LEAST, MOST = 5, 40

#: Epochs of three trainings whose speed is measured: the first lets libraries choose their kernels, once in a process;
#: what the third takes longer than the second is that of its further epochs, without the recording of steps.
WARM_ONE_MANY = (1, 1, 9)

#: Products in bfloat16 whose speed counts as what the card can do at all: n × n numbers.
PRODUCT = 8192


#: Seconds that one measurement may take.
SPEED_SECONDS = 20


def _speed(name: str, device: str) -> str:
    """Models per hour of a CIFAR recipe (50 epochs of 25,000 images, batches of 128), by some steps of the engine in
    bfloat16 and of an ordinary loop in single precision, and the engine's share of the ceiling of bfloat16 products."""
    from torch.utils.flop_counter import FlopCounterMode

    module, options = {"airbench": ("airbench", {}), "ResNet-20": ("resnet_cifar", {"depth": 20}),
                       "ResNet-18": ("resnet18", {})}[name]  # fmt: skip
    architecture = registry.load("models", module)
    model_options, shape, batch, models = architecture.Options(**options), (3, 32, 32), 128, 4
    with FlopCounterMode(display=False) as counter:
        architecture.build(model_options, shape, 10)(torch.zeros(1, *shape))
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (MOST * batch, *shape), dtype=np.uint8), rng.integers(0, 10, MOST * batch)
    ordinary = _ordinary(architecture.build(model_options, shape, 10), x[: LEAST * batch], y, batch, device)
    batches = affordable(ordinary, sum(WARM_ONE_MANY) * models)
    if not batches:
        return f"not measured, because a step takes an ordinary loop {ordinary:.1f} s"
    recipe = Recipe(lr=0.05, momentum=0.9, weight_decay=5e-4, batch_size=batch, epochs=1, precision="bfloat16")
    engine, rows = [], Rows(np.tile(np.arange(batches * batch), (models, 1)))
    for epochs in WARM_ONE_MANY:
        bank = Bank.create(lambda: architecture.build(model_options, shape, 10), x, y, range(models),
                           recipe=recipe.model_copy(update={"epochs": epochs}), device=device)  # fmt: skip
        engine.append(_clocked(lambda bank=bank: bank.train(rows)))
    banked = (engine[2] - engine[1]) / (WARM_ONE_MANY[2] - WARM_ONE_MANY[1]) / batches / models
    if banked <= 0:
        return "not measured, because more epochs took no longer: the card or its processor is busy"
    steps = 50 * 25_000 / batch
    share = 3 * counter.get_total_flops() * batch / banked / _ceiling(device)
    return (
        f"{3600 / banked / steps:.0f} models an hour, {ordinary / banked:.1f} × an ordinary loop in single precision, "
        f"{100 * share:.0f} % of the ceiling of bfloat16 products"
    )


def affordable(step: float, times: int) -> int:
    """Batches of which each may be worked on so many ``times``, if a step takes ``step`` seconds, in `SPEED_SECONDS`: 0
    where that is less than `LEAST`, `MOST` at most."""
    batches = min(MOST, int(SPEED_SECONDS / (times * step)))
    return batches if batches >= LEAST else 0


def _ordinary(model: nn.Module, x: np.ndarray, y: np.ndarray, batch: int, device: str) -> float:
    """Seconds of a step of the usual loop, its images on the card already."""
    model = model.to(device).train()
    images, labels = torch.from_numpy(x).to(device).float() / 255, torch.from_numpy(y).to(device)
    optimiser = torch.optim.SGD(model.parameters(), 0.05, 0.9, weight_decay=5e-4)

    def epoch() -> None:
        for part in range(0, len(images), batch):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(images[part : part + batch]), labels[part : part + batch]).backward()
            optimiser.step()

    epoch()
    return _clocked(epoch) / (len(images) / batch)


def _ceiling(device: str) -> float:
    """FLOP/s of a large product of random matrices in bfloat16: the fastest of ten."""
    a, b = (torch.randn(PRODUCT, PRODUCT, device=device).bfloat16() for _ in range(2))
    return 2 * PRODUCT**3 / min(_clocked(lambda: a @ b) for _ in range(10))


def _clocked(work: Callable[[], object]) -> float:
    """Seconds until the card has done ``work``."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


if __name__ == "__main__":
    for network in ("airbench", "ResNet-20", "ResNet-18"):
        print(f"{network}: {_speed(network, 'cuda')}", flush=True)
