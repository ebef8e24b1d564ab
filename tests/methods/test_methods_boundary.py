"""Methods that go by where decision boundaries lie: boundary shrink, boundary expand, UNSIR."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from unlearning_audit.methods import boundary_expand, boundary_shrink, unsir
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

from stack_cases import SEEDS, conv, fresh, largest_gap, mlp, rows, same, trained, unlearned

# ---------------------------------------------------------------- boundary shrink


def test_the_nearest_class_is_the_one_across_the_boundary():
    """Each sample steps away from its class; from .02 the gradient leads right, to class 0."""
    model = nn.Sequential(nn.Linear(1, 3))
    model.head = "0"
    x, y = np.array([[0.5], [-0.5], [0.02]], np.float64), np.array([0, 2, 1])
    stack = ModelStack.create(lambda: model, x, y, [1, 2], dtype=torch.float64)
    # logits (x, 0, −x) + (0, .1, 0) of one number x: class 0 right of .1, class 1 between, class 2 left of −.1
    stack.parameters["0.weight"][:] = torch.tensor([[1.0], [0.0], [-1.0]])
    stack.parameters["0.bias"][:] = torch.tensor([0.0, 0.1, 0.0])
    assert boundary_shrink.nearest_class(stack, 0, np.array([0, 1, 2]), 0.6).tolist() == [1, 1, 0]
    assert boundary_shrink.nearest_class(stack, 0, np.array([0]), 2.0).tolist() == [2]  # too far a step passes class 1


def test_a_step_of_shrinking_is_training_with_the_nearest_class():
    stack = trained(seeds=SEEDS[:2], dtype=torch.float64)
    forget, _ = rows(stack.seeds)
    after = unlearned(stack, "boundary_shrink", lr=0.1, momentum=0.0, epochs=1, batch_size=100)
    by_hand = stack.copy()
    by_hand.labels = stack.labels.repeat(2, 1)
    for model, index in enumerate(forget.index):
        nearest = boundary_shrink.nearest_class(stack, model, index, 0.1)
        by_hand.labels[model, torch.from_numpy(index)] = nearest
    slope = by_hand.gradient(forget)
    by_hand.edit(lambda name, value: value - 0.1 * slope[name])
    assert largest_gap(after, by_hand) < 1e-12


def test_tokens_are_refused_by_methods_that_move_samples():
    stack = fresh(seeds=SEEDS[:2])
    stack.x = stack.x.to(torch.int32)
    for name in ("boundary_shrink", "unsir"):
        with pytest.raises(ValueError, match=f"{name} moves samples along a gradient, but tokens cannot be moved"):
            unlearned(stack, name)


# ---------------------------------------------------------------- boundary expand


@pytest.mark.parametrize("build", [mlp, conv])
def test_nothing_is_lost_where_the_class_is_added_and_removed(build):
    stack = trained(build)
    assert same(unlearned(stack, "boundary_expand", epochs=0), stack)
    wide = boundary_expand.expanded(stack)
    assert np.abs(wide.logits()[..., :-1] - stack.logits()).max() < 1e-5
    assert len({float(wide.parameters[stack.head[0]][m, -1, 0]) for m in range(len(stack))}) == len(stack)


def test_a_step_of_expanding_is_training_with_the_class_that_does_not_exist():
    stack = trained(seeds=SEEDS[:2], dtype=torch.float64)
    forget, wide = rows(stack.seeds)[0], boundary_expand.expanded(stack)
    after = unlearned(stack, "boundary_expand", lr=0.1, momentum=0.0, epochs=1, batch_size=100)
    wide.labels = torch.full_like(stack.labels, 4)
    slope = wide.gradient(forget)
    wide.edit(lambda name, value: value - 0.1 * slope[name])
    for name, value in after.parameters.items():
        expected = wide.parameters[name]
        assert torch.allclose(value, expected[:, :-1] if name in stack.head else expected, atol=1e-12), name


def test_a_head_that_is_not_linear_is_refused():
    def odd():
        model = nn.Sequential(nn.Linear(6, 5), nn.Bilinear(5, 5, 4))
        model.head = "1"
        return model

    with pytest.raises(ValueError, match="final layer is linear"):
        boundary_expand._with_another_class(odd, "1")()


# ---------------------------------------------------------------- UNSIR


def test_noise_is_what_the_model_gets_most_wrong():
    stack = trained(seeds=SEEDS[:2])
    labels = torch.tensor([0, 1, 2, 3] * 8)
    options = unsir.Options(noise_penalty=0.0)

    def loss(noise):
        logits = torch.func.functional_call(stack.model, stack.state(0)[0], (noise,))
        return float(functional.cross_entropy(logits, labels))

    at_first = unsir.error_maximising(stack, 0, labels, options.model_copy(update={"noise_steps": 0}))
    learned = unsir.error_maximising(stack, 0, labels, options)
    assert loss(learned) > 2 * loss(at_first)
    small = unsir.error_maximising(stack, 0, labels, options.model_copy(update={"noise_penalty": 100.0}))
    assert small.norm() < 0.2 * learned.norm()


def test_impairing_trains_on_the_noise_and_repairing_on_retain_alone():
    stack = trained(seeds=SEEDS[:2], dtype=torch.float64)
    (forget, retain), by_hand = rows(stack.seeds), stack.copy()
    rate = {"optimiser": "sgd", "lr": 0.1, "batch_size": 10_000}
    options = {"noise_steps": 2, "repeats": 3, "impair": rate, "repair": rate}
    noisy, noise = unsir.with_noise(stack, forget.sample(256, stack.seeds, "unsir/labels"), unsir.Options(**options))
    slope = noisy.gradient(Rows(np.concatenate([noise.index] * 3 + [retain.index], 1)))
    by_hand.edit(lambda name, value: value - 0.1 * slope[name])
    assert largest_gap(unlearned(stack, "unsir", **options, repair_epochs=0), by_hand) < 1e-12
    mend = by_hand.gradient(retain)
    by_hand.edit(lambda name, value: value - 0.1 * mend[name])
    assert largest_gap(unlearned(stack, "unsir", **options), by_hand) < 1e-12
