"""Small stacks that are trained privately."""

import numpy as np
import torch
from unlearning_audit.models import cnn, mlp
from unlearning_audit.training import private
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows


def perceptron():
    return mlp.build(mlp.Options(hidden=(7,)), (5,), 3)


def convolutional(norm="group"):
    return cnn.build(cnn.Options(channels=(4, 8), norm=norm, groups=2, mean=(0.5,), std=(0.2,)), (1, 8, 8), 3)


def make(build=perceptron, seeds=(3, 5, 8), *, shape=(5,), samples=40, k=20, dtype=torch.float64, **recipe):
    """A stack on random data, and rows that differ between models with equal seeds having equal rows."""
    rng = np.random.default_rng(0)
    x, y = rng.random((samples, *shape)), rng.integers(0, 3, samples)
    rows = Rows(np.stack([np.random.default_rng(seed).permutation(samples)[:k] for seed in seeds]))
    recipe = Recipe(**{"batch_size": 8, "epochs": 3, "dp": {"epsilon": 8}} | recipe)
    return ModelStack.create(build, x.astype(np.float32), y, seeds, recipe=recipe, dtype=dtype), rows


def batches(stack, m, rows):
    """The Poisson batches of model m: samples [b, …] scaled and augmented, labels int64 [b]."""
    for index, jitter in private.Poisson(stack, [m], rows, 1):
        batch = stack.read([m], index, jitter)
        yield batch.x[0], batch.labels[0]
