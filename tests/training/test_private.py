"""DP-SGD against the mechanism written out by hand, exact privacy curves, and the stack's own promises."""

import math

import numpy as np
import pytest
import torch
from opacus.accountants import PRVAccountant, RDPAccountant
from torch import nn
from torch.func import functional_call
from unlearning_audit.methods import _certified
from unlearning_audit.models import cnn, mlp
from unlearning_audit.training import private
from unlearning_audit.training.recipe import Privacy, Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

from slow_cases import slow

HUGE = 1e9


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


def by_hand(stack, m, rows, *, clip):
    """Noiseless DP-SGD of model m from its Poisson batches, one sample's gradient at a time."""
    recipe, state = stack.recipe, stack.state(m)[0]
    leaves = [v.requires_grad_() for v in state.values()]
    steps = recipe.build(leaves)
    per_epoch = math.ceil(rows.index.shape[1] / recipe.batch_size)
    for step, (x, labels) in enumerate(batches(stack, m, rows)):
        total = [torch.zeros_like(v) for v in leaves]
        for sample, label in zip(x, labels, strict=True):
            loss = nn.functional.cross_entropy(functional_call(stack.model, state, (sample[None],)), label[None])
            gradient = torch.autograd.grad(loss, leaves)
            norm = math.sqrt(sum(float((g**2).sum()) for g in gradient))
            total = [t + g * min(1.0, clip / (norm + 1e-6)) for t, g in zip(total, gradient, strict=True)]
        for leaf, t in zip(leaves, total, strict=True):
            leaf.grad = t / (rows.index.shape[1] // per_epoch)
        steps.param_groups[0]["lr"] = recipe.rate(step // per_epoch, recipe.epochs)
        steps.step()
    return {k: v.detach() for k, v in state.items()}


def assert_same(stack, m, expected):
    for name, value in expected.items():
        torch.testing.assert_close(stack.parameters[name][m], value, rtol=1e-9, atol=1e-11)


# ---------------------------------------------------------------- the mechanism


IMAGE = (1, 8, 8)
SGD = {"lr": 0.2, "momentum": 0.9, "weight_decay": 0.01, "schedule": "cosine"}


@pytest.mark.parametrize(
    ("build", "shape", "settings", "limit"),
    [
        (perceptron, (5,), SGD, HUGE),
        (perceptron, (5,), {"optimiser": "rmsprop", "lr": 0.01, "schedule": "multistep", "milestones": (1, 2)}, HUGE),
        (perceptron, (5,), {"optimiser": "adam", "lr": 0.01}, HUGE),
        # At 0.8 some gradients are clipped and some are not.
        (perceptron, (5,), {"lr": 0.3}, 0.8),
        *slow((convolutional, IMAGE, {"lr": 0.3}, 0.8)),
        (convolutional, IMAGE, {"lr": 0.3, "augment": "crop_flip"}, 0.8),
    ],
)
def test_without_noise_it_is_the_optimiser_on_the_sums_of_each_samples_clipped_gradient(build, shape, settings, limit):
    stack, rows = make(build, shape=shape, dp={"epsilon": 8, "max_grad_norm": limit}, **settings)
    expected = [by_hand(stack, m, rows, clip=limit) for m in range(3)]
    free, always = (by_hand(stack, 0, rows, clip=clip) for clip in (math.inf, 1e-3))
    private.train_with_noise(stack, rows, 0.0)
    for m in range(3):
        assert_same(stack, m, expected[m])
    name = next(iter(free))
    assert torch.allclose(expected[0][name], free[name], rtol=1e-3) == (limit == HUGE)
    assert not torch.allclose(expected[0][name], always[name], rtol=1e-3)


def test_noise_has_the_stated_spread_and_is_drawn_anew_at_every_step_for_every_model():
    stack = ModelStack.create(
        lambda: nn.Sequential(nn.Linear(200, 100, bias=False)), np.zeros((40, 200), np.float32),
        np.zeros(40, np.int64), [1, 2],
        recipe=Recipe(lr=0.3, batch_size=8, epochs=3, dp={"epsilon": 8, "max_grad_norm": 0.7}),
    )  # fmt: skip
    before = stack.parameters["0.weight"].clone()
    # Without inputs there are no gradients: 15 steps of noise alone.
    private.train_with_noise(stack, Rows(np.tile(np.arange(40), (2, 1))), 1.3)
    moved = (stack.parameters["0.weight"] - before).flatten(1).double()
    expected = 0.3 * 1.3 * 0.7 / 8 * math.sqrt(15)
    weights = moved.shape[1]
    for noise in moved:
        assert float(noise.std()) == pytest.approx(expected, rel=4 / math.sqrt(2 * weights))
        assert abs(float(noise.mean())) < 4 * expected / math.sqrt(weights)
    assert abs(float(torch.corrcoef(moved)[0, 1])) < 4 / math.sqrt(weights)


@pytest.mark.parametrize(("build", "shape"), [(perceptron, (5,)), *slow((convolutional, IMAGE))])
def test_a_step_that_draws_nobody_is_taken_all_the_same(build, shape):
    stack, rows = make(build, shape=shape, k=2, batch_size=1, epochs=8, lr=0.3)
    sizes = [len(x) for x, _ in batches(stack, 0, rows)]
    assert 0 in sizes
    assert len(sizes) == 16
    expected = by_hand(stack, 0, rows, clip=1.0)
    noisy = stack.copy()
    private.train_with_noise(stack, rows, 0.0)
    assert_same(stack, 0, expected)
    accountant = private.train_with_noise(noisy, rows, 1.0)
    assert accountant.history == [(1.0, 0.5, 16)]
    assert all(v.isfinite().all() for v in noisy.parameters.values())


# ---------------------------------------------------------------- the batches


def test_samples_of_the_model_are_drawn_independently_at_the_stated_rate():
    stack, rows = make(samples=200, k=190, batch_size=20, epochs=200)
    drawn = [index[0].numpy() for index, _ in private.Poisson(stack, [1], rows, 1)]
    assert set(np.concatenate(drawn)) == set(rows.index[1]) != set(rows.index[0])
    assert all(len(set(index)) == len(index) for index in drawn)
    sizes = np.array([*map(len, drawn)])
    steps, rate = 2000, 1 / 10  # ⌈190/20⌉ steps in an epoch
    variance = 190 * rate * (1 - rate)
    assert len(sizes) == steps
    assert sizes.mean() == pytest.approx(190 * rate, abs=4 * math.sqrt(variance / steps))
    # Binomial: neither 0 as in a fixed batch nor doubled. By a normal approximation of the variance's own spread.
    assert sizes.var(ddof=1) == pytest.approx(variance, rel=4 * math.sqrt(2 / steps))


@pytest.mark.parametrize(
    ("build", "shape", "augment"), [(perceptron, (5,), "none"), *slow((convolutional, IMAGE, "crop_flip"))]
)
def test_parts_of_any_size_and_rows_that_fill_them_change_nothing(build, shape, augment):
    """Clipped or not, rows without a sample count for nothing."""
    stacks = []
    for size, filled, pieces in ((40, False, 1), (3, True, 1), (8, True, 4), (5, False, 2)):
        settings = {"dp": {"epsilon": 8, "max_grad_norm": 0.1}, "batch_size": 16, "k": 40, "epochs": 1}
        stack, rows = make(build, (3, 5), shape=shape, augment=augment, **settings)
        stack.model.train()
        fit = private.PrivateFit(stack, rows, 0.5)
        fit.size, fit.filled, fit.pieces = size, filled or build is perceptron, pieces
        fit.run()
        stacks.append(stack)
    for stack in stacks[1:]:
        for name, value in stacks[0].parameters.items():
            torch.testing.assert_close(stack.parameters[name], value, rtol=1e-9, atol=1e-11)


# ---------------------------------------------------------------- the stack's promises


@pytest.mark.parametrize(("build", "shape"), [(perceptron, (5,)), *slow((convolutional, IMAGE))])
def test_a_models_bits_do_not_depend_on_its_neighbours_or_their_order(build, shape):
    settings = {"shape": shape, "optimiser": "rmsprop", "lr": 0.01, "dtype": torch.float32}
    trained = {}
    for seeds in ((3, 5, 8), (8,), (5, 3), (3, 3)):
        torch.manual_seed(sum(seeds))  # The global generator plays no part, ...
        stack, rows = make(build, seeds, **settings)
        state = torch.get_rng_state()
        private.train_with_noise(stack, rows, 1.0)
        assert torch.equal(torch.get_rng_state(), state)  # ... and is not touched.
        for m, seed in enumerate(seeds):
            weights = {k: v[m].clone() for k, v in stack.parameters.items()}
            expected = trained.setdefault(seed, weights)
            assert all(torch.equal(weights[k], expected[k]) for k in weights)
    assert not torch.equal(next(iter(trained[3].values())), next(iter(trained[5].values())))


class Network(nn.Module):
    """A network of 5 inputs whose forward pass is given; its two layers share their weights if it is ``tied``."""

    def __init__(self, way, tied=False):
        super().__init__()
        self.first, self.second, self.out, self.way = nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, 3), way
        self.places, self.drop = nn.Embedding(5, 1), nn.Dropout(0.5)
        if tied:
            self.second.weight = self.first.weight

    def forward(self, x):
        return self.out(self.way(self, x))


#: Networks of which a part of a sample's gradient is not seen: two layers with the same weights, a function that reads
#: those of a layer once more, and a table of positions that is read once for all samples.
UNSEEN = [
    lambda: Network(lambda net, x: net.second(torch.tanh(net.first(x))), tied=True),
    lambda: Network(lambda net, x: nn.functional.linear(torch.tanh(net.first(x)), net.first.weight)),
    lambda: Network(lambda net, x: x * net.places(torch.arange(5)[None]).squeeze(-1)),
]


def dropped():
    """A network whose answers are random."""
    return Network(lambda net, x: net.drop(torch.tanh(net.first(x))))


class Biased(nn.Linear):
    """A layer with a buffer."""

    def __init__(self):
        super().__init__(5, 3)
        self.register_buffer("shift", torch.zeros(3))


@pytest.mark.parametrize(
    ("network", "shape", "message"),
    [
        (lambda: convolutional("batch"), IMAGE, r"batch normalisation mixes the samples .* norm: group"),
        (lambda: nn.Sequential(Biased()), (5,), "dp: Opacus cannot train this model .*buffers.* choose another model"),
        *((kind, (5,), r"^dp: the gradients of this network cannot be clipped sample by sample \(")
          for kind in UNSEEN),
    ],
)  # fmt: skip
def test_what_cannot_be_clipped_sample_by_sample_is_refused_before_anything_moves(network, shape, message, monkeypatch):
    monkeypatch.setattr(private, "noise_multiplier", lambda *_: 1.3)  # the search takes long
    stack, rows = make(network, shape=shape)
    before = {name: value.clone() for name, value in stack.parameters.items()}
    with pytest.raises(ValueError, match=message):
        stack.train(rows)
    assert all(torch.equal(value, before[name]) for name, value in stack.parameters.items())


def frozen():
    """A network whose first layer asks for no gradients; training moves it all the same."""
    return nn.Sequential(nn.Linear(5, 5).requires_grad_(False), nn.Tanh(), nn.Linear(5, 3))


@pytest.mark.parametrize("network", [perceptron, dropped, frozen])
def test_the_norms_are_confirmed_without_drawing_from_a_stream(network):
    stack, rows = make(network, dp={"epsilon": 8})
    stack.model.train()
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    private.check_gradient_norms(stack, rows.index[0][:2])
    assert torch.equal(torch.rand(3), expected)
    assert all(parameter.grad is None for parameter in stack.model.parameters())


# ---------------------------------------------------------------- the budget


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0, 32.0, 600.0])
def test_full_batches_keep_the_budget_by_the_exact_curve_of_the_gaussian_mechanism(epsilon):
    """Balle and Wang (2018), theorem 8: T steps at sensitivity 1 are one Gaussian with μ = √T/σ."""
    steps, delta = 30, 1e-5
    mu = math.sqrt(steps) / private.noise_multiplier(Privacy(epsilon=epsilon, delta=delta), 1.0, steps)

    # Rényi accounting is loose, but by less than a quarter.
    assert _certified.delta(epsilon, mu) <= delta < _certified.delta(0.75 * epsilon, mu)


