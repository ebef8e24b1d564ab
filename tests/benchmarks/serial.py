"""What training one model after the other costs beside a plain loop over tensors, in one run on one core.

    python tests/benchmarks/serial.py [--repeats 15] [--networks perceptron_64 perceptron small_cnn resnet20 gpt2]
                                      [--profile]

The plain loop is the one that a careful person writes: batches by indexing tensors that lie in memory, torch's own SGD,
cross entropy; of the language model, the loss that transformers has for its own class. Both take turns, so that a busy
machine slows both; time is the processor's. Prints, for each network, milliseconds of a step and the ratio of the plain
loop to the stack (above 1: the stack is faster), as the median over repeats with the smallest and largest value.
``--profile`` prints instead where the stack's time goes.
"""

import argparse
import cProfile
import pstats
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import numpy as np
import torch
from torch import Tensor, nn
from unlearning_audit.plugins import registry
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

#: Network → its name among models, its options, the shape of a sample, samples, batch size.
NETWORKS = {
    "perceptron_64": ("mlp", {"hidden": (64,)}, (64,), 16384, 64),
    "perceptron": ("mlp", {"hidden": (512, 512)}, (64,), 4096, 64),
    "small_cnn": ("cnn", {}, (3, 32, 32), 1024, 64),
    "resnet20": ("resnet_cifar", {"depth": 20}, (3, 32, 32), 192, 64),
    "gpt2": ("gpt2", {"vocabulary": 512, "layers": 2, "width": 64, "heads": 2}, (64,), 256, 16),
}


def build_of(name: str, options: dict, shape: tuple[int, ...]):
    module = registry.load("models", name)
    return lambda: module.build(module.Options(**options), shape, 10)


def plain(build, x: Tensor, y: Tensor, recipe: Recipe) -> None:
    """Train one model."""
    torch.manual_seed(0)
    model = build()
    model.train()
    optimiser = torch.optim.SGD(
        model.parameters(), lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay
    )
    for _ in range(recipe.epochs):
        for rows in torch.randperm(len(x)).split(recipe.batch_size):
            optimiser.zero_grad()
            loss_of(model, x[rows], y[rows]).backward()
            optimiser.step()


def loss_of(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The mean loss of a batch."""
    if x.is_floating_point():
        return nn.functional.cross_entropy(model(x), y)
    return model(input_ids=x, labels=x).loss


def language_model(options: dict, shape: tuple[int, ...]) -> nn.Module:
    """The class of transformers, of the configuration that the stack's model has."""
    from transformers import GPT2Config, GPT2LMHeadModel
    from unlearning_audit.models._passage import undropped

    config = GPT2Config(
        vocab_size=options["vocabulary"], n_positions=shape[0], n_embd=options["width"], n_layer=options["layers"],
        n_head=options["heads"], bos_token_id=None, eos_token_id=None, activation_function="gelu_pytorch_tanh",
    )  # fmt: skip
    return GPT2LMHeadModel(undropped(config))


def banked(build, x: np.ndarray, y: np.ndarray, recipe: Recipe) -> None:
    """Train one model in a stack, which is created first."""
    stack = ModelStack.create(build, x, y, range(1), recipe=recipe, backend="serial")
    stack.train(Rows(np.arange(len(x))[None]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for network in arguments.networks:
        name, options, shape, samples, batch = NETWORKS[network]
        build = build_of(name, options, shape)
        rng = np.random.default_rng(0)
        text = "vocabulary" in options
        if text:
            x, y = rng.integers(0, options["vocabulary"], (samples, *shape)), np.zeros(samples, np.int64)
        else:
            x, y = rng.standard_normal((samples, *shape), dtype=np.float32), rng.integers(0, 10, samples)
        recipe = Recipe(lr=0.05, momentum=0.9, weight_decay=5e-4, batch_size=batch, epochs=2)

        plain_build = partial(language_model, options, shape) if text else build
        tensors = torch.from_numpy(x), torch.from_numpy(y)
        ways = {
            "plain loop": partial(plain, plain_build, *tensors, recipe),
            "stack": partial(banked, build, x, y, recipe),
        }
        for way in ways.values():
            way()
        if arguments.profile:
            profile = cProfile.Profile()
            profile.runcall(ways["stack"])
            pstats.Stats(profile).sort_stats("tottime").print_stats(28)
            continue
        spent: dict[str, list[float]] = {"plain loop": [], "stack": []}
        for repeat in range(arguments.repeats):
            for way in list(ways)[:: 1 if repeat % 2 else -1]:
                start = time.process_time()
                ways[way]()
                spent[way].append(time.process_time() - start)
        steps = recipe.epochs * -(-samples // batch)
        ratio = np.array(spent["plain loop"]) / np.array(spent["stack"])
        print(
            f"{network:13}"
            + "".join(f"  {way} {1e3 * np.median(seconds) / steps:7.2f} ms a step" for way, seconds in spent.items())
            + f"  plain/stack {np.median(ratio):.2f} [{ratio.min():.2f}, {ratio.max():.2f}]",
            flush=True,
        )


if __name__ == "__main__":
    main()
