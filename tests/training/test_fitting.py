"""The parts of a fit: what moves, in which order, by how much, and what is recorded of it."""

import numpy as np
import pytest
import torch
from torch import nn
from unlearning_audit.models import cnn
from unlearning_audit.training import lanes
from unlearning_audit.training.bank import Bank
from unlearning_audit.training.fitting import Fit
from unlearning_audit.training.optim import Optimiser
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.streams import Rows, Stream, fit_labels

from bank_cases import RECIPE, SEEDS, batches, conv, fresh, largest_gap, masks, mlp, rows, same, trained

SHORT = Recipe(lr=0.1, momentum=0.9, weight_decay=5e-4, batch_size=8, epochs=1)


def fitted(bank, *passes, **settings):
    copy = bank.copy()
    copy.fit(*passes, **{"optimiser": SHORT, "epochs": 2, "purpose": "p", **settings})
    return copy


def test_only_the_named_parameters_move():
    bank = trained(seeds=SEEDS[:3])
    after = fitted(bank, Stream(rows(bank.seeds)[1]), only=["2.bias"])
    assert [k for k, v in after.parameters.items() if not torch.equal(v, bank.parameters[k])] == ["2.bias"]


def test_an_l2_penalty_is_weight_decay():
    bank = trained(seeds=SEEDS[:3], dtype=torch.float64)
    stream, decay = Stream(rows(bank.seeds)[1]), 0.03

    def penalty(parameters, epoch):
        return decay / 2 * sum(v.flatten(1).square().sum(1) for v in parameters.values())

    plain = SHORT.model_copy(update={"weight_decay": 0.0})
    decayed = SHORT.model_copy(update={"weight_decay": decay})
    gap = largest_gap(fitted(bank, stream, optimiser=plain, penalty=penalty), fitted(bank, stream, optimiser=decayed))
    assert gap < 1e-12


def test_a_penalty_hears_the_epoch():
    heard = []
    bank = fresh(seeds=SEEDS[:2])
    fitted(bank, Stream(rows(bank.seeds)[1]), penalty=lambda p, epoch: heard.append(epoch) or 0.0)
    assert heard == [0] * 4 + [1] * 4


def test_a_loss_goes_to_each_epoch_before_its_first_step():
    """Of every stream of every pass, with the group's models and a place for what it draws."""
    bank = trained(seeds=SEEDS[:2])
    forget, retain = rows(bank.seeds)

    class Drawn:
        def begin(self, epoch, models, loss_state, device):
            assert (models, device) == ([0, 1], "cpu")
            loss_state[self] = epoch

        def __call__(self, batch):
            seen.append((batch.epoch, batch.loss_state[self]))
            return fit_labels(batch)

    seen = []
    fitted(bank, Stream(forget, loss=Drawn()), (Stream(retain), Stream(forget, loss=Drawn())), epochs=3)
    assert len(seen) == 3 * (2 + 4)
    assert {epoch for epoch, _ in seen} == {0, 1, 2}
    assert all(drawn == epoch for epoch, drawn in seen)


def test_scaled_gradients_move_that_much_less():
    bank = trained(seeds=SEEDS[:3], dtype=torch.float64)
    forget, _ = rows(bank.seeds)
    once = {"optimiser": Optimiser(lr=0.1, batch_size=99), "epochs": 1}
    factor = torch.rand(bank.parameters["2.weight"].shape, dtype=torch.float64)
    full, scaled = (
        fitted(bank, Stream(forget), **once),
        fitted(bank, Stream(forget), **once, scale={"2.weight": factor}),
    )
    for k, v in scaled.parameters.items():
        expected = (full.parameters[k] - bank.parameters[k]) * (factor if k == "2.weight" else 1)
        assert (v - bank.parameters[k] - expected).abs().max() < 1e-12


def test_passes_run_in_turn_and_may_have_an_optimiser_each():
    """Two passes with an optimiser each are the two alone, one after the other, as long as one epoch lasts."""
    bank = trained(seeds=SEEDS[:3])
    forget, retain = rows(bank.seeds)
    fast, slow = Optimiser(lr=0.1, momentum=0.9, batch_size=8), Optimiser(lr=0.01, optimiser="adam", batch_size=16)
    both = fitted(bank, Stream(forget), Stream(retain), optimiser=(fast, slow), epochs=1)
    first = fitted(bank, Stream(forget), optimiser=fast, epochs=1)
    # A first pass that never runs, so that the order of the second has the same key.
    second = fitted(first, Stream(forget, epochs=0), Stream(retain), optimiser=slow, epochs=1)
    assert same(both, second)


