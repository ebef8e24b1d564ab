"""Methods that touch some layers only, and those that start over."""

import numpy as np
import pytest
import torch
from unlearning_audit.randomness.keyed import seed_of
from unlearning_audit.training.streams import Rows

from stack_cases import SEEDS, conv, fresh, mlp, rows, same, state, trained, unlearned


@pytest.mark.parametrize("name", ["ftfinal", "retrfinal", "newton"])
@pytest.mark.parametrize("build", [mlp, conv])
def test_only_the_head_changes_and_no_statistic(name, build):
    stack = trained(build, SEEDS[:3])
    after = unlearned(stack, name)
    changed = [k for k, v in state(after).items() if not torch.equal(v, state(stack)[k])]
    assert changed == stack.head


def test_retrfinal_forgets_the_old_head_and_ftfinal_starts_from_it():
    stack = trained(seeds=SEEDS[:3])
    headless = stack.copy()
    headless.edit(lambda name, value: torch.zeros_like(value) if name in stack.head else value)
    assert same(unlearned(stack, "retrfinal"), unlearned(headless, "retrfinal"))
    assert not same(unlearned(stack, "ftfinal"), unlearned(headless, "ftfinal"))
    start = unlearned(stack, "retrfinal", epochs=0)
    assert not torch.equal(start.parameters["4.weight"], stack.parameters["4.weight"])
    assert not torch.equal(start.parameters["4.weight"][0], start.parameters["4.weight"][1])


@pytest.mark.parametrize("build", [mlp, conv])
def test_retrain_is_training_on_retain_from_new_seeds(build):
    stack = trained(build, SEEDS[:3])
    seeds = [seed_of(seed, "retrain/0") for seed in stack.seeds]
    again = fresh(build, seeds)
    again.train(rows(stack.seeds)[1])
    assert same(unlearned(stack, "retrain"), again)


def test_another_draw_is_another_population():
    stack = trained(seeds=SEEDS[:3])
    first, again, second = (unlearned(stack, "retrain", draw=draw) for draw in (0, 0, 1))
    assert same(first, again)
    assert not any(torch.equal(v[m], second.parameters[k][m]) for k, v in first.parameters.items() for m in range(3))
    assert set(first.seeds).isdisjoint(second.seeds)


def test_the_same_start_is_that_of_the_original_whatever_the_seeds_of_unlearning():
    """Two copies of one original, as `Membership.unlearning_seeds` gives them seeds, and another one, in any order."""
    start, stack = fresh(seeds=[11, 11, 12]), trained(seeds=[11, 11, 12])
    stack.seeds = [21, 22, 23]
    for models in ([0, 1, 2], [2, 1]):
        some = stack.take(np.array(models))
        lost, kept = (Rows(selection.index[models]) for selection in rows([11, 11, 12]))
        assert same(unlearned(some, "initial", lost, kept), start, slots_b=models)
        after = unlearned(some, "retrain", lost, kept, same_start=True)
        expected = start.take(np.array(models))
        expected.seeds = [stack.seeds[m] for m in models]
        expected.train(kept)
        assert same(after, expected)
        assert not torch.equal(after.parameters["4.weight"][0], after.parameters["4.weight"][1])