@pytest.mark.filterwarnings("ignore:Optimal order")
@pytest.mark.parametrize("epsilon", [1.0, *slow(4.0)])
def test_a_tighter_accountant_confirms_the_budget_of_poisson_batches(epsilon):
    accountant = PRVAccountant()
    accountant.history = [(private.noise_multiplier(Privacy(epsilon=epsilon), 0.1, 200), 0.1, 200)]
    assert 0.85 * epsilon < accountant.get_epsilon(1e-5, eps_error=0.02) <= epsilon


@pytest.mark.parametrize("epsilon", [2.0, *slow(32.0)])
def test_training_reports_what_it_spent(epsilon):
    stack, rows = make(dp={"epsilon": epsilon, "delta": 1e-4, "max_grad_norm": 0.6})
    stack.train(rows)
    report = stack.privacy
    assert 0.95 * epsilon <= report["epsilon"] <= epsilon
    assert report == report | {"delta": 1e-4, "max_grad_norm": 0.6, "sample_rate": 1 / 3, "steps": 9}
    accountant = RDPAccountant()
    accountant.history = [(report["noise_multiplier"], 1 / 3, 9)]
    assert report["epsilon"] == accountant.get_epsilon(1e-4)


def test_an_impossible_budget_is_refused():
    stack, rows = make(dp={"epsilon": 0.01})
    with pytest.raises(ValueError, match=r"dp\.epsilon: 0\.01 .* out of reach in 9 steps"):
        stack.train(rows)
