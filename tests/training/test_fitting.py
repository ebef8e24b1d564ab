"""The parts of a fit: what moves, in which order, by how much, and what is recorded of it."""

from itertools import chain

import numpy as np
import pytest
import torch
from torch import nn
from unlearning_audit.models import cnn
from unlearning_audit.training import lanes
from unlearning_audit.training.fitting import Fit
from unlearning_audit.training.optim import Optimiser
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows, Stream, fit_labels

from stack_cases import SEEDS, batches, conv, fresh, largest_gap, masks, mlp, rows, same, trained

SHORT = Recipe(lr=0.1, momentum=0.9, weight_decay=5e-4, batch_size=8, epochs=1)


def fitted(stack, *passes, **settings):
    copy = stack.copy()
    copy.fit(*passes, **{"optimiser": SHORT, "epochs": 2, "purpose": "p", **settings})
    return copy


def test_an_l2_penalty_is_weight_decay_and_hears_the_epoch():
    stack, heard, decay = trained(seeds=SEEDS[:3], dtype=torch.float64), [], 0.03
    stream = Stream(rows(stack.seeds)[1])

    def penalty(parameters, epoch):
        heard.append(epoch)
        return decay / 2 * sum(v.flatten(1).square().sum(1) for v in parameters.values())

    plain, decayed = (SHORT.model_copy(update={"weight_decay": value}) for value in (0.0, decay))
    gap = largest_gap(fitted(stack, stream, optimiser=plain, penalty=penalty), fitted(stack, stream, optimiser=decayed))
    assert gap < 1e-12
    assert heard == [0] * 4 + [1] * 4


def test_a_loss_goes_to_each_epoch_before_its_first_step():
    """Of every stream of every pass, with the group's models and a place for what it draws."""
    stack, seen = trained(seeds=SEEDS[:2]), []
    forget, retain = rows(stack.seeds)

    class Drawn:
        def begin(self, epoch, models, loss_state, device):
            assert (models, device) == ([0, 1], "cpu")
            loss_state[self] = epoch

        def __call__(self, batch):
            seen.append((batch.epoch, batch.loss_state[self]))
            return fit_labels(batch)

    fitted(stack, Stream(forget, loss=Drawn()), (Stream(retain), Stream(forget, loss=Drawn())), epochs=3)
    assert seen == [(epoch, epoch) for epoch in range(3) for _ in range(2 + 4)]


def test_scaled_gradients_move_that_much_less():
    stack = trained(seeds=SEEDS[:3], dtype=torch.float64)
    stream, once = Stream(rows(stack.seeds)[0]), {"optimiser": Optimiser(lr=0.1, batch_size=99), "epochs": 1}
    factor = torch.rand(stack.parameters["2.weight"].shape, dtype=torch.float64)
    full, scaled = fitted(stack, stream, **once), fitted(stack, stream, **once, scale={"2.weight": factor})
    for k, v in scaled.parameters.items():
        expected = (full.parameters[k] - stack.parameters[k]) * (factor if k == "2.weight" else 1)
        assert (v - stack.parameters[k] - expected).abs().max() < 1e-12


def test_passes_run_in_turn_and_may_have_an_optimiser_each():
    """Two passes with an optimiser each are the two alone, one after the other, as long as one epoch lasts."""
    stack = trained(seeds=SEEDS[:3])
    forget, retain = rows(stack.seeds)
    fast, slow = Optimiser(lr=0.1, momentum=0.9, batch_size=8), Optimiser(lr=0.01, optimiser="adam", batch_size=16)
    both = fitted(stack, Stream(forget), Stream(retain), optimiser=(fast, slow), epochs=1)
    first = fitted(stack, Stream(forget), optimiser=fast, epochs=1)
    # A first pass that never runs, so that the order of the second has the same key.
    second = fitted(first, Stream(forget, epochs=0), Stream(retain), optimiser=slow, epochs=1)
    assert same(both, second)


