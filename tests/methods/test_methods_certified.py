"""Methods with a guarantee: what noise hides, noisy fine-tuning, and the Newton step with its bound."""

import logging
import math

import numpy as np
import pytest
import torch
from scipy import optimize, special, stats
from torch import nn
from torch.nn import functional
from unlearning_audit.methods import _certified, noisy_finetune
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

from stack_cases import SEEDS, fresh, largest_gap, rows, trained, unlearned

# ---------------------------------------------------------------- what noise hides


@pytest.mark.parametrize(("epsilon", "mu"), [(0.0, 0.7), (0.5, 1.0), (2.0, 1.5), (60.0, 9.0)])
def test_delta_is_the_integral_of_what_one_density_has_above_the_other(epsilon, mu):
    x = np.linspace(-30, 80, 400_001)
    excess = np.clip(stats.norm.pdf(x, mu) - math.exp(epsilon) * stats.norm.pdf(x), 0, None)
    assert _certified.delta(epsilon, mu) == pytest.approx(np.trapezoid(excess, x), rel=1e-5, abs=1e-12)


def test_at_epsilon_0_the_distance_is_that_in_total_variation():
    shift = _certified.largest_shift(0.0, 0.1)
    assert 2 * special.ndtr(shift / 2) - 1 == pytest.approx(0.1, abs=1e-9)


@pytest.mark.parametrize("contraction", [1.0, 0.7])
def test_the_worst_case_reaches_the_limit_and_half_the_noise_would_be_too_little(contraction):
    """Two starts on a line that every step drives apart as far as it may. The mirrored start ends mirrored, so that
    both ends are normal with a distance of twice the mean."""
    epsilon, limit, rng = 1.0, 0.05, np.random.default_rng(0)
    sigma = _certified.step_noise(2.0, 0.2, contraction, 6, epsilon, limit)
    apart = []
    for noise in (sigma, sigma / 2):
        x = np.full(200_000, 2.0 / 2)
        for _ in range(6):
            x = contraction * x + 0.2 / 2 + noise * rng.normal(size=len(x))
        apart.append(2 * x.mean() / x.std())
    assert apart[0] == pytest.approx(_certified.largest_shift(epsilon, limit), rel=0.01)
    assert _certified.delta(epsilon, 0.999 * apart[0]) <= 1.02 * limit
    assert _certified.delta(epsilon, apart[1]) > 4 * limit


# ---------------------------------------------------------------- noisy fine-tuning


def test_no_noise_and_no_limits_are_gradient_descent_on_retain():
    stack = trained(seeds=SEEDS[:2], dtype=torch.float64)
    _, retain = rows(stack.seeds)
    free = {"epsilon": 0, "radius": 1e6, "clip": 1e6, "steps": 2, "batch_size": 1000, "refine_epochs": 0, "lr": 0.1}
    after, by_hand = unlearned(stack, "noisy_finetune", **free), stack.copy()
    for _ in range(2):
        slope = by_hand.gradient(retain)
        by_hand.edit(lambda name, value, g=slope: value - 0.1 * g[name])
    assert largest_gap(after, by_hand) < 1e-12


def test_weights_and_gradients_are_cut_to_their_lengths():
    stack = trained(seeds=SEEDS[:3], dtype=torch.float64)

    def lengths(state):
        return torch.stack([v.flatten(1).square().sum(1) for v in state.values()]).sum(0).sqrt()

    half = torch.full((3,), 0.5).double()
    assert torch.allclose(lengths(noisy_finetune.clipped(stack.parameters, 0.5)), half)
    assert all(torch.equal(v, stack.parameters[k]) for k, v in noisy_finetune.clipped(stack.parameters, 1e6).items())
    still = unlearned(stack, "noisy_finetune", epsilon=0, radius=0.5, clip=1e-9, steps=1, refine_epochs=0)
    assert torch.allclose(lengths(still.parameters), half, atol=1e-8)


def test_the_noise_is_that_of_the_certificate():
    """Gradients cut to next to nothing leave the start and the sum of all noises."""
    stack = trained(seeds=SEEDS, dtype=torch.float64)
    options = {"epsilon": 2.0, "delta": 1e-3, "radius": 0.5, "clip": 1e-9, "steps": 4, "refine_epochs": 0, "lr": 1.0}
    start = unlearned(stack, "noisy_finetune", **{**options, "epsilon": 0.0, "lr": 0.0})
    end = unlearned(stack, "noisy_finetune", **options)
    sum_ = torch.cat([(v - start.parameters[k]).flatten() for k, v in end.parameters.items()])
    sigma = _certified.step_noise(1.0, 2e-9, 1.0, 4, 2.0, 1e-3)
    assert float(sum_.std()) == pytest.approx(2 * sigma, rel=0.08)  # 1,352 draws


