"""Models per hour: an ordinary loop against the stack, in one run, beside what the device can do at all.

    python tests/benchmarks/training.py --data data [--network resnet18] [--epochs 50] [--models 8]
                                        [--in-flight 1 2 4 8] [--accuracy]

Both ways train on random halves of CIFAR-10 (25,000 images) with batches of 128, SGD .1/.9/5e-4, a cosine
schedule, random crops and flips. The ordinary way is torchvision's ResNet-18 in its CIFAR form (or our ResNet-20),
a DataLoader with transforms and two workers, single precision, one model after the other. Its epochs are all
alike, so it runs ``--ordinary-epochs`` of them unless ``--accuracy`` asks for whole models. The card's ceiling is a
large matrix product in bfloat16 on random numbers. Prints models per hour, TFLOP/s by the operations of the
network's convolutions and linear layers (three times those of the forward pass), the share of the ceiling and the
test accuracy. With UNLEARNING_COMPILE=1 in the environment, torch's compiler fuses the stack's layers, which takes part
of the time.

``--device cpu --in-flight 1`` measures one core, in seconds of computing, those of the workers included, so that what
else runs on the machine counts little: compare ``--network resnet20`` with ``airbench``, and ``--precision``.
"""

import argparse
import os
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from unlearning_audit.models._layers import Standardise
from unlearning_audit.plugins import registry
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
NETWORKS = {"resnet18": ("resnet18", {}), "airbench": ("airbench", {}), "resnet20": ("resnet_cifar", {"depth": 20})}


class Images(Dataset):
    """Images as PIL sees them, through the usual transforms."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        from torchvision import transforms

        steps = [transforms.ToPILImage(), transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip()]
        self.change = transforms.Compose([*steps, transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
        self.x, self.y = x.transpose(0, 2, 3, 1), y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        return self.change(self.x[i]), int(self.y[i])


def network(name: str) -> nn.Module:
    """Our network of that name, for images 3 × 32 × 32 in [0, 1]."""
    module, options = NETWORKS[name]
    architecture = registry.load("models", module)
    return architecture.build(architecture.Options(**options, mean=MEAN, std=STD), (3, 32, 32), 10)


def usual(name: str) -> nn.Module:
    """What people train: torchvision's ResNet-18 with a 3 × 3 stem and no pooling; there is no ResNet-20 in it."""
    if name != "resnet18":
        model = network(name)
        for part, layer in list(model.named_children()):
            if isinstance(layer, Standardise):
                setattr(model, part, nn.Identity())  # the loader standardises
        return model
    from torchvision.models import resnet18

    model = resnet18(num_classes=10)
    model.conv1, model.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    return model


def settled(device: str) -> float:
    """The time, once the device has done all it was asked for; of a processor, seconds of computing, with those of the
    workers that have ended."""
    if device == "cpu":
        return time.process_time() + sum(os.times()[2:4])
    torch.cuda.synchronize()
    return time.perf_counter()


def ceiling(device: str) -> float:
    """TFLOP/s of a large product of random matrices in bfloat16, the median of 20 after a warm-up."""
    n = 8192 if device == "cuda" else 512
    a, b = (torch.randn(n, n, device=device).bfloat16() for _ in range(2))
    seconds = []
    for _ in range(25):
        start = settled(device)
        a @ b
        seconds.append(settled(device) - start)
    return 2 * n**3 / statistics.median(seconds[5:]) / 1e12


