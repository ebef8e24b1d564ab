"""Private training beside Opacus' own loop of ghost clipping on the same batches, paired in one process.

    python tests/benchmarks/private_training.py [--runs 3] [--models mlp resnet20 ...] [--device cuda --epochs 20]

Random images. A line for each network: time of a processor, or by the clock on a card, for a step of a model by
Opacus and here, and the largest difference of any weight in double precision. What is done once, such as recording
steps, counts, so a card needs more epochs.
"""

import copy
import time
import warnings
from functools import partial

import numpy as np
import torch
from opacus.grad_sample import GradSampleHooksFastGradientClipping
from opacus.optimizers import DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
from torch import nn
from unlearning_audit.models import cnn, mlp, resnet18, resnet_cifar
from unlearning_audit.randomness.keyed import seed_of
from unlearning_audit.training import private
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

from common import by_turns, clocked, command_line, told

NOISE = 1.0

#: Network → its file and options, the shape of an image, models, and samples of each.
CASES = {
    "mlp": (mlp, {"hidden": (64,)}, (1, 28, 28), 8, 1818),
    "cnn": (cnn, {"norm": "group", "mean": (0.1,), "std": (0.3,)}, (1, 28, 28), 2, 1818),
    "resnet20": (resnet_cifar, {"norm": "group"}, (3, 32, 32), 1, 500),
    "resnet18": (resnet18, {"norm": "group"}, (3, 32, 32), 1, 500),
}


def by_opacus(stack: ModelStack, rows: Rows) -> None:
    """Train every model with Opacus' fastest mode, one after the other."""
    recipe, model = stack.recipe, copy.deepcopy(stack.model).train()
    hooks = GradSampleHooksFastGradientClipping(model, max_grad_norm=recipe.dp.max_grad_norm)
    for m in range(len(stack)):
        stack.fill(model, m)
        optimiser = DPOptimizerFastGradientClipping(
            torch.optim.RMSprop(model.parameters(), lr=recipe.lr), noise_multiplier=NOISE,
            max_grad_norm=recipe.dp.max_grad_norm,
            expected_batch_size=len(rows) // private.steps_per_epoch(len(rows), recipe.batch_size),
            generator=torch.Generator(stack.device).manual_seed(seed_of(stack.seeds[m], "train/noise")),
        )  # fmt: skip
        criterion = DPLossFastGradientClipping(hooks, optimiser, nn.CrossEntropyLoss())
        for index, _ in private.Poisson(stack, [m], rows, 1):
            batch = stack.read([m], index)
            criterion(model(batch.x[0]), batch.labels[0]).backward()
            optimiser.step()
            optimiser.zero_grad()
        stack.insert(m, model)


def here(stack: ModelStack, rows: Rows) -> None:
    private.train_with_noise(stack, rows, NOISE)


def main() -> None:
    arguments = command_line(__doc__, runs=3, epochs=2, models=[*CASES], device="cpu")
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "Full backward hook is firing")
    recipe = Recipe(optimiser="rmsprop", lr=0.01, batch_size=256, epochs=arguments.epochs, dp={"epsilon": 50})
    clock = time.process_time if arguments.device == "cpu" else time.perf_counter
    for name in arguments.models:
        network, options, shape, models, samples = CASES[name]
        build = partial(network.build, network.Options(**options), shape, 10)
        rng = np.random.default_rng(0)
        x, y = rng.integers(0, 256, (samples, *shape), dtype=np.uint8), rng.integers(0, 10, samples)
        rows = Rows(np.tile(np.arange(samples), (models, 1)))
        create = partial(ModelStack.create, build, x, y, range(models), device=arguments.device)

        def seconds(train, create=create, rows=rows) -> float:
            stack = create(recipe=recipe)

            def run() -> None:
                train(stack, rows)
                if arguments.device != "cpu":
                    torch.cuda.synchronize()

            return clocked(run, clock=clock)

        ways = {"Opacus": partial(seconds, by_opacus), "here": partial(seconds, here)}
        steps = models * recipe.epochs * private.steps_per_epoch(samples, recipe.batch_size)
        spent = {way: values / steps for way, values in by_turns(ways, arguments.runs).items()}
        double = [create(recipe=recipe.model_copy(update={"epochs": 2}), dtype=torch.float64) for _ in ways]
        for train, stack in zip((by_opacus, here), double, strict=True):
            train(stack, rows)
        first, second = (stack.parameters for stack in double)
        gap = max(float((first[name] - second[name]).abs().max()) for name in first)
        print(f"{name:9} {told(spent)}  differ {gap:.0e}", flush=True)


if __name__ == "__main__":
    main()