def test_a_decay_beyond_zero_is_refused():
    with pytest.raises(ValueError, match="lr times weight_decay must be at most 1"):
        unlearned(trained(seeds=SEEDS[:2]), "noisy_finetune", lr=0.5, weight_decay=3.0)


# ---------------------------------------------------------------- Newton


def linear():
    model = nn.Sequential(nn.Flatten(), nn.Linear(6, 4))
    model.head = "1"
    return model


def optimum(stack: ModelStack, samples: Rows, l2: float) -> torch.Tensor:
    """Each model's weights and bias that minimise mean CE + l2/2·‖w‖² over its rows, by L-BFGS: [models, 4, 7]."""
    best = []
    for index in samples.index:
        x = torch.cat([stack.x[index].double(), torch.ones(len(index), 1).double()], 1)
        y = stack.labels[index]

        def loss(values, x=x, y=y):
            w = torch.tensor(values.reshape(4, 7), requires_grad=True)
            value = functional.cross_entropy(x @ w.T, y) + l2 / 2 * w.square().sum()
            value.backward()
            return value.item(), w.grad.numpy().ravel()

        search = optimize.minimize(loss, np.zeros(28), jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-10})
        best.append(torch.from_numpy(search.x).reshape(4, 7))
    return torch.stack(best)


def at(stack: ModelStack, w: torch.Tensor) -> ModelStack:
    stack = stack.copy()
    stack.parameters["1.weight"], stack.parameters["1.bias"] = w[..., :-1].clone(), w[..., -1].clone()
    return stack


def of(stack: ModelStack) -> torch.Tensor:
    return torch.cat([stack.parameters["1.weight"], stack.parameters["1.bias"][..., None]], -1)


@pytest.fixture(scope="module")
def fitted():
    """Linear models at the optimum of all rows, and the optimum of retain; l2 .01."""
    stack = trained(linear, SEEDS[:2], dtype=torch.float64)
    forget, retain = rows(stack.seeds)
    return at(stack, optimum(stack, retain + forget, 0.01)), optimum(stack, retain, 0.01)


def bounds(caplog) -> torch.Tensor:
    """The bounds that the log tells, of each model in turn."""
    said = [record.getMessage() for record in caplog.records if "lies within" in record.msg]
    return torch.tensor([float(line.rsplit(" ", 1)[1]) for line in said])


def test_newton_steps_come_near_to_retraining_which_lies_within_the_bound(fitted, caplog):
    stack, goal = fitted
    with caplog.at_level(logging.INFO):
        one_step = unlearned(stack, "newton", l2=0.01)
    five_steps = unlearned(stack, "newton", l2=0.01, steps=5)
    before, after, at_last = ((of(models) - goal).flatten(1).norm(dim=1) for models in (stack, one_step, five_steps))
    assert (after < before / 3).all()
    assert (at_last < 1e-5 * before).all()
    assert ((after <= bounds(caplog)) & (bounds(caplog) < 100 * after)).all()


def test_noise_hides_the_bound(fitted, caplog):
    stack, _ = fitted
    still = unlearned(stack, "newton", l2=0.01)
    with caplog.at_level(logging.INFO):
        noisy = unlearned(stack, "newton", l2=0.01, epsilon=1.0, delta=1e-5)
    spreads = (of(noisy) - of(still)).flatten(1).square().mean(1).sqrt()
    expected = bounds(caplog) / _certified.largest_shift(1.0, 1e-5)
    assert torch.allclose(spreads.float(), expected, rtol=0.4)  # 28 draws each
    for name, draws in stack.noise("newton").items():
        if name in stack.head:
            moved = noisy.parameters[name] - still.parameters[name]
            scale = (moved / draws).flatten(1)
            assert torch.allclose(scale, expected[:, None].to(scale), rtol=1e-4)


def test_a_last_layer_that_answers_token_by_token_is_refused():
    model = nn.Sequential(nn.Unflatten(1, (2, 3)), nn.Linear(3, 4))
    model.head = "1"
    with pytest.raises(ValueError, match="newton needs a classifier"):
        unlearned(fresh(lambda: model, SEEDS[:2]), "newton")
