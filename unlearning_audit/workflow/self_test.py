"""A self-test of a card: does the engine compute there what it computes on the processor, and how fast is it?

Every check is small, so that all take a minute or two. Nothing is downloaded: images are random numbers.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import nn

from unlearning_audit.bank import card
from unlearning_audit.bank.bank import Bank
from unlearning_audit.bank.recipe import Recipe
from unlearning_audit.bank.streams import Rows
from unlearning_audit.plugins import registry

#: Weights on the card may differ from those on the processor by so much: after training in double precision (rates are
#: rounded to single precision there), and after methods in single precision.
DOUBLE, SINGLE = 1e-6, 1e-3

IMAGE, CLASSES, SAMPLES, SEEDS = (3, 12, 12), 4, 60, (11, 12, 13)

#: Methods in few steps.
SHORT = {"epochs": 1, "repair_epochs": 1, "refine_epochs": 1, "batch_size": 8}

#: Batches that speed is measured on, at least and at most: the first two steps are ordinary and recorded, not replayed.
LEAST, MOST = 5, 40

#: Epochs of three trainings whose speed is measured: the first lets libraries choose their kernels, once in a process;
#: what the third takes longer than the second is that of its further epochs, without the recording of steps.
WARM_ONE_MANY = (1, 1, 9)

#: Products in bfloat16 whose speed counts as what the card can do at all: n × n numbers.
PRODUCT = 8192


@dataclass(frozen=True)
class Check:
    """One line of the self-test. ``passed`` is None where something is reported and nothing can fail."""

    name: str
    passed: bool | None
    result: str
    seconds: float = 0.0


#: A network that is stacked and two that are not: name → (file in models/, its options).
NETWORKS = {
    "perceptron": ("mlp", {"hidden": (9, 7)}),
    "ResNet-8": ("resnet_cifar", {"depth": 8}),
    "airbench": ("airbench", {"widths": (8, 8)}),
}

#: Seconds after which nothing further begins, and those that one measurement of speed may take, so that all takes two
#: minutes at most. On a card the checks launch 115,000 kernels, which takes about two seconds.
PATIENCE, SPEED_SECONDS = 90, 20


def run(device: str, say: Callable[[Check], None], speed: bool = True) -> list[Check]:
    """All checks on ``device`` ("cuda"), each given to ``say`` as soon as it is done. ``speed``: measure it, too.

    An error of a check is its result; the others go on.
    """
    work: list[tuple[str, Callable[[], tuple[bool | None, str]]]] = []
    for label, network in ((label, NETWORKS[label]) for label in ("perceptron", "ResNet-8")):
        for optimiser in ("sgd", "adamw"):
            work.append((f"{label}, {optimiser}, recorded", lambda n=network, o=optimiser: _training(n, o, device)))
    for method in methods():
        work.append((f"method {method}", lambda m=method: _method(m, NETWORKS["perceptron"], device)))
    for label in ("ResNet-8", "airbench"):
        work.append((f"the same bits twice, {label}", lambda n=NETWORKS[label]: _repeated(n, device)))
    work.append(("memory of lanes", lambda: _lanes(NETWORKS["ResNet-8"], device)))
    if speed:
        names = ("airbench", "ResNet-20", "ResNet-18")
        work += [(f"speed of {name}", lambda n=name: _speed(n, device)) for name in names]
    checks, start_of_tests = [], time.perf_counter()
    for name, ask in work:
        start = time.perf_counter()
        if start - start_of_tests > PATIENCE:
            checks.append(Check(name, None, f"not tried, because {PATIENCE} seconds have passed"))
            say(checks[-1])
            continue
        try:
            passed, result = ask()
        except Exception as error:
            passed, result = False, f"{type(error).__name__}: {card.sentence(error)}"
        checks.append(Check(name, passed, result, round(time.perf_counter() - start, 2)))
        say(checks[-1])
    return checks


def methods() -> list[str]:
    """The library's methods, without the adapter of files that a user brings."""
    names = registry.names("methods")
    return [name for name in names if not registry.defines("methods", name, None, "ADAPTER")]


def record(checks: list[Check]) -> str:
    """What can be sent with a report of a fault, as JSON: the card, the software, every check."""
    variables = [name for name in sorted(os.environ) if name.startswith(("UNLEARNING_", "CUDA_"))]
    facts = {
        "card": card.describe(),
        "free_mib": torch.cuda.mem_get_info()[0] >> 20,
        "torch": torch.__version__,
        "architectures": torch.cuda.get_arch_list(),
        "variables": {name: os.environ[name] for name in variables},
        "checks": [asdict(check) for check in checks],
    }
    return json.dumps(facts, indent=1) + "\n"


