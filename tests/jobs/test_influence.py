"""Whether a method changes every model by itself: wrong reductions are told, and no method of the library."""

import os

import numpy as np
import pytest
import torch
from unlearning_audit.plugins import registry
from unlearning_audit.workflow.influence import MUCH, ROUNDING, influence, sentence

from stack_cases import OPTIONS, SEEDS, mlp, rows, trained


def clipped(stack, forget, retain):
    gradient = stack.gradient(forget)
    norm = sum(value.square().sum() for value in gradient.values()).sqrt()
    stack.edit(lambda name, value: value + 0.1 * gradient[name] / norm)


#: Reductions over all dimensions instead of all but the first, and models that are mixed in part.
WRONG = {
    "half": lambda stack, *rows: stack.edit(lambda name, value: (value + value.roll(1, 0)) / 2),
    "head": lambda stack, *rows: stack.edit(lambda name, value: value if name[0] != "4" else value[:1] + 0 * value),
    "spread": lambda stack, *rows: stack.edit(lambda name, value: value + 0.1 * value.std()),
    "clipped": clipped,
}  # fmt: skip


@pytest.fixture(scope="module")
def stack():
    return trained(mlp)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_reduction_is_told(stack, name):
    share = influence(stack.copy(), WRONG[name], *rows(SEEDS))
    assert share > ROUNDING
    assert share > MUCH or name not in ("half", "head")
    assert "mine.py: its effect on a model depends on the models beside it" in sentence(share, "mine.py")


@pytest.mark.parametrize("name", registry.names("methods"))
def test_every_method_of_the_library_changes_models_by_themselves(stack, name):
    module = registry.load("methods", name)
    options = module.Options(**OPTIONS.get(name, {}))
    share = influence(stack.copy(), lambda *models: module.unlearn(*models, options), *rows(SEEDS))
    assert share == 0
    assert sentence(share, "mine.py") == ""


def test_nothing_is_said_of_noise_that_nobody_can_repeat_and_of_one_model(stack):
    def noisy(models, forget, retain):
        rng = np.random.default_rng(list(os.urandom(4)))
        models.edit(lambda name, value: value + torch.from_numpy(rng.normal(size=value.shape)).float())

    assert influence(stack.copy(), noisy, *rows(SEEDS)) == 0
    alone = stack.take(np.arange(1))
    assert influence(alone, WRONG["half"], *(part[[0]] for part in rows(SEEDS))) == 0


def test_neither_models_nor_others_random_numbers_are_left_changed(stack):
    models, before = stack.copy(), {name: value.clone() for name, value in stack.parameters.items()}
    influence(models, WRONG["half"], *rows(SEEDS))
    assert all(value.equal(before[name]) for name, value in models.parameters.items())


def test_two_models_stand_for_three(stack):
    pair = stack.take(np.arange(2))
    assert influence(pair, WRONG["half"], *(part[[0, 1]] for part in rows(SEEDS))) > MUCH
