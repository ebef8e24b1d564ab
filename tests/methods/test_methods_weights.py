"""Methods that edit weights without training: Fisher forgetting, SSD, amnesiac unlearning."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from unlearning_audit.methods import fisher, sham
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

from stack_cases import SEEDS, conv, fresh, masks, mlp, rows, same, trained, unlearned

# ---------------------------------------------------------------- Fisher forgetting


def headed(*layers: nn.Linear) -> nn.Sequential:
    model = nn.Sequential(*layers)
    model.head = str(len(layers) - 1)
    return model


def inverse(information):
    return min(1 / (information + 1e-8), 1e3)


#: The standard deviation of the noise by Golatkar's code: mean over both samples of Σ_y p(y)·g², for the first layer's
#: weights (¼, 9/4)ᵀ·mean(x²) = (¼, 9/4)ᵀ·(2, ½). Hidden units are 0, without information: the last layer's bound holds.
GOLATKAR = {
    "0.weight": [[(inverse(0.5) + inverse(0.125)) / 2] * 2, [(inverse(4.5) + inverse(1.125)) / 2] * 2],
    "0.bias": [10 * inverse(0.25), 10 * inverse(2.25)],
    "1.weight": [[10 * 1e2] * 2] * 2,
    "1.bias": [10 * inverse(0.25)] * 2,
}


def bounded(*gradients):
    return min(math.sqrt(3e-6 / sum((g + 1e-7) ** 2 for g in gradients)), 1e-3)


#: By Becker's: Σ over samples of (g + 1e-7)² at the observed label: weights ½·(2, 0) and ½·(0, 1), times 1 or 3.
BECKER = {
    "0.weight": [[bounded(-1, 0), bounded(0, 0.5)], [bounded(3, 0), bounded(0, -1.5)]],
    "0.bias": [bounded(-0.5, 0.5), bounded(1.5, -1.5)],
    "1.weight": [[1e-3] * 2] * 2,
    "1.bias": [10 * bounded(-0.5, 0.5)] * 2,
}


@pytest.mark.parametrize(
    ("variant", "expected"),
    [("golatkar", {name: np.sqrt(3e-6 * np.array(value)) for name, value in GOLATKAR.items()}), ("becker", BECKER)],
)
def test_the_spread_of_the_noise_by_hand(variant, expected):
    """First layer 0, second W = [[1, 0], [0, 3]]: every answer is (½, ½). Samples (2, 0) of class 0, (0, 1) of 1.

    With e the one-hot label, ∂CE/∂logits = ½ − e, ∂CE/∂hidden = Wᵀ(½ − e) = (∓½, ±3/2), and hidden = 0.
    """
    x, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([0, 1])
    stack = ModelStack.create(lambda: headed(nn.Linear(2, 2), nn.Linear(2, 2)), x, y, [1, 2], dtype=torch.float64)
    stack.edit(lambda name, value: torch.zeros_like(value))
    stack.parameters["1.weight"][:] = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
    std = fisher.noise_deviations(stack, Rows(np.array([[0, 1], [0, 1]])), fisher.Options(variant=variant, alpha=3e-6))
    for name, spread in expected.items():
        np.testing.assert_allclose(std[name], np.broadcast_to(spread, std[name].shape), rtol=1e-9)


def test_a_class_that_is_forgotten_whole_loses_its_row_of_the_last_layer_to_noise():
    """The notebook of Golatkar et al. 2020: mean 0 and variance 10 · 1e-4 there, whatever α; all else as it was. The
    first model forgets all of class 1, the second half of it."""
    x, y = np.eye(4), np.array([0, 1, 1, 0])
    before = ModelStack.create(lambda: headed(nn.Linear(4, 2)), x, y, [1, 2], dtype=torch.float64)
    after, noise = before.copy(), before.noise("fisher")
    forget, retain = Rows(np.array([[1, 2], [1, 0]])), Rows(np.array([[0, 3], [2, 3]]))
    fisher.unlearn(after, forget, retain, fisher.Options(alpha=0.0))
    for name, value in after.parameters.items():
        assert torch.equal(value[0][1], math.sqrt(1e-3) * noise[name][0][1])
        assert torch.equal(value[0][0], before.parameters[name][0][0])
        assert torch.equal(value[1], before.parameters[name][1])


@pytest.mark.parametrize("variant", ["golatkar", "becker"])
@pytest.mark.parametrize("build", [mlp, conv])
def test_noise_has_this_spread_and_is_each_model_s_own(build, variant):
    stack = trained(build, SEEDS[:3], dtype=torch.float64)
    std = fisher.noise_deviations(stack, rows(stack.seeds)[1], fisher.Options(variant=variant, alpha=1e-4))
    after = unlearned(stack, "fisher", variant=variant, alpha=1e-4)
    noise = stack.noise("fisher")
    for k, v in after.parameters.items():
        assert (v - stack.parameters[k] - std[k] * noise[k]).abs().max() < 1e-12
        assert std[k].shape == v.shape
    assert all(torch.equal(v, stack.buffers[k]) for k, v in after.buffers.items())
    assert same(unlearned(stack, "fisher", alpha=0), stack)


def test_convolutions_are_averaged_over_their_inputs():
    stack = trained(conv, SEEDS[:2], dtype=torch.float64)
    retain = rows(stack.seeds)[1]
    information = stack.squared_gradients(retain, labels="model")["0.weight"]
    std = fisher.noise_deviations(stack, retain, fisher.Options(alpha=1e-4))["0.weight"]
    variance = (1e-4 / (information + 1e-8)).clamp(max=1e-1).mean(2, keepdim=True).expand_as(std)
    assert (std**2 - variance).abs().max() < 1e-12
    assert (information[:, :, 0] != information[:, :, 1]).all()


# ---------------------------------------------------------------- SSD


def squares(model, x, y):
    """Of the gradient of the loss."""
    nn.functional.cross_entropy(model(x), y).backward()
    return {k: v.grad**2 for k, v in model.named_parameters()}


def sizes(model, x, y):
    """Foster et al. 2024b: |∂ mean ‖logits‖²/∂θ|."""
    (model(x) ** 2).sum(1).mean().backward()
    return {k: v.grad.abs() for k, v in model.named_parameters()}


@pytest.mark.parametrize(
    ("name", "importance", "size", "options"),
    [
        ("ssd", squares, 1, {"a": 1.2, "per_sample": True}),
        ("ssd", squares, 8, {"a": 1.2, "per_sample": False, "batch_size": 8}),
        ("lfssd", sizes, 1, {"a": 1.02, "batch_size": 1}),
        ("lfssd", sizes, 8, {"a": 1.02, "batch_size": 8}),
    ],
)
def test_ssd_by_a_plain_loop(name, importance, size, options):
    stack = trained(seeds=SEEDS[:3], dtype=torch.float64)
    forget, retain = rows(stack.seeds)
    after = unlearned(stack, name, lam=1.3, **options)
    dampened = 0
    for m, seed in enumerate(stack.seeds):
        totals = []
        for samples, key in ((retain + forget, "ssd/all"), (forget, "ssd/forget")):
            index = samples.index[m][generator(seed, key).permutation(len(samples))]
            parts = np.split(index, range(size, len(index), size))
            of_parts = [importance(stack.extract(m), stack.x[part].double(), stack.labels[part]) for part in parts]
            totals.append({k: sum(of[k] for of in of_parts) / len(parts) for k in stack.parameters})
        for k, v in stack.parameters.items():
            overall, lost = totals[0][k], totals[1][k]
            factor = torch.where(lost > options["a"] * overall, (1.3 * overall / lost).clamp(max=1), 1.0)
            dampened += int((factor < 1).sum())
            assert (after.parameters[k][m] - factor * v[m]).abs().max() < 1e-12
    assert dampened > 20


# ---------------------------------------------------------------- amnesiac unlearning


@pytest.mark.parametrize("build", [mlp, conv])
def test_amnesiac_of_everything_is_the_start_and_of_nothing_the_end(build):
    stack, untouched = fresh(build, SEEDS[:3]), fresh(build, SEEDS[:3])
    start, everything = stack.copy(), np.logical_or(*masks(stack.seeds))
    stack.train(Rows.where(everything), record=everything)
    undone = unlearned(stack, "amnesiac", repair_epochs=0)
    assert max((v - start.parameters[k]).abs().max() for k, v in undone.parameters.items()) < 1e-6
    assert all(torch.equal(v, stack.buffers[k]) for k, v in undone.buffers.items())
    untouched.train(Rows.where(everything), record=np.zeros_like(everything))
    assert same(unlearned(untouched, "amnesiac", repair_epochs=0), untouched)
    assert same(untouched, stack)


def test_amnesiac_without_a_record_says_what_to_set():
    stack = trained(seeds=SEEDS[:2])
    stack.updates = None
    with pytest.raises(ValueError, match=r"set recipe\.record_updates to true and train again"):
        unlearned(stack, "amnesiac")


# ---------------------------------------------------------------- sham


def norms(state, before):
    return torch.stack([(state.parameters[k] - v).flatten(1).norm(dim=1) for k, v in before.parameters.items()])


def test_every_tensor_of_every_model_moves_as_far_as_by_the_method():
    before = trained()
    by_method, stack = unlearned(before, "neggrad"), before.copy()
    stack.matched = by_method
    sham.unlearn(stack, *rows(stack.seeds), sham.Options(like="neggrad"))
    torch.testing.assert_close(norms(stack, before), norms(by_method, before), rtol=1e-4, atol=1e-7)
    both = [torch.cat([(of.parameters[k] - v).flatten(1) for k, v in before.parameters.items()], 1)
            for of in (stack, by_method)]  # fmt: skip
    # in so many dimensions a random direction is nearly orthogonal to any other
    cosine = torch.cosine_similarity(*both)
    assert (cosine.abs() < 5 / both[0].shape[1] ** 0.5).all()


def test_without_a_method_it_moves_by_a_share_of_the_weights():
    before = trained()
    stack = unlearned(before, "sham", size=0.1)
    whole = torch.stack([v.flatten(1).norm(dim=1) for v in before.parameters.values()])
    torch.testing.assert_close(norms(stack, before), 0.1 * whole, rtol=1e-4, atol=1e-7)