def _bank(network: tuple[str, dict], device: str, dtype: torch.dtype = torch.float32, **recipe: object) -> Bank:
    name, options = network
    architecture = registry.load("models", name)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (SAMPLES, *IMAGE), dtype=np.uint8)
    settings = Recipe(**{"lr": 0.05, "momentum": 0.9, "weight_decay": 5e-4, "batch_size": 8, "epochs": 2, **recipe})
    model_options = architecture.Options(**options)
    return Bank.create(
        lambda: architecture.build(model_options, IMAGE, CLASSES), x, rng.integers(0, CLASSES, SAMPLES), SEEDS,
        recipe=settings, device=device, dtype=dtype,
    )  # fmt: skip


def _rows() -> tuple[Rows, Rows, np.ndarray]:
    """Rows to forget and to retain of every model, and bool [models, samples] of those to forget."""
    orders = [np.random.default_rng(seed).permutation(SAMPLES) for seed in SEEDS]
    forget = np.zeros((len(SEEDS), SAMPLES), bool)
    for model, order in enumerate(orders):
        forget[model, order[:13]] = True
    return Rows(np.stack([order[:13] for order in orders])), Rows(np.stack([order[13:44] for order in orders])), forget


def _gap(*banks: Bank) -> float:
    """The largest difference of any weight or statistic of two banks."""
    first, second = (
        {name: value.detach().cpu().double() for name, value in (bank.parameters | bank.buffers).items()}
        for bank in banks
    )
    return max(float((value - second[name]).abs().max()) for name, value in first.items())


def _training(network: tuple[str, dict], optimiser: str, device: str) -> tuple[bool, str]:
    settings = {"optimiser": optimiser, "schedule": "cosine", "lr": 0.05 if optimiser == "sgd" else 1e-3}
    banks = [_bank(network, place, torch.float64, **settings) for place in ("cpu", device)]
    for bank in banks:
        bank.train(_rows()[1])
    gap = _gap(*banks)
    return gap < 10 * DOUBLE, f"weights differ from the processor's by {gap:.1e} after training in double precision"


def _method(name: str, network: tuple[str, dict], device: str) -> tuple[bool, str]:
    module, (forget, retain, mask) = registry.load("methods", name), _rows()
    options = module.Options(**{key: value for key, value in SHORT.items() if key in module.Options.model_fields})
    banks = [_bank(network, place, epochs=1) for place in ("cpu", device)]
    for bank in banks:
        bank.train(Rows(np.concatenate([forget.index, retain.index], 1)), record=mask)
        module.unlearn(bank, forget, retain, options)
    gap = _gap(*banks)
    return gap < SINGLE, f"weights differ from the processor's by {gap:.1e}"


def _repeated(network: tuple[str, dict], device: str) -> tuple[bool | None, str]:
    banks = [_bank(network, device) for _ in range(2)]
    for bank in banks:
        bank.train(_rows()[1])
    same = _gap(*banks) == 0
    if same or card.deterministic():
        return same, "yes" if same else "no, although UNLEARNING_DETERMINISTIC asks for it"
    return None, "no; UNLEARNING_DETERMINISTIC=1 asks for it"


def _lanes(network: tuple[str, dict], device: str) -> tuple[bool, str]:
    """Whether training leaves the card's memory as it was, whatever ran side by side; how much it took.

    What a lane holds is a multiple of its model's weights, so that less than those of one model may remain. A training
    before lets libraries take what they keep; their workspaces, one for each stream, are given back."""
    bank = _bank(network, device)
    bank.train(_rows()[1])
    weights = sum(value[0].nbytes for value in bank.stored().values())
    _give_back()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    bank.train(_rows()[1])
    _give_back()
    peak, after = torch.cuda.max_memory_allocated() - before, torch.cuda.memory_allocated() - before
    return after < weights, (
        f"{peak >> 10} KiB were taken at most, {after >> 10} KiB remain; one model is of {weights >> 10} KiB"
    )


def _give_back() -> None:
    """Give memory that nobody uses back to the card, and the workspaces that cuBLAS keeps for each stream."""
    torch.cuda.synchronize()
    getattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None)()
    torch.cuda.empty_cache()


def _speed(name: str, device: str) -> tuple[None, str]:
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
        return None, f"not measured, because a step takes an ordinary loop {ordinary:.1f} s"
    recipe = Recipe(lr=0.05, momentum=0.9, weight_decay=5e-4, batch_size=batch, epochs=1, precision="bfloat16")
    engine, rows = [], Rows(np.tile(np.arange(batches * batch), (models, 1)))
    for epochs in WARM_ONE_MANY:
        bank = Bank.create(lambda: architecture.build(model_options, shape, 10), x, y, range(models),
                           recipe=recipe.model_copy(update={"epochs": epochs}), device=device)  # fmt: skip
        engine.append(_clocked(lambda bank=bank: bank.train(rows)))
    banked = (engine[2] - engine[1]) / (WARM_ONE_MANY[2] - WARM_ONE_MANY[1]) / batches / models
    if banked <= 0:
        return None, "not measured, because more epochs took no longer: the card or its processor is busy"
    steps = 50 * 25_000 / batch
    share = 3 * counter.get_total_flops() * batch / banked / _ceiling(device)
    return None, (
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
