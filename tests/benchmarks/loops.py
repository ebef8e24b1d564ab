"""What training costs by a plain loop over tensors, one model after the other, and stacked, in one run on one core.

    python tests/benchmarks/loops.py [--repeats 5] [--models 1 8] [--networks mlp_64 mlp_512 cnn resnet20 gpt2]

The plain loop is the one that a careful person writes: batches by indexing tensors that lie in memory, torch's own SGD,
cross entropy; of the language model, the class of transformers with its own loss. Perceptrons, ``mlp_UNITS`` with any
number of units, have 64 inputs and two hidden layers. Prints milliseconds of one model's step, creation included.
"""

from functools import partial

import numpy as np
import torch
from torch import nn
from unlearning_audit.plugins import registry
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

from common import by_turns, clocked, command_line, told

RECIPE = Recipe(lr=0.05, momentum=0.9, weight_decay=5e-4, batch_size=64, epochs=1)
TEXT = {"vocabulary": 512, "layers": 2, "width": 64, "heads": 2}
#: Network → its name among models, its options, the shape of a sample, samples.
NETWORKS = {
    "cnn": ("cnn", {}, (3, 32, 32), 256),
    "resnet20": ("resnet_cifar", {"depth": 20}, (3, 32, 32), 192),
    "gpt2": ("gpt2", TEXT, (64,), 256),
}


def plain(build, x: torch.Tensor, y: torch.Tensor, models: int) -> None:
    """Train models one after the other."""
    for seed in range(models):
        torch.manual_seed(seed)
        model = build().train()
        optimiser = torch.optim.SGD(
            model.parameters(), lr=RECIPE.lr, momentum=RECIPE.momentum, weight_decay=RECIPE.weight_decay
        )
        for rows in torch.randperm(len(x)).split(RECIPE.batch_size):
            optimiser.zero_grad()
            images = x.is_floating_point()
            loss = (
                nn.functional.cross_entropy(model(x[rows]), y[rows]) if images else model(x[rows], labels=x[rows]).loss
            )
            loss.backward()
            optimiser.step()


def language_model() -> nn.Module:
    """The class of transformers, of the configuration that the stack's model has."""
    from transformers import GPT2Config, GPT2LMHeadModel
    from unlearning_audit.models._passage import undropped

    config = GPT2Config(
        vocab_size=TEXT["vocabulary"], n_positions=64, n_embd=TEXT["width"], n_layer=TEXT["layers"],
        n_head=TEXT["heads"], bos_token_id=None, eos_token_id=None, activation_function="gelu_pytorch_tanh",
    )  # fmt: skip
    return GPT2LMHeadModel(undropped(config))


def in_a_stack(build, x: np.ndarray, y: np.ndarray, models: int, backend: str) -> None:
    """Train models in a stack, which is created first."""
    stack = ModelStack.create(build, x, y, range(models), recipe=RECIPE, backend=backend)
    stack.train(Rows(np.tile(np.arange(len(x)), (models, 1))))


def main() -> None:
    arguments = command_line(__doc__, repeats=5, models=[1, 8], networks=["mlp_64", "mlp_512", *NETWORKS])
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    for network in arguments.networks:
        units = int(network.removeprefix("mlp_")) if network.startswith("mlp_") else 0
        name, options, shape, samples = NETWORKS.get(network, ("mlp", {"hidden": (units, units)}, (64,), 2048))
        module = registry.load("models", name)
        build = partial(module.build, module.Options(**options), shape, 10)
        if options == TEXT:
            x, y = rng.integers(0, TEXT["vocabulary"], (samples, *shape)), np.zeros(samples, np.int64)
        else:
            x, y = rng.standard_normal((samples, *shape), dtype=np.float32), rng.integers(0, 10, samples)
        tensors = language_model if options == TEXT else build, torch.from_numpy(x), torch.from_numpy(y)
        for models in arguments.models:
            ways = {"plain": partial(clocked, plain, *tensors, models)}
            for backend in ("serial", "stacked"):
                ways[backend] = partial(clocked, in_a_stack, build, x, y, models, backend)
            steps = models * -(-samples // RECIPE.batch_size)
            spent = {way: seconds / steps for way, seconds in by_turns(ways, arguments.repeats).items()}
            print(f"{network:9} {models:2} models  {told(spent)}", flush=True)


if __name__ == "__main__":
    main()