def test_streams_that_step_together_add_up_and_the_later_see_the_first():
    bank = trained(seeds=SEEDS[:2], dtype=torch.float64)
    forget, retain = rows(bank.seeds)
    calls = []

    def loss(batch):
        calls.append((batch.epoch, batch.first.rows.shape[1], batch.rows.shape[1]))
        return fit_labels(batch)

    after = fitted(
        bank, (Stream(retain, weight=0.5), Stream(forget, loss=loss, weight=-0.25, batch_size=10)),
        optimiser=Optimiser(lr=0.1, batch_size=16),
    )  # fmt: skip
    assert calls == [(0, 16, 10), (0, 15, 3), (1, 16, 10), (1, 15, 3)]
    for m, seed in enumerate(bank.seeds):
        model = bank.extract(m)
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        retain_batches = [b for p in batches(retain, m, seed, "p/0.0", 16, 2) for b in p]
        forget_batches = [b for p in batches(forget, m, seed, "p/0.1", 10, 2) for b in p]
        for keep, lose in zip(retain_batches, forget_batches, strict=True):
            optimiser.zero_grad()
            losses = [nn.functional.cross_entropy(model(bank.x[i].double()), bank.labels[i]) for i in (keep, lose)]
            (0.5 * losses[0] - 0.25 * losses[1]).backward()
            optimiser.step()
        for name, value in model.state_dict().items():
            assert (after.parameters[name][m] - value).abs().max() < 1e-12


@pytest.mark.parametrize("kind", ["none", "crop_flip"])
def test_every_batch_of_a_pass_is_augmented_as_its_optimiser_says(kind):
    bank = trained(conv, SEEDS[:2])
    forget, retain = rows(bank.seeds)
    augmented = Optimiser(lr=0.0, batch_size=5, augment=kind)
    read = []

    def loss(batch):
        shifted = not torch.equal(batch.x, bank.read(batch.models, batch.rows).x)
        read.append((bool((batch.rows[0, 0] == torch.from_numpy(forget.index[0])).any()), shifted))
        return fit_labels(batch)

    step = Stream(retain, loss=loss), Stream(forget, loss=loss)
    before = bank.logits()
    after = fitted(bank, step, Stream(retain, loss=loss), optimiser=(augmented, Optimiser(lr=0.0, batch_size=31)))
    pair = [(False, kind == "crop_flip"), (True, kind == "crop_flip")]
    assert read == 2 * (7 * pair + [(False, False)])
    after.buffers = bank.buffers
    assert np.array_equal(after.logits(), before)


def test_masked_weights_stay_and_the_others_move_as_if_these_were_fixed():
    """A mask of whole layers is the same as to name what moves; weight decay moves nothing that is masked."""
    bank = trained(seeds=SEEDS[:3])
    stream, layers = Stream(rows(bank.seeds)[1]), [k for k in bank.parameters if k.startswith("4")]
    mask = {k: torch.full(v.shape, k in layers) for k, v in bank.parameters.items()}
    assert same(fitted(bank, stream, mask=mask), fitted(bank, stream, only=layers))
    mask["0.weight"][1] = True
    after = fitted(bank, stream, mask=mask)
    moved = [(after.parameters["0.weight"][m] != bank.parameters["0.weight"][m]).any() for m in range(3)]
    assert moved == [False, True, False]


def test_a_fit_ends_after_so_many_steps_of_all_passes_and_epochs():
    bank = fresh(seeds=SEEDS[:2])
    forget, retain = rows(bank.seeds)
    heard = []

    def loss(batch):
        heard.append((batch.epoch, batch.rows.shape[1]))
        return fit_labels(batch)

    expected = [(0, 8), (0, 5), (0, 8), (0, 8), (0, 8), (0, 7), (1, 8), (1, 5), (1, 8)]
    for steps in (0, 1, 2, 3, 9):
        heard.clear()
        after = fitted(bank, Stream(forget, loss=loss), Stream(retain, loss=loss), steps=steps)
        assert heard == expected[:steps]
        assert same(after, bank) == (steps == 0)
    heard.clear()
    fitted(bank, Stream(forget, loss=loss), Stream(retain, loss=loss))
    assert len(heard) == 12


def test_class_weights_are_those_of_torch():
    """One step on three samples of one class and one of another: the weighted mean of torch's cross_entropy."""
    x, y = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32), np.array([0, 0, 0, 1, 2, 2])
    recipe = Recipe(lr=0.5, batch_size=4, epochs=1, class_weights="balanced")
    bank = Bank.create(mlp, x, y, [1, 2], recipe=recipe, dtype=torch.float64)
    before, rows = bank.copy(), Rows(np.array([[0, 1, 2, 3], [3, 4, 5, 0]]))
    bank.train(rows)
    for model, weight in enumerate(([1 / 3, 1.0, 0.0, 0.0], [1.0, 1.0, 1 / 2, 0.0])):
        plain, index = before.extract(model), rows.index[model]
        loss = nn.functional.cross_entropy(
            plain(torch.from_numpy(x[index]).double()), torch.from_numpy(y[index]),
            weight=torch.tensor(weight, dtype=torch.float64),
        )  # fmt: skip
        loss.backward()
        for name, value in plain.named_parameters():
            assert (bank.parameters[name][model] - (value - 0.5 * value.grad)).abs().max() < 1e-12


