"""The parts of a fit: what moves, in which order, by how much, and what is recorded of it."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn
from unlearning_audit.models import cnn
from unlearning_audit.training import heartbeat, lanes
from unlearning_audit.training.fitting import Fit
from unlearning_audit.training.optim import Optimiser
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows, Stream, fit_labels

from stack_cases import RECIPE, SEEDS, batches, conv, fresh, masks, mlp, rows, same, trained

SHORT = Recipe(lr=0.1, momentum=0.9, weight_decay=5e-4, batch_size=8, epochs=1)


def fitted(stack, *passes, **settings):
    copy = stack.copy()
    copy.fit(*passes, **{"optimiser": SHORT, "epochs": 2, "purpose": "p", **settings})
    return copy


@pytest.mark.parametrize("kind", ["none", "crop_flip"])
def test_every_batch_of_a_pass_is_augmented_as_its_optimiser_says(kind):
    stack, read = trained(conv, SEEDS[:2]), []
    forget, retain = rows(stack.seeds)

    def loss(batch):
        shifted = not torch.equal(batch.x, stack.read(batch.models, batch.rows).x)
        read.append((bool((batch.rows[0, 0] == torch.from_numpy(forget.index[0])).any()), shifted))
        return fit_labels(batch)

    optimisers = Optimiser(lr=0.0, batch_size=5, augment=kind), Optimiser(lr=0.0, batch_size=31)
    after = fitted(stack, (Stream(retain, loss=loss), Stream(forget, loss=loss)), Stream(retain, loss=loss),
                   optimiser=optimisers)  # fmt: skip
    assert read == 2 * (7 * [(False, kind == "crop_flip"), (True, kind == "crop_flip")] + [(False, False)])
    after.buffers = stack.buffers
    assert np.array_equal(after.logits(), stack.logits())


def test_class_weights_are_those_of_torch():
    """One step on three samples of one class and one of another: the weighted mean of torch's cross_entropy."""
    x, y = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32), np.array([0, 0, 0, 1, 2, 2])
    recipe = Recipe(lr=0.5, batch_size=4, epochs=1, class_weights="balanced")
    stack = ModelStack.create(mlp, x, y, [1, 2], recipe=recipe, dtype=torch.float64)
    before, rows = stack.copy(), Rows(np.array([[0, 1, 2, 3], [3, 4, 5, 0]]))
    stack.train(rows)
    weights = torch.tensor([[1 / 3, 1.0, 0.0, 0.0], [1.0, 1.0, 1 / 2, 0.0]], dtype=torch.float64)
    for model, index in enumerate(rows.index):
        plain, labels = before.extract(model), torch.from_numpy(y[index])
        nn.functional.cross_entropy(plain(torch.from_numpy(x[index]).double()), labels, weights[model]).backward()
        for name, value in plain.named_parameters():
            assert (stack.parameters[name][model] - (value - 0.5 * value.grad)).abs().max() < 1e-12


def test_the_rate_follows_the_schedule_of_the_optimiser():
    """A rate of nothing from the second epoch on leaves what the first has made."""
    stack = trained(seeds=SEEDS[:2])
    ends = Optimiser(lr=0.1, batch_size=8, schedule="multistep", milestones=[1], lr_decay=1e-30)
    two, one = (fitted(stack, Stream(rows(stack.seeds)[1]), optimiser=ends, epochs=epochs) for epochs in (2, 1))
    assert same(two, one)
    assert not same(two, stack)


# ---------------------------------------------------------------- records


def test_the_record_is_the_sum_of_the_steps_that_touched_a_recorded_sample():
    """Samples of the second and the fourth batch of the first model, none of the second one."""
    stack = fresh(seeds=SEEDS[:2], dtype=torch.float64)
    stream, record = Stream(rows(stack.seeds)[1]), np.zeros_like(masks(stack.seeds)[1])
    [order] = batches(stream.rows, 0, stack.seeds[0], "p/0.0", 8, 1)
    record[0, [*order[1][:2], order[3][0]]] = True
    after = stack.copy()
    updates = after.fit(stream, optimiser=SHORT, epochs=1, purpose="p", record=record)
    at = [fitted(stack, stream, epochs=1, steps=steps).parameters for steps in range(5)]
    for k, v in updates.items():
        assert (v[0] - (at[2][k] - at[1][k] + at[4][k] - at[3][k])[0]).abs().max() < 1e-12
        assert not v[1].any()


@pytest.mark.parametrize("run", [Fit.run, lanes.run])
def test_a_last_batch_of_one_sample_that_cannot_be_normalised_is_said(monkeypatch, run):
    monkeypatch.setattr(Fit, "run", run)
    x, y = np.random.default_rng(0).random((17, 1, 8, 8), np.float32), np.arange(17) % 2
    options = cnn.Options(channels=(4, 4, 4), mean=(0.0,), std=(1.0,))
    stack = ModelStack.create(
        lambda: cnn.build(options, (1, 8, 8), 2), x, y, [1], recipe=Recipe(epochs=1, batch_size=16)
    )
    with pytest.raises(ValueError, match=r"^batch_size: 17 rows in batches of 16 make a batch of one sample"):
        stack.train(Rows(np.arange(17)[None]))
    stack.train(Rows(np.arange(16)[None]))


# ---------------------------------------------------------------- progress


def test_a_fit_says_where_it_is(monkeypatch, capsys):
    ticks = itertools.count(step=30.0)
    monkeypatch.setattr(heartbeat, "monotonic", lambda: next(ticks))
    for models, named in ((8, "models 1 to 8 of 8"), (1, "model 1 of 1")):
        trained(mlp, SEEDS[:models], recipe=RECIPE.model_copy(update={"epochs": 2}))
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == f"train: {named}, epoch 1 of 2, step 2 of 6, after 1 min"
    assert any("epoch 2 of 2" in line for line in lines)