def operations(name: str) -> float:
    """Floating-point operations of training on one image."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        network(name)(torch.zeros(1, 3, 32, 32))
    return 3.0 * counter.get_total_flops()


def accuracy(logits: np.ndarray, y: np.ndarray) -> list[float]:
    """Share of right answers of every model, in percent."""
    return [100 * float((z.argmax(-1) == y).mean()) for z in logits]


def ordinary(name: str, data: tuple, rows: np.ndarray, recipe: Recipe, epochs: int, device: str) -> tuple[float, float]:
    """(seconds for each epoch, test accuracy) of one model."""
    x, y, test_x, test_y = data
    model = usual(name).to(device)
    loader = DataLoader(
        Images(x[rows], y[rows]), recipe.batch_size, shuffle=True, num_workers=2, pin_memory=device == "cuda"
    )
    optimiser = torch.optim.SGD(model.parameters(), recipe.lr, recipe.momentum, weight_decay=recipe.weight_decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, recipe.epochs)
    start = settled(device)
    for _ in range(epochs):
        for images, labels in loader:
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(images.to(device)), labels.to(device)).backward()
            optimiser.step()
        schedule.step()
    seconds = (settled(device) - start) / epochs
    model.eval()
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, STD))
    scaled = (torch.from_numpy(test_x).float() / 255 - mean) / std
    with torch.no_grad():
        logits = torch.cat([model(part.to(device)).cpu() for part in scaled.split(1000)]).numpy()
    return seconds, accuracy(logits[None], test_y)[0]


def banked(name: str, data: tuple, rows: np.ndarray, recipe: Recipe, device: str) -> tuple[float, list[float]]:
    """(seconds for each model, test accuracies) of ``rows`` [models, samples] trained as one stack."""
    x, y, test_x, test_y = data
    inputs, labels = np.concatenate([x, test_x]), np.concatenate([y, test_y])
    stack = ModelStack.create(lambda: network(name), inputs, labels, range(len(rows)), recipe=recipe, device=device)
    start = settled(device)
    stack.train(Rows(rows))
    seconds = (settled(device) - start) / len(rows)
    return seconds, accuracy(stack.logits(np.arange(len(x), len(inputs))), test_y)


def halves(models: int, pool: int, samples: int) -> np.ndarray:
    """Random halves of the pool, int64 [models, samples]."""
    return np.stack([np.random.default_rng(m).permutation(pool)[:samples] for m in range(models)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="data", help="folder with CIFAR-10 as torchvision lays it out")
    parser.add_argument("--network", choices=NETWORKS, default="resnet18")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--ordinary-epochs", type=int, default=2)
    parser.add_argument("--models", type=int, default=8)
    parser.add_argument("--samples", type=int, default=25000)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="bfloat16")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--accuracy", action="store_true", help="train the ordinary models to their end")
    a = parser.parse_args()
    source = registry.load("data", "cifar10")
    dataset = source.load(source.Options(data_dir=a.data), Path())
    train = dataset.part == 0
    data = (dataset.x[train], dataset.y[train], dataset.x[~train], dataset.y[~train])
    recipe = Recipe(lr=0.1, momentum=0.9, weight_decay=5e-4, schedule="cosine", batch_size=128, epochs=a.epochs,
                    augment="crop_flip", precision=a.precision)  # fmt: skip
    rows = halves(a.models, len(data[1]), a.samples)
    if a.device == "cpu":
        torch.set_num_threads(1)
    top, work = ceiling(a.device), operations(a.network) * a.samples * a.epochs
    print(f"{a.network}, {a.epochs} epochs of {a.samples} images: {work / 1e15:.3g} PFLOP per model")
    print(f"ceiling: {top:.3g} TFLOP/s, {work / top / 1e12:.1f} s per model")

    def tell(way: str, seconds: float, right: list[float], base: float | None) -> None:
        rate = work / seconds / 1e12
        faster = "" if base is None else f", {base / seconds:.1f} times the ordinary loop"
        spread = statistics.stdev(right) if len(right) > 1 else float("nan")
        print(
            f"{way:28} {seconds:8.1f} s per model, {3600 / seconds:7.1f} models per hour, {rate:6.1f} TFLOP/s, "
            f"{100 * rate / top:4.1f} % of the ceiling{faster}; accuracy {statistics.mean(right):.2f} ± {spread:.2f} %",
            flush=True,
        )

    epochs = a.epochs if a.accuracy else min(a.ordinary_epochs, a.epochs)
    runs = [ordinary(a.network, data, rows[m], recipe, epochs, a.device) for m in range(a.models if a.accuracy else 1)]
    base = statistics.median(seconds for seconds, _ in runs) * a.epochs
    tell(f"ordinary ({epochs} epochs)", base, [right for _, right in runs], None)
    for count in a.in_flight:
        os.environ["UNLEARNING_IN_FLIGHT"] = str(count)
        tell(f"stack, {count} in flight", *banked(a.network, data, rows, recipe, a.device), base)


if __name__ == "__main__":
    main()
