"""Rounded weights: levels in closed form, unlearning that rounding undoes, and the numbers of models of known truth."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from unlearning_audit import stats
from unlearning_audit.evaluation.relearned import Relearned
from unlearning_audit.metrics import quantised, swap
from unlearning_audit.models import gpt2
from unlearning_audit.store.files import write_failure
from unlearning_audit.training import rounding
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack

import metric_calls as call
from relearn_cases import STEPS, case, linear, members, store
from ruli_cases import data

BITS = np.array([8, 4])


@pytest.fixture
def member():
    return members()


# ---------------------------------------------------------------- weights


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


def test_rates_of_false_alarms_are_each_named_once():
    with pytest.raises(ValidationError, match="give each value once"):
        swap.Options(fpr=(0.01, 0.1, 0.01))
    assert swap.Options(fpr=(0.01, 0.1)).fpr == (0.01, 0.1)


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
    before = rounding.answers(stack, rows, [4])
    original = [answer.copy() for answer in before]
    small = torch.tensor([[0.0, -0.4, 0.4, -0.4, -0.4, -0.4], [0.0, 0.4, -0.4, 0.4, 0.4, 0.4]])
    stack.edit(lambda _, weight: weight + small if weight.ndim == 3 else weight)
    phi, right = rounding.answers(stack, rows, [4, 8])
    np.testing.assert_allclose(phi[:, 0], original[0][:, 0], atol=1e-5)
    assert (right[:, 0] == original[1][:, 0]).all()
    assert np.abs(phi[:, 1] - phi[:, 0]).mean() > 0.3
    torch.testing.assert_close(stack.parameters["0.weight"][0], level + small)


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
    phi, _ = rounding.answers(stack, np.arange(12), [4])
    exact = stats.phi(logits=by_hand.logits(), y=np.broadcast_to(y, (2, 12)))
    np.testing.assert_allclose(phi[:, 0], exact, atol=1e-5)


# ---------------------------------------------------------------- numbers


def write_rounded(path, member, chance, rounded, seed=0, shift=0.0):
    """As `relearn_cases.store`, with models that are right about what they forgot with the chances ``rounded`` [bits]
    once their weights are rounded, surer of it than of held-out samples by ``shift``."""
    record = Relearned.read(store(path, member, [chance] * 5, seed))
    rng, shape = np.random.default_rng(seed + 100), (len(record.right), len(BITS), len(record.index))
    right = rng.random(shape) < np.asarray(rounded)[None, :, None]
    phi = rng.standard_normal(shape) + shift * member.forget[:, None, record.index]
    replace(record, bits=BITS, phi_rounded=phi.astype(np.float32), right_rounded=right).write(path)
    return str(path)


def test_rows_are_those_of_known_chances(tmp_path, member):
    audited = write_rounded(tmp_path / "own.npz", member, 0.3, [0.3, 0.8], 1, shift=1.0)
    reference = write_rounded(tmp_path / "other.npz", member, 0.3, [0.3, 0.3], 2)
    rows = {(r.metric, r.rule, r.role): r for r in call.rows(quantised, case(tmp_path, member, audited, reference), {})}
    truth = {"quantised_gap": (0.0, 0.5), "quantised_return": (0.0, 0.5), "quantised_auc": (0.760, 0.760)}
    audited_samples = int((member.forget | member.heldout).any(axis=0).sum())
    for metric, numbers in truth.items():
        for bits, number in zip(BITS, numbers, strict=True):
            row = rows[metric, f"{bits} bits", ""]
            assert row.ci_low <= number <= row.ci_high < row.ci_low + 0.25, (metric, bits)
            assert row.n == audited_samples or metric != "quantised_auc"
    assert rows["quantised_accuracy", "4 bits", "forget"].value == pytest.approx(0.8, abs=0.06)
    world = case(tmp_path, member, audited, reference)
    assert quantised.effects(world, quantised.Options()) == {}
    part = quantised.effects(world, quantised.Options(decides=True))["quantised"]
    assert part.names == ("8 bits", "4 bits")
    assert part.value.mean(axis=1) == pytest.approx(
        [rows["quantised_accuracy", f"{b} bits", "forget"].value for b in BITS]
    )


def test_accuracy_on_the_test_part_is_told_where_its_samples_were_asked(tmp_path, member):
    """All models are right on the test part and wrong elsewhere."""
    index = np.arange(len(data().y))
    shape, steps = (len(member.seed), len(BITS), len(index)), (len(member.seed), len(STEPS), len(index))
    right = np.broadcast_to(data().part == 1, shape)
    Relearned(
        STEPS, np.zeros(steps, np.float32), np.zeros(steps, bool), np.zeros(steps[::2], bool), index, BITS,
        np.zeros(shape, np.float32), right,
    ).write(tmp_path / "own.npz")  # fmt: skip
    rows = call.rows(quantised, case(tmp_path, member, str(tmp_path / "own.npz"), None), {})
    levels = {(row.rule, row.role): row.value for row in rows if row.metric == "quantised_accuracy"}
    assert levels == {(f"{bits} bits", role): role == "test" for bits in BITS for role in ("forget", "test")}
    assert "add retrain to the methods" in rows[0].note
    write_failure(tmp_path / "other.npz", "method", "it diverged")
    own, other = (str(tmp_path / f"{name}.npz") for name in ("own", "other"))
    assert call.rows(quantised, case(tmp_path, member, own, other), {})[0].note == "it diverged"
