"""Lanes, the way of plain training on a GPU: what they leave is what the ordinary fit leaves. Without a GPU the same
lanes run their steps unrecorded, so that all but the recording itself is tested everywhere."""

import numpy as np
import pytest
import torch
from unlearning_audit.bank import fitting, lanes
from unlearning_audit.bank.lanes import Lane
from unlearning_audit.bank.streams import Rows, Stream, fit_labels

from bank_cases import GPU, RECIPE, SEEDS, conv, fresh, largest_gap, mlp, rows, same

COSINE = RECIPE.model_copy(update={"schedule": "cosine"})


def fit(bank, **changed):
    """A fit of ``bank`` as `Bank.train` asks for it; 31 rows in batches of 8, so that the last batch is smaller."""
    retain = rows(bank.seeds)[1]
    known = {"optimiser": COSINE, "epochs": 3, "purpose": "train", "augment": False, "passes": ((Stream(retain),),)}
    nothing = dict.fromkeys(("only", "mask", "scale", "penalty", "record"))
    return fitting.Fit(bank=bank, **(nothing | known | changed))


@pytest.mark.parametrize(("at_once", "schedule"), [("1", "cosine"), ("3", "one_cycle")])
@pytest.mark.parametrize(
    ("build", "backend", "augment"), [(mlp, "stacked", False), (conv, "serial", False), (conv, "serial", True)]
)
def test_lanes_leave_what_the_ordinary_fit_leaves(monkeypatch, build, backend, augment, at_once, schedule):
    monkeypatch.setenv("UNLEARNING_IN_FLIGHT", at_once)
    plain, laned = (fresh(build, backend=backend, dtype=torch.float64) for _ in range(2))
    start = laned.copy()
    recipe = RECIPE.model_copy(update={"schedule": schedule})
    fit(plain, augment=augment, optimiser=recipe).run()
    laned.model.train()
    asked = fit(laned, augment=augment, optimiser=recipe)
    lanes.run(asked)
    assert largest_gap(plain, laned) < 1e-12 < 1e-3 < largest_gap(start, laned)


@pytest.mark.parametrize("name", ["adam", "adamw", "rmsprop"])
def test_lanes_step_by_every_optimiser(name):
    recipe = RECIPE.model_copy(update={"optimiser": name, "lr": 0.01, "schedule": "cosine"})
    plain, laned = (fresh(seeds=SEEDS[:3], dtype=torch.float64) for _ in range(2))
    fit(plain, optimiser=recipe).run()
    lanes.run(fit(laned, optimiser=recipe))
    assert largest_gap(plain, laned) < 1e-9


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_lanes_that_do_not_fit_together_train_fewer_at_once(monkeypatch, limit):
    """A card that holds ``limit`` lanes: the others come later, and no number depends on it."""
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    advance, sizes = Lane.advance, []

    def train(fit, groups):
        sizes.append(len(groups))
        return really(fit, groups)

    def limited(self, step, rate):
        if sizes[-1] > limit and step == 2:  # in the midst of an epoch
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        advance(self, step, rate)

    plain, laned = (fresh(conv, backend="serial") for _ in range(2))
    for bank in (plain, laned):
        bank.model.train()
    lanes.run(fit(plain))
    really = lanes._train
    monkeypatch.setattr(lanes, "_train", train)
    monkeypatch.setattr(Lane, "advance", limited)
    lanes.run(fit(laned))
    assert same(plain, laned)
    assert sizes == {1: [4, 2, 1] + [1] * 7, 2: [4, 2, 2, 2, 2], 3: [4, 2, 2, 2, 2]}[limit]


def test_one_lane_that_does_not_fit_is_the_machines_fault(monkeypatch):
    def full(fit, groups):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(lanes, "_train", full)
    with pytest.raises(torch.OutOfMemoryError):
        lanes.run(fit(fresh(conv, backend="serial")))


def test_a_lane_does_not_depend_on_the_others(monkeypatch):
    ends = []
    for at_once in ("1", "4"):
        monkeypatch.setenv("UNLEARNING_IN_FLIGHT", at_once)
        bank = fresh(conv, backend="serial")
        bank.model.train()
        lanes.run(fit(bank))
        ends.append(bank)
    assert same(*ends)


def test_fewer_rows_than_a_batch_are_one_step():
    plain, laned = (fresh(seeds=SEEDS[:3], dtype=torch.float64) for _ in range(2))
    few = ((Stream(Rows(np.tile(np.arange(5), (3, 1)))),),)
    fit(plain, passes=few).run()
    lanes.run(fit(laned, passes=few))
    assert largest_gap(plain, laned) < 1e-12


def test_only_plain_training_suits_and_only_on_a_gpu():
    bank = fresh(seeds=SEEDS[:2])
    assert not lanes.suits(fit(bank))
    bank.device = "cuda"  # Nothing is computed here.
    stream = Stream(rows(bank.seeds)[1])
    assert lanes.suits(fit(bank))
    for changed in (
        {"mask": {}}, {"scale": {}}, {"penalty": lambda p, e: 0.0}, {"record": np.zeros((2, 60), bool)},
        {"optimiser": (RECIPE, RECIPE)},
        {"passes": ((stream,), (stream,))}, {"passes": ((stream, stream),)},
        {"passes": ((Stream(stream.rows, loss=lambda batch: fit_labels(batch)),),)},
    ):  # fmt: skip
        assert not lanes.suits(fit(bank, **changed)), changed


@GPU
@pytest.mark.parametrize(("build", "backend"), [(mlp, "stacked"), (conv, "serial"), (conv, "stacked")])
def test_recorded_training_on_a_gpu_agrees_with_the_processor(build, backend):
    here, there = (fresh(build, backend=backend, dtype=torch.float64, device=d) for d in ("cpu", "cuda"))
    for bank in (here, there):
        bank.train(rows(bank.seeds)[1])
    there.parameters, there.buffers = ({k: v.cpu() for k, v in s.items()} for s in (there.parameters, there.buffers))
    assert largest_gap(here, there) < 1e-6  # learning rates are rounded to single precision there


@GPU
def test_half_precision_learns_on_a_gpu_too():
    bank = fresh(conv, backend="serial", device="cuda", recipe=RECIPE.model_copy(update={"precision": "bfloat16"}))
    bank.train(rows(bank.seeds)[1])
    assert all(bool(v.isfinite().all()) for v in bank.parameters.values())
