"""Methods that train: each against a plain loop over the same batches, and the identities between them."""

from itertools import chain, islice

import pytest
import torch
from torch import nn
from unlearning_audit.methods import l1_sparse

from bank_cases import SEEDS, part, same, trained, unlearned
from plain_loop import Plain, assert_plain

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def bank():
    return trained(seeds=SEEDS[:2], dtype=torch.float64)


SGD = {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}


def test_finetune(bank):
    def loop(bank, m):
        plain = Plain(bank, m, **SGD)
        for epoch in plain.read("retain", "unlearn/0.0", 8, 2):
            for index in epoch:
                plain.step(plain.loss(index))
        return plain

    assert_plain(bank, "finetune", loop, **SGD, batch_size=8, epochs=2)


def test_neggrad(bank):
    def loop(bank, m):
        plain = Plain(bank, m, lr=0.01)
        for epoch in plain.read("forget", "unlearn/0.0", 8, 3):
            for index in epoch:
                plain.step(-plain.loss(index))
        return plain

    assert_plain(bank, "neggrad", loop, lr=0.01, batch_size=8, epochs=3)


@pytest.mark.parametrize("pass_over", ["retain", "forget"])
def test_neggrad_plus(bank, pass_over):
    """31 retained rows in batches of 8 make 4 steps, 13 forgotten ones in batches of 5 make 3."""

    def loop(bank, m):
        plain = Plain(bank, m, lr=0.02)
        first = pass_over == "retain"
        retain_batches = chain(*plain.read("retain", f"unlearn/0.{int(not first)}", 8, 9))
        forget_batches = chain(*plain.read("forget", f"unlearn/0.{int(first)}", 5, 9))
        for keep, lose in islice(zip(retain_batches, forget_batches, strict=False), 8 if first else 6):
            plain.step(0.8 * plain.loss(keep) - 0.2 * plain.loss(lose))
        return plain

    options = {"lr": 0.02, "momentum": 0, "batch_size": 8, "forget_batch_size": 5, "epochs": 2, "beta": 0.8}
    assert_plain(bank, "neggrad_plus", loop, **options, pass_over=pass_over)


def test_ga_plus(bank):
    def loop(bank, m):
        plain = Plain(bank, m, lr=0.03, momentum=0.5)
        for epoch in plain.read("forget", "unlearn/ascent/0.0", 8, 2):
            for index in epoch:
                plain.step(-plain.loss(index))
        plain.optimiser = torch.optim.SGD(plain.model.parameters(), lr=0.02, momentum=0.5)
        for epoch in plain.read("retain", "unlearn/0.0", 16, 2):
            for index in epoch:
                plain.step(plain.loss(index))
        return plain

    options = {"lr": 0.03, "momentum": 0.5, "batch_size": 8, "epochs": 2}
    assert_plain(bank, "ga_plus", loop, **options, refine_lr=0.02, refine_batch_size=16, refine_epochs=2)


@pytest.mark.parametrize(
    ("schedule", "strengths"),
    [("decay", [0.02, 0.015, 0.01, 0.005]), ("increase", [0, 0.01, 0.02, 0.03]), ("constant", [0.02] * 4)],
)
def test_l1_sparse(bank, schedule, strengths):
    options = {**SGD, "batch_size": 8, "epochs": 4, "alpha": 0.02, "penalty_schedule": schedule}
    settings = l1_sparse.Options(**options)
    assert [settings.strength(e) for e in range(4)] == pytest.approx(strengths, abs=1e-15)

    def loop(bank, m):
        plain = Plain(bank, m, **SGD)
        for strength, epoch in zip(strengths, plain.read("retain", "unlearn/0.0", 8, 4), strict=True):
            for index in epoch:
                size = sum(v.abs().sum() for v in plain.model.parameters())
                plain.step(plain.loss(index) + strength * size)
        return plain

    assert_plain(bank, "l1_sparse", loop, **options)


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_l1_sparse_prunes_the_smallest_weights_of_each_model_before_it_finetunes(bank, share):
    after = unlearned(bank, "l1_sparse", **SGD, batch_size=8, epochs=2, alpha=0.0, prune=share)
    assert len(bank) > 1
    for m in range(len(bank)):
        before, left = (
            torch.cat([value[m].flatten() for value in models.parameters.values() if value.ndim > 2])
            for models in (bank, after)
        )
        gone = left == 0
        assert int(gone.sum()) == int(share * len(left))
        if share:
            assert before[gone].abs().max() < before[~gone].abs().min()
        assert not torch.equal(before[~gone], left[~gone])
    moved = [not torch.equal(v, after.parameters[k]) for k, v in bank.parameters.items() if v.ndim == 2]
    assert all(moved)


def test_npo(bank):
    def loop(bank, m):
        plain, original = Plain(bank, m, lr=0.05), bank.extract(m)
        losing = chain(*plain.read("forget", "unlearn/0.0", 8, 3))
        keeping = chain(*plain.read("retain", "unlearn/0.1", 8, 3))
        for lose, keep in zip(losing, keeping, strict=False):
            x, y = plain.x[lose], plain.y[lose]
            now, then = (
                nn.functional.cross_entropy(model(x), y, reduction="none") for model in (plain.model, original)
            )
            preference = -2 / 0.7 * torch.log(1 / (1 + torch.exp(-0.7 * (now - then.detach()))))
            plain.step(preference.mean() + 0.5 * plain.loss(keep))
        return plain

    assert_plain(bank, "npo", loop, lr=0.05, batch_size=8, epochs=3, beta=0.7, retain_weight=0.5)


# ---------------------------------------------------------------- identities


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("neggrad_plus", {"beta": 1}),
        ("l1_sparse", {"alpha": 0}),
        ("ga_plus", {"epochs": 0, "refine_epochs": 3, "refine_lr": 0.05, "refine_batch_size": 8}),
    ],
)
def test_what_is_finetuning_in_disguise_is_it_bit_by_bit(bank, name, options):
    single = part(bank, [0, 1], dtype=torch.float32)
    single.parameters = {k: v.float() for k, v in single.parameters.items()}
    shared = {**SGD, "batch_size": 8, "epochs": 3}
    assert same(unlearned(single, name, **{**shared, **options}), unlearned(single, "finetune", **shared))


def test_neggrad_plus_without_retain_is_neggrad(bank):
    shared = {**SGD, "batch_size": 8, "epochs": 2}
    only = unlearned(bank, "neggrad_plus", **shared, beta=0, pass_over="forget")
    assert same(only, unlearned(bank, "neggrad", **shared))


@pytest.mark.parametrize("name", ["finetune", "neggrad", "neggrad_plus", "ga_plus", "l1_sparse", "npo", "ftfinal"])
def test_no_epochs_no_change(bank, name):
    off = {"epochs": 0, **({"refine_epochs": 0} if name == "ga_plus" else {})}
    assert same(unlearned(bank, name, **off), bank)
