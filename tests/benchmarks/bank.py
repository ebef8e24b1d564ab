"""What a model costs: an ordinary DataLoader loop against the bank, stacked and serial, in one run on one core.

    python tests/benchmarks/bank.py [--repeats 5] [--models 32]

A multilayer perceptron 64-128-64-10 on 800 handwritten digits, batches of 64, 40 epochs, SGD .05/.9/5e-4.
The ways take turns within each repeat, so that a busy machine slows all of them; time is the processor's,
per model. Prints the median over repeats with the smallest and largest value, and the same of the ratios.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from unlearning_audit.bank.bank import Bank
from unlearning_audit.bank.recipe import Recipe
from unlearning_audit.bank.streams import Rows
from unlearning_audit.plugins import registry

RECIPE = Recipe(lr=0.05, momentum=0.9, weight_decay=5e-4, batch_size=64, epochs=40)
SAMPLES = 800


def build() -> nn.Module:
    """64-128-64-10 with ReLU."""
    mlp = registry.load("models", "mlp")
    return mlp.build(mlp.Options(hidden=(128, 64)), (64,), 10)


def ordinary(x: np.ndarray, y: np.ndarray, models: int) -> None:
    """The loop that every tutorial shows, no workers."""
    data = TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    for seed in range(models):
        torch.manual_seed(seed)
        model = build()
        loader = DataLoader(data, batch_size=RECIPE.batch_size, shuffle=True)
        optimiser = torch.optim.SGD(
            model.parameters(), lr=RECIPE.lr, momentum=RECIPE.momentum, weight_decay=RECIPE.weight_decay
        )
        for _ in range(RECIPE.epochs):
            for inputs, labels in loader:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(inputs), labels).backward()
                optimiser.step()


def banked(backend: str):
    """Training with the bank, creation included."""

    def run(x: np.ndarray, y: np.ndarray, models: int) -> None:
        bank = Bank.create(build, x, y, range(models), recipe=RECIPE, backend=backend)
        bank.train(Rows(np.tile(np.arange(len(x)), (models, 1))))

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--models", type=int, default=32, help="models in the stacked bank")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    digits = load_digits()
    x, y = (digits.data[:SAMPLES] / 16).astype(np.float32), digits.target[:SAMPLES].astype(np.int64)
    fewer = max(2, arguments.models // 8)
    ways = {
        "(a) DataLoader loop": (ordinary, fewer),
        "(b) bank, stacked": (banked("stacked"), arguments.models),
        "(c) bank, serial": (banked("serial"), fewer),
    }
    for run, _ in ways.values():
        run(x[:64], y[:64], 2)  # imports and caches
    spent = {name: [] for name in ways}
    for _ in range(arguments.repeats):
        for name, (run, models) in ways.items():
            start = time.process_time()
            run(x, y, models)
            spent[name].append(1e3 * (time.process_time() - start) / models)
    reference = np.array(spent["(a) DataLoader loop"])
    print(f"{SAMPLES} samples, {RECIPE.epochs} epochs, {arguments.repeats} repeats: median [smallest, largest]")
    for name, values in spent.items():
        ms, ratio = np.array(values), reference / np.array(values)
        print(
            f"{name:20} {np.median(ms):6.0f} [{ms.min():.0f}, {ms.max():.0f}] ms per model and core, "
            f"{np.median(ratio):.2f} [{ratio.min():.2f}, {ratio.max():.2f}] times (a)"
        )


if __name__ == "__main__":
    main()
