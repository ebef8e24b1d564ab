"""Methods that train: each against a plain loop over the same batches, and the identities between them."""

import pytest
import torch
from unlearning_audit.methods import l1_sparse

from plain_loop import assert_plain
from stack_cases import unlearned

SGD = {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01, "batch_size": 8}


def finetune(plain):
    for index in plain.all("retain", "unlearn/0.0", 8, 2):
        plain.step(plain.loss(index))


def neggrad(plain):
    for index in plain.all("forget", "unlearn/0.0", 8, 2):
        plain.step(-plain.loss(index))


def neggrad_plus_over_retain(plain):
    """31 retained rows in batches of 8 make 4 steps."""
    losing = plain.all("forget", "unlearn/0.1", 5, 3)
    for keep, lose in zip(plain.all("retain", "unlearn/0.0", 8, 2), losing, strict=False):
        plain.step(0.8 * plain.loss(keep) - 0.2 * plain.loss(lose))


def neggrad_plus_over_forget(plain):
    """13 forgotten rows in batches of 5 make 3 steps."""
    keeping = plain.all("retain", "unlearn/0.1", 8, 2)
    for lose, keep in zip(plain.all("forget", "unlearn/0.0", 5, 2), keeping, strict=False):
        plain.step(0.8 * plain.loss(keep) - 0.2 * plain.loss(lose))


NEGGRAD_PLUS = {"lr": 0.02, "momentum": 0, "batch_size": 8, "forget_batch_size": 5, "epochs": 2, "beta": 0.8}


def ga_plus(plain):
    for index in plain.all("forget", "unlearn/ascent/0.0", 8, 2):
        plain.step(-plain.loss(index))
    plain.optimiser = torch.optim.SGD(plain.model.parameters(), lr=0.02, momentum=0.9, weight_decay=0.01)
    for index in plain.all("retain", "unlearn/0.0", 16, 2):
        plain.step(plain.loss(index))


@pytest.mark.parametrize(
    ("name", "loop", "options"),
    [
        ("finetune", finetune, {**SGD, "epochs": 2}),
        ("neggrad", neggrad, {**SGD, "epochs": 2}),
        ("neggrad_plus", neggrad_plus_over_retain, {**NEGGRAD_PLUS, "pass_over": "retain"}),
        ("neggrad_plus", neggrad_plus_over_forget, {**NEGGRAD_PLUS, "pass_over": "forget"}),
        ("ga_plus", ga_plus, {**SGD, "epochs": 2, "refine_lr": 0.02, "refine_batch_size": 16, "refine_epochs": 2}),
    ],
)
def test_it_is_a_plain_loop(stack, name, loop, options):
    assert_plain(stack, name, loop, options)


@pytest.mark.parametrize(
    ("schedule", "strengths"),
    [("decay", [0.02, 0.015, 0.01, 0.005]), ("increase", [0, 0.01, 0.02, 0.03]), ("constant", [0.02] * 4)],
)
def test_l1_sparse(stack, schedule, strengths):
    def loop(plain):
        for strength, epoch in zip(strengths, plain.read("retain", "unlearn/0.0", 8, 4), strict=True):
            for index in epoch:
                size = sum(v.abs().sum() for v in plain.model.parameters())
                plain.step(plain.loss(index) + strength * size)

    options = {**SGD, "epochs": 4, "alpha": 0.02, "penalty_schedule": schedule}
    assert [l1_sparse.Options(**options).strength(e) for e in range(4)] == pytest.approx(strengths, abs=1e-15)
    assert_plain(stack, "l1_sparse", loop, options)


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_l1_sparse_prunes_the_smallest_weights_of_each_model_before_it_finetunes(stack, share):
    after = unlearned(stack, "l1_sparse", **SGD, epochs=2, alpha=0.0, prune=share)
    for m in range(2):
        before, left = (
            torch.cat([value[m].flatten() for value in models.parameters.values() if value.ndim > 2])
            for models in (stack, after)
        )
        gone = left == 0
        assert int(gone.sum()) == int(share * len(left))
        assert not share or before[gone].abs().max() < before[~gone].abs().min()
        assert not torch.equal(before[~gone], left[~gone])
    assert not any(torch.equal(v, after.parameters[k]) for k, v in stack.parameters.items() if v.ndim == 2)
