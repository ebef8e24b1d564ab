"""The privacy budget of private training: spent as stated, confirmed by other accountants."""

import math

import pytest
from opacus.accountants import PRVAccountant, RDPAccountant
from unlearning_audit.methods import _certified
from unlearning_audit.training import private
from unlearning_audit.training.recipe import Privacy

from private_cases import make


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0, 32.0, 600.0])
def test_full_batches_keep_the_budget_by_the_exact_curve_of_the_gaussian_mechanism(epsilon):
    """Balle and Wang (2018), theorem 8: T steps at sensitivity 1 are one Gaussian with μ = √T/σ."""
    steps, delta = 30, 1e-5
    mu = math.sqrt(steps) / private.noise_multiplier(Privacy(epsilon=epsilon, delta=delta), 1.0, steps)

    # Rényi accounting is loose, but by less than a quarter.
    assert _certified.delta(epsilon, mu) <= delta < _certified.delta(0.75 * epsilon, mu)


@pytest.mark.filterwarnings("ignore:Optimal order")
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_tighter_accountant_confirms_the_budget_of_poisson_batches(epsilon):
    accountant = PRVAccountant()
    accountant.history = [(private.noise_multiplier(Privacy(epsilon=epsilon), 0.1, 200), 0.1, 200)]
    assert 0.85 * epsilon < accountant.get_epsilon(1e-5, eps_error=0.02) <= epsilon


@pytest.mark.parametrize("epsilon", [2.0, 32.0])
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
