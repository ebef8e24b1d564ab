"""Updates equal those of torch.optim; schedules follow their formulas."""

import math

import pytest
import torch
from unlearning_audit.training.optim import Optimiser

REAL = {
    "sgd": lambda p, s: torch.optim.SGD(p, s.lr, momentum=s.momentum, weight_decay=s.weight_decay),
    "adam": lambda p, s: torch.optim.Adam(p, s.lr, weight_decay=s.weight_decay),
    "adamw": lambda p, s: torch.optim.AdamW(p, s.lr, weight_decay=s.weight_decay),
    "rmsprop": lambda p, s: torch.optim.RMSprop(p, s.lr, momentum=s.momentum, weight_decay=s.weight_decay),
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
def test_updates_are_those_of_torch_optim(name, momentum, weight_decay, recorded):
    settings = Optimiser(optimiser=name, lr=0.05, momentum=momentum, weight_decay=weight_decay)
    start = [torch.linspace(-1, 1, 12, dtype=torch.float64).view(3, 4), torch.ones(2, dtype=torch.float64)]
    computed, reference = ([p.clone().requires_grad_() for p in start] for _ in range(2))
    steps = settings.build(computed, "cpu" if recorded else "")
    real = REAL[name](reference, settings)
    for lr in (0.05, 0.05, 0.02):
        real.param_groups[0]["lr"] = lr
        steps.set_rate(lr)
        for parameters, optimiser in ((computed, steps), (reference, real)):
            optimiser.zero_grad()
            ((parameters[0] ** 3).sum() + parameters[1].prod()).backward()
            optimiser.step()
    assert not torch.equal(computed[0], start[0])
    for a, b in zip(computed, reference, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-14, atol=1e-15)


def test_a_parameter_without_gradient_stays():
    moved, still = (torch.ones(2, requires_grad=True) for _ in range(2))
    steps = Optimiser(momentum=0.9, weight_decay=0.1).build([moved, still])
    for _ in range(2):
        steps.zero_grad()
        (moved**2).sum().backward()
        steps.step()
    assert torch.equal(still, torch.ones(2))
    assert not torch.equal(moved, torch.ones(2))


def test_schedules():
    cosine = Optimiser(lr=0.2, schedule="cosine")
    assert [cosine.rate(0, 10), cosine.rate(5, 10), cosine.rate(5, 10, 3, 4), cosine.rate(9, 10)] == pytest.approx(
        [0.2, 0.1, 0.1, 0.1 * (1 + math.cos(0.9 * math.pi))]
    )
    steps = Optimiser(lr=1.0, schedule="multistep", milestones=[100, 150])
    assert [steps.rate(e, 200) for e in (0, 99, 100, 149, 150, 199)] == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])
    assert Optimiser(lr=0.3).rate(7, 9) == 0.3


def test_one_cycle_rises_for_a_quarter_of_all_steps_and_falls_for_the_rest():
    cycle = Optimiser(lr=0.6, schedule="one_cycle")
    rates = [cycle.rate(epoch, 4, step, 5) for epoch in range(4) for step in range(5)]
    middles = [(i + 0.5) / 20 for i in range(20)]
    assert rates == pytest.approx([0.6 * (t / 0.25 if t < 0.25 else (1 - t) / 0.75) for t in middles])
