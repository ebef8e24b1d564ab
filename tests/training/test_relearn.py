"""Relearning: models that really learn once more."""

import numpy as np
import pytest
import torch
from unlearning_audit.evaluation.signal_files import Relearned
from unlearning_audit.metrics import relearn
from unlearning_audit.training import relearning
from unlearning_audit.training.optim import Optimiser
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows, Stream

from relearn_cases import linear
from stack_cases import SEEDS, conv, rows, trained


def test_images_are_learned_once_more_as_they_are():
    stack = trained(conv, SEEDS[:2])
    taught, index = rows(stack.seeds)[0], np.arange(60)
    phi = relearning.curves(stack, taught, index, 2)[1]
    stack.recipe = stack.recipe.model_copy(update={"augment": "crop_flip"})
    assert np.array_equal(relearning.curves(stack, taught, index, 2)[1], phi)


@pytest.fixture
def told_apart():
    """Models of two classes that are easily told apart, what they are to forget, and the truth."""
    rng, seeds = np.random.default_rng(0), [1, 2, 3, 4]
    y = np.arange(300) % 2
    x = ((2 * y - 1)[:, None] + 0.5 * rng.standard_normal((300, 6))).astype(np.float32)
    forget = np.array([np.isin(np.arange(300), np.random.default_rng(seed).permutation(300)[:100]) for seed in seeds])
    stack = ModelStack.create(linear, x, y, seeds, recipe=Recipe(lr=4.0, batch_size=50), backend="stacked")
    stack.fit(Stream(Rows.where(forget)), optimiser=Recipe(lr=0.5, batch_size=50), epochs=5, purpose="train")
    return stack, forget, y


def test_what_a_shift_of_the_last_bias_hides_comes_back_in_one_step(told_apart):
    stack, forget, y = told_apart
    before = stack.logits().argmax(-1) == y
    (bias,) = [name for name in stack.parameters if name.endswith("bias")]
    stack.edit(lambda name, value: value + torch.tensor([8.0, 0.0]) if name == bias else value)
    half = Rows.where(forget).sample(50, stack.seeds, "relearn")
    steps, phi, right = relearning.curves(stack, half, np.arange(300), 4)
    queried = forget.copy()
    np.put_along_axis(queried, half.index, False, axis=1)
    taught = forget & ~queried
    record = Relearned(steps, phi, right, taught, np.arange(300))
    accuracy = [(right[:, i] & queried).sum(1) / queried.sum(1) for i in range(len(steps))]
    assert accuracy[0].max() < 0.7
    goal = relearn.NEAR * (before & queried).sum(1) / queried.sum(1)
    assert relearn.first_steps(record, queried, goal).tolist() == [1, 1, 1, 1]


def test_steps_are_those_of_one_training_and_leave_the_stack_as_it_was(told_apart):
    stack, forget, _ = told_apart
    rows = Rows.where(forget)
    original = {name: value.clone() for name, value in stack.parameters.items()}
    optimiser = Optimiser(lr=0.1, momentum=0.9, batch_size=30)  # four steps to a pass over 100 rows
    _, phi, _ = relearning.curves(stack, rows, np.arange(300), 8)
    assert all(torch.equal(value, original[name]) for name, value in stack.parameters.items())
    assert phi.shape == (4, 5, 300)
    whole, stopped = stack.copy(), stack.copy()
    whole.fit(Stream(rows), optimiser=optimiser, epochs=2, purpose="relearn")
    stopped.fit(Stream(rows), optimiser=optimiser, epochs=3, steps=8, purpose="relearn")
    assert all(torch.equal(value, whole.parameters[name]) for name, value in stopped.parameters.items())
    assert not all(torch.equal(value, original[name]) for name, value in stopped.parameters.items())
