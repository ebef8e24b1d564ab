"""The last hidden layer: the last layer makes of it what a model answers, for every architecture and a user's own."""

import functools

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import linear as weighted
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError
from unlearning_audit.training import features
from unlearning_audit.training.stack import ModelStack

from model_cases import CIFAR
from slow_cases import slow
from text_cases import LENGTH, VOCABULARY, passages

SEEDS = [3, 4]
TEXT = {"vocabulary": VOCABULARY, "width": 12}
DEEP = {**TEXT, "layers": 2, "heads": 2}
CLASSIFIERS = [
    ("linear", (1, 4, 4), {}), ("mlp", (64,), {"hidden": [16, 8]}), ("cnn", CIFAR, {"channels": [8]}),
    *slow(("resnet18", (3, 16, 16), {})), ("resnet_cifar", (3, 16, 16), {"depth": 8}), ("airbench", (3, 16, 16), {}),
    ("swin_s", CIFAR, {"image_size": 32, "depths": [1, 1, 1, 1], "heads": [1, 1, 1, 1], "width": 8}),
    ("embedding_bag", (LENGTH,), TEXT), ("bert", (LENGTH,), DEEP), ("distilbert", (LENGTH,), DEEP),
]  # fmt: skip
#: Samples of two models, the last of the second one missing.
INDEX = np.array([[4, 0, 7, 29], [1, 2, 8, -1]])


def architecture(name, shape, classes, **options):
    """A function that builds a model."""
    module = registry.load("models", name)
    return functools.partial(module.build, module.Options(**options), shape, classes)


def new_stack(build, x, backend="serial"):
    return ModelStack.create(build, x, np.zeros(len(x), np.int64), SEEDS, backend=backend)


def samples(shape):
    if shape == (LENGTH,):
        return np.where(passages() < 0, -1, passages())
    return np.random.default_rng(0).random((30, *shape)).astype(np.float32)


@pytest.mark.parametrize(("name", "shape", "options"), CLASSIFIERS)
@pytest.mark.parametrize("backend", ["serial", "stacked"])
def test_the_last_layer_makes_logits_of_it(name, shape, options, backend):
    stack = new_stack(architecture(name, shape, 5, **options), samples(shape), backend)
    with torch.no_grad():  # else some of it is 0 at the start, as a bias is
        stack.edit(lambda _, v: v + 0.01 * torch.randn(v.shape, generator=torch.Generator().manual_seed(1)))
    states, logits = features.readings(stack, INDEX), stack.logits()
    assert states.dtype == np.float32
    for model, rows in enumerate(INDEX):
        weight, bias = (stack.parameters[f"{stack.final_layer}.{part}"][model].numpy() for part in ("weight", "bias"))
        real = rows >= 0
        answers = states[model, real] @ weight.T + bias
        np.testing.assert_allclose(answers, logits[model, rows[real]], rtol=1e-3, atol=1e-4 * np.abs(answers).max())
        assert states[model, real].std(axis=0).max() > 0
        assert not states[model, ~real].any()


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox", "llama"])
def test_of_a_passage_it_is_the_mean_over_scored_tokens(name):
    """Means commute with the output weights: those of logits of tokens are the weights times the mean state."""
    stack = new_stack(architecture(name, (LENGTH,), 2, **DEEP), passages())
    # The weights that make tokens of states are those of the tokens themselves where they are tied.
    output = stack.parameters.get("output.weight", stack.parameters.get("trunk.wte.weight"))
    readings = features.readings(stack, INDEX)
    for model, rows in enumerate(INDEX):
        x = stack.x[rows[rows >= 0]]
        logits, scored = stack.output(stack.state(model), x, "tokens"), (x[:, 1:] >= 0).float()
        mean = (logits * scored[..., None]).sum(1) / scored.sum(1, keepdim=True)
        states = torch.from_numpy(readings[model, rows >= 0])
        torch.testing.assert_close(weighted(states, output[model]), mean, rtol=1e-3, atol=1e-4)


def test_the_numbers_of_a_model_do_not_depend_on_its_company_or_on_chunks(monkeypatch):
    build, x = architecture("mlp", (64,), 5, hidden=[16, 8]), samples((64,))
    whole = features.readings(new_stack(build, x, "stacked"), np.tile(np.arange(30), (2, 1)))
    alone = ModelStack.create(build, x, np.zeros(30, np.int64), SEEDS[1:])
    np.testing.assert_array_equal(features.readings(alone, np.arange(30)[None])[0], whole[1])
    monkeypatch.setattr(features, "CHUNK", 7)
    again = features.readings(new_stack(build, x), np.tile(np.arange(30), (2, 1)))
    np.testing.assert_allclose(again, whole, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- a user's own model


class Own(nn.Module):
    """A model of two layers, whose forward pass is given."""

    def __init__(self, last, forward):
        super().__init__()
        self.first, self.last, self.way = nn.Linear(6, 6), last, forward
        self.head = "last"

    def forward(self, x):
        return self.way(self, x)


def custom_stack(last, forward, shape=(6,)):
    return new_stack(lambda: Own(last(), forward), samples(shape))


def test_a_last_convolution_is_read_as_the_mean_over_its_places():
    stack = custom_stack(lambda: nn.Conv2d(2, 4, 1), lambda self, x: self.last(x).mean((2, 3)), (2, 5, 5))
    readings = features.readings(stack, INDEX)
    np.testing.assert_allclose(readings[0], stack.x[INDEX[0]].mean((2, 3)), rtol=1e-5)


def test_a_last_layer_of_each_token_is_read_as_the_mean_over_tokens():
    stack = custom_stack(lambda: nn.Linear(6, 4), lambda self, x: self.last(self.first(x)).mean(1), (3, 6))
    weight, bias = stack.parameters["last.weight"][0], stack.parameters["last.bias"][0]
    states = torch.from_numpy(features.readings(stack, INDEX)[0])
    np.testing.assert_allclose(weighted(states, weight, bias), stack.logits()[0, INDEX[0]], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("forward", "problem"),
    [
        (lambda self, x: weighted(self.first(x), self.last.weight), "runs it 0 times"),
        (lambda self, x: self.last(self.first(x)) + self.last(x), "runs it 2 times"),
        (lambda self, x: self.last(x.repeat(2, 1))[: len(x)], "runs it with 8 rows for 4 samples"),
    ],
)
def test_a_last_layer_that_cannot_be_read_is_named(forward, problem):
    with pytest.raises(PluginError, match=f"what goes into the last layer 'last' cannot be read: .* {problem}; call"):
        features.readings(custom_stack(lambda: nn.Linear(6, 4), forward), INDEX)
