"""Weights that are rounded: levels in closed form, and what rounding brings back."""

import numpy as np
import pytest
import torch
from unlearning_audit import stats
from unlearning_audit.models import gpt2
from unlearning_audit.training import rounding
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack

from relearn_cases import linear


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_weights_lie_on_even_levels_and_move_by_half_a_step_at_most(bits):
    weight = torch.randn(3, 5, 7, 2, generator=torch.Generator().manual_seed(0))
    result = rounding.rounded(weight, bits)
    most = 2 ** (bits - 1) - 1
    step = weight.abs().amax(dim=(2, 3), keepdim=True) / most
    levels = result / step
    torch.testing.assert_close(levels, levels.round(), atol=1e-4, rtol=0)
    assert levels.abs().max() <= most + 1e-4
    assert ((result - weight).abs() <= step / 2 + 1e-6).all()
    torch.testing.assert_close(rounding.rounded(result, bits), result)


def test_an_output_without_weights_stays_and_one_bit_is_refused():
    assert not rounding.rounded(torch.zeros(1, 2, 3), 4).any()
    with pytest.raises(ValueError, match="two bits at least, not 1"):
        rounding.rounded(torch.ones(1, 1, 1), 1)


def test_what_less_than_half_a_step_hides_comes_back():
    """Weights on levels of 4 bits, moved by .4 of a step against what was to be forgotten: at 4 bits the answers are
    those of before, at 8 bits they stay what unlearning made of them."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((200, 6)).astype(np.float32), np.zeros(200, np.int64)
    stack = ModelStack.create(linear, x, y, [1, 2], recipe=Recipe(lr=0.1, batch_size=50))
    level = torch.tensor([[7.0, 1.0, -2.0, 3.0, 0.0, 1.0], [7.0, -1.0, 2.0, 2.0, 1.0, -1.0]])
    stack.edit(lambda _, weight: level.repeat(2, 1, 1) if weight.ndim == 3 else torch.zeros_like(weight))
    rows = np.arange(200)
    before = rounding.rounded_predictions(stack, rows, [4])
    original = [answer.copy() for answer in before]
    small = torch.tensor([[0.0, -0.4, 0.4, -0.4, -0.4, -0.4], [0.0, 0.4, -0.4, 0.4, 0.4, 0.4]])
    stack.edit(lambda _, weight: weight + small if weight.ndim == 3 else weight)
    phi, right = rounding.rounded_predictions(stack, rows, [4, 8])
    np.testing.assert_allclose(phi[:, 0], original[0][:, 0], atol=1e-5)
    assert (right[:, 0] == original[1][:, 0]).all()
    assert np.abs(phi[:, 1] - phi[:, 0]).mean() > 0.3
    torch.testing.assert_close(stack.parameters["0.weight"][0], level + small)


@pytest.mark.slow  # seconds, for GPT-2
def test_weights_that_lie_by_inputs_are_rounded_by_outputs():
    """One output of a layer of GPT-2 with weights a hundred times as large leaves those of the others their levels."""
    x, y = np.random.default_rng(0).integers(1, 60, (12, 8)).astype(np.int32), np.zeros(12, np.int64)
    stack = ModelStack.create(lambda: gpt2.build(gpt2.Options(vocabulary=64, width=8, layers=1), (8,), 2), x, y, [1, 2])
    name = "trunk.h.0.mlp.c_fc.weight"
    stack.parameters[name][:, :, 0] *= 100
    by_hand = stack.copy()
    for key, value in stack.parameters.items():
        turned = key.endswith(("c_attn.weight", "c_fc.weight", "c_proj.weight"))
        if value.ndim == 3:
            by_hand.parameters[key] = rounding.rounded(value.mT, 4).mT if turned else rounding.rounded(value, 4)
    assert (by_hand.parameters[name][:, :, 1:] == 0).float().mean() < 0.2
    phi, _ = rounding.rounded_predictions(stack, np.arange(12), [4])
    exact = stats.phi(logits=by_hand.logits(), y=np.broadcast_to(y, (2, 12)))
    np.testing.assert_allclose(phi[:, 0], exact, atol=1e-5)