def test_the_rate_follows_the_schedule_of_the_optimiser():
    """A rate of nothing from the second epoch on leaves what the first has made."""
    bank = trained(seeds=SEEDS[:2])
    stream = Stream(rows(bank.seeds)[1])
    ends = Optimiser(lr=0.1, batch_size=8, schedule="multistep", milestones=[1], lr_decay=1e-30)
    assert same(fitted(bank, stream, optimiser=ends), fitted(bank, stream, optimiser=ends, epochs=1))
    assert not same(fitted(bank, stream, optimiser=ends), bank)


# ---------------------------------------------------------------- records


def test_a_step_is_recorded_if_any_of_its_streams_touched_a_recorded_sample():
    """The second stream reads all of it in one batch: every step of the first model is recorded, none of the other."""
    bank = fresh(seeds=SEEDS[:2], dtype=torch.float64)
    forget, retain = rows(bank.seeds)
    record = np.zeros_like(masks(bank.seeds)[1])
    record[0, forget.index[0, 0]] = True
    for streams in ((Stream(retain), Stream(forget, batch_size=13)), (Stream(forget, batch_size=13), Stream(retain))):
        after = bank.copy()
        updates = after.fit(streams, optimiser=SHORT, epochs=2, purpose="p", record=record)
        for k, v in after.parameters.items():
            assert (v[0] - bank.parameters[k][0] - updates[k][0]).abs().max() < 1e-12
            assert not updates[k][1].any()


def test_the_record_of_masked_steps_is_what_was_left_of_them():
    bank = fresh(seeds=SEEDS[:2], dtype=torch.float64)
    stream, record = Stream(rows(bank.seeds)[0]), masks(bank.seeds)[1]
    mask = {k: torch.full(v.shape, k == "4.bias") for k, v in bank.parameters.items()}
    after = bank.copy()
    updates = after.fit(stream, optimiser=SHORT, epochs=1, purpose="p", record=record, mask=mask)
    assert [k for k, v in updates.items() if v.any()] == ["4.bias"]
    assert (after.parameters["4.bias"] - bank.parameters["4.bias"] - updates["4.bias"]).abs().max() < 1e-12


@pytest.mark.parametrize("build", [mlp, conv])
def test_the_record_of_all_steps_is_the_whole_way(build):
    bank = fresh(build, SEEDS[:3], dtype=torch.float64)
    start = bank.copy()
    retain, forget = masks(bank.seeds)
    way = bank.train(Rows.where(retain | forget), record=retain | forget)
    assert way is bank.updates
    for k, v in bank.parameters.items():
        assert (v - start.parameters[k] - way[k]).abs().max() < 1e-12


def test_the_record_holds_the_steps_that_touched_a_recorded_sample():
    bank = fresh(seeds=SEEDS[:3], dtype=torch.float64)
    retain, forget = masks(bank.seeds)
    record = np.zeros_like(forget)
    for m in range(2):  # two samples of the first two models; the third model has nothing to record
        record[m, np.nonzero(forget[m])[0][:2]] = True
    all_rows = Rows.where(retain | forget)
    models = [bank.extract(m) for m in range(3)]
    updates = bank.train(all_rows, record=record)
    for m, model in enumerate(models):
        optimiser = torch.optim.SGD(model.parameters(), RECIPE.lr, momentum=0.9, weight_decay=5e-4)
        expected = {k: torch.zeros_like(v) for k, v in model.named_parameters()}
        touched = 0
        for index in (b for p in batches(all_rows, m, bank.seeds[m], "train/0.0", 8, 3) for b in p):
            before = {k: v.detach().clone() for k, v in model.named_parameters()}
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(bank.x[index].double()), bank.labels[index]).backward()
            optimiser.step()
            if record[m, index].any():
                touched += 1
                for k, v in model.named_parameters():
                    expected[k] += v.detach() - before[k]
        assert (touched == 0) == (m == 2)
        assert touched <= 6
        assert all((updates[k][m] - v).abs().max() < 1e-12 for k, v in expected.items())


@pytest.mark.parametrize("run", [Fit.run, lanes.run])
def test_a_last_batch_of_one_sample_that_cannot_be_normalised_is_said(monkeypatch, run):
    monkeypatch.setattr(Fit, "run", run)
    x, y = np.random.default_rng(0).random((17, 1, 8, 8), np.float32), np.arange(17) % 2
    options = cnn.Options(channels=(4, 4, 4), mean=(0.0,), std=(1.0,))
    bank = Bank.create(lambda: cnn.build(options, (1, 8, 8), 2), x, y, [1], recipe=Recipe(epochs=1, batch_size=16))
    with pytest.raises(ValueError, match=r"^batch_size: 17 rows in batches of 16 make a batch of one sample"):
        bank.train(Rows(np.arange(17)[None]))
    bank.train(Rows(np.arange(16)[None]))