def test_streams_that_step_together_add_up_and_the_later_see_the_first():
    stack, calls = trained(seeds=SEEDS[:2], dtype=torch.float64), []
    forget, retain = rows(stack.seeds)

    def loss(batch):
        calls.append((batch.epoch, batch.first.rows.shape[1], batch.rows.shape[1]))
        return fit_labels(batch)

    step = Stream(retain, weight=0.5), Stream(forget, loss=loss, weight=-0.25, batch_size=10)
    after = fitted(stack, step, optimiser=Optimiser(lr=0.1, batch_size=16))
    assert calls == [(0, 16, 10), (0, 15, 3), (1, 16, 10), (1, 15, 3)]
    for m, seed in enumerate(stack.seeds):
        model = stack.extract(m)
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        keeping, losing = batches(retain, m, seed, "p/0.0", 16, 2), batches(forget, m, seed, "p/0.1", 10, 2)
        for keep, lose in zip(chain(*keeping), chain(*losing), strict=True):
            optimiser.zero_grad()
            losses = [nn.functional.cross_entropy(model(stack.x[i].double()), stack.labels[i]) for i in (keep, lose)]
            (0.5 * losses[0] - 0.25 * losses[1]).backward()
            optimiser.step()
        for name, value in model.state_dict().items():
            assert (after.parameters[name][m] - value).abs().max() < 1e-12


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


def test_masked_weights_stay_and_the_others_move_as_if_these_were_fixed():
    """A mask of whole layers is the same as to name what moves; weight decay moves nothing that is masked."""
    stack = trained(seeds=SEEDS[:3])
    stream, layers = Stream(rows(stack.seeds)[1]), ["4.weight", "4.bias"]
    mask = {k: torch.full(v.shape, k in layers) for k, v in stack.parameters.items()}
    masked = fitted(stack, stream, mask=mask)
    assert [k for k, v in masked.parameters.items() if not torch.equal(v, stack.parameters[k])] == layers
    assert same(masked, fitted(stack, stream, only=layers))
    mask["0.weight"][1] = True
    after = fitted(stack, stream, mask=mask)
    moved = [(after.parameters["0.weight"][m] != stack.parameters["0.weight"][m]).any() for m in range(3)]
    assert moved == [False, True, False]


def test_a_fit_ends_after_so_many_steps_of_all_passes_and_epochs():
    stack, heard = fresh(seeds=SEEDS[:2]), []
    forget, retain = rows(stack.seeds)

    def loss(batch):
        heard.append((batch.epoch, batch.rows.shape[1]))
        return fit_labels(batch)

    expected = [(epoch, size) for epoch in (0, 1) for size in (8, 5, 8, 8, 8, 7)]
    for steps in (0, 1, 2, 3, 9, None):
        heard.clear()
        after = fitted(stack, Stream(forget, loss=loss), Stream(retain, loss=loss), steps=steps)
        assert heard == expected[:steps]
        assert same(after, stack) == (steps == 0)


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


def test_a_step_is_recorded_if_any_of_its_streams_touched_a_recorded_sample():
    """The second stream reads all of it in one batch: every step of the first model is recorded, none of the other."""
    stack = fresh(seeds=SEEDS[:2], dtype=torch.float64)
    forget, retain = rows(stack.seeds)
    record = np.zeros_like(masks(stack.seeds)[1])
    record[0, forget.index[0, 0]] = True
    for streams in ((Stream(retain), Stream(forget, batch_size=13)), (Stream(forget, batch_size=13), Stream(retain))):
        after = stack.copy()
        updates = after.fit(streams, optimiser=SHORT, epochs=2, purpose="p", record=record)
        for k, v in after.parameters.items():
            assert (v[0] - stack.parameters[k][0] - updates[k][0]).abs().max() < 1e-12
            assert not updates[k][1].any()


def test_the_record_of_masked_steps_is_what_was_left_of_them():
    stack = fresh(seeds=SEEDS[:2], dtype=torch.float64)
    mask = {k: torch.full(v.shape, k == "4.bias") for k, v in stack.parameters.items()}
    after, record = stack.copy(), masks(stack.seeds)[1]
    updates = after.fit(Stream(rows(stack.seeds)[0]), optimiser=SHORT, epochs=1, purpose="p", record=record, mask=mask)
    assert [k for k, v in updates.items() if v.any()] == ["4.bias"]
    assert (after.parameters["4.bias"] - stack.parameters["4.bias"] - updates["4.bias"]).abs().max() < 1e-12


@pytest.mark.parametrize("build", [mlp, conv])
def test_the_record_of_all_steps_is_the_whole_way(build):
    stack = fresh(build, SEEDS[:3], dtype=torch.float64)
    start, everything = stack.copy(), np.logical_or(*masks(stack.seeds))
    way = stack.train(Rows.where(everything), record=everything)
    assert way is stack.updates
    for k, v in stack.parameters.items():
        assert (v - start.parameters[k] - way[k]).abs().max() < 1e-12


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
