"""Where stacking stops paying on a processor: the same networks stacked and one after the other, in one run.

    python tests/benchmarks/stacking.py [--repeats 5] [--models 2 4 8] [--units 64 128 ...] [--cnn]

Perceptrons of 64 inputs, two hidden layers of so many units and ten classes, batches of 64, SGD with momentum and
weight decay; with ``--cnn`` also the small convolutional network on 32 × 32 images. Both ways take turns; time is the
processor's, on one core. Prints, for each network and number of models, milliseconds of one model's step, and the
ratio of serial to stacked (above 1: stacking pays), as the median over repeats with the smallest and largest value.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import numpy as np
import torch
from unlearning_audit.plugins import registry
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

BATCH = 64


def spent(build, x: np.ndarray, y: np.ndarray, models: int, backend: str) -> float:
    """Milliseconds of one model's step, creation included."""
    recipe = Recipe(lr=0.05, momentum=0.9, weight_decay=5e-4, batch_size=BATCH, epochs=1)
    start = time.process_time()
    stack = ModelStack.create(build, x, y, range(models), recipe=recipe, backend=backend)
    stack.train(Rows(np.tile(np.arange(len(x)), (models, 1))))
    return 1e3 * (time.process_time() - start) / (models * len(x) / BATCH)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--models", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--units", type=int, nargs="+", default=[64, 192, 256, 320, 384, 512, 704, 960])
    parser.add_argument("--cnn", action="store_true", help="also the small convolutional network")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    networks = [("mlp", {"hidden": (units, units)}, (64,), 2048) for units in arguments.units]
    for name, options, shape, samples in [*networks, *[("cnn", {}, (3, 32, 32), 256)] * arguments.cnn]:
        module = registry.load("models", name)

        def build(module=module, options=options, shape=shape):
            return module.build(module.Options(**options), shape, 10)

        weights = sum(parameter.numel() for parameter in build().parameters())
        x, y = rng.standard_normal((samples, *shape), dtype=np.float32), rng.integers(0, 10, samples)
        for models in arguments.models:
            times = {backend: [] for backend in ("serial", "stacked")}
            for repeat in range(arguments.repeats + 1):
                for backend in list(times)[:: 1 if repeat % 2 else -1]:
                    value = spent(build, x, y, models, backend)
                    if repeat:  # the first imports and fills caches
                        times[backend].append(value)
            ratio = np.array(times["serial"]) / np.array(times["stacked"])
            print(
                f"{name} {weights:9,} weights {models:3d} models"
                + "".join(f"  {backend} {np.median(values):7.2f} ms" for backend, values in times.items())
                + f"  serial/stacked {np.median(ratio):.2f} [{ratio.min():.2f}, {ratio.max():.2f}]",
                flush=True,
            )


if __name__ == "__main__":
    main()
