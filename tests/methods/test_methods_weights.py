"""Methods that edit weights without training: Fisher forgetting, SSD, amnesiac unlearning."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from unlearning_audit.methods import fisher
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.training.bank import Bank
from unlearning_audit.training.streams import Rows

from bank_cases import SEEDS, conv, fresh, masks, mlp, rows, same, trained, unlearned

torch.set_num_threads(1)


# ---------------------------------------------------------------- Fisher forgetting


def two_layers():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model.head = "1"
    return model


def by_hand() -> tuple[Bank, Rows]:
    """First layer 0, second W = [[1, 0], [0, 3]]: every answer is (½, ½). Samples (2, 0) of class 0, (0, 1) of 1.

    With e the one-hot label, ∂CE/∂logits = ½ − e, ∂CE/∂hidden = Wᵀ(½ − e) = (∓½, ±3/2), and hidden = 0.
    """
    x, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([0, 1])
    bank = Bank.create(two_layers, x, y, [1, 2], dtype=torch.float64)
    for value in bank.parameters.values():
        value.zero_()
    bank.parameters["1.weight"][:] = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
    return bank, Rows(np.array([[0, 1], [0, 1]]))


def test_golatkar_by_hand():
    """Mean over both samples of Σ_y p(y)·g²: for the first layer's weights (¼, 9/4)ᵀ·mean(x²) = (¼, 9/4)ᵀ·(2, ½)."""
    bank, retain = by_hand()
    alpha = 1e-5
    std = fisher.spread(bank, retain, fisher.Options(variant="golatkar", alpha=alpha))

    def inverse(information):
        return min(1 / (information + 1e-8), 1e3)

    rows_ = [(inverse(0.5) + inverse(0.125)) / 2, (inverse(4.5) + inverse(1.125)) / 2]
    expected = {
        "0.weight": [[rows_[0]] * 2, [rows_[1]] * 2],
        "0.bias": [10 * inverse(0.25), 10 * inverse(2.25)],
        "1.weight": [[10 * 1e2] * 2] * 2,  # the hidden units are 0: no information, the bound of the last layer
        "1.bias": [10 * inverse(0.25)] * 2,
    }
    for name, variance in expected.items():
        for m in range(2):
            assert np.abs(std[name][m].numpy() ** 2 - alpha * np.array(variance)).max() < 1e-12, name


def forgotten_whole(**options) -> tuple[Bank, Bank]:
    """Two models before and after Fisher forgetting: the first forgets all of class 1, the second half of it."""
    x, y = np.eye(4)[[0, 1, 2, 3]], np.array([0, 1, 1, 0])
    before = Bank.create(lambda: headed(nn.Linear(4, 2)), x, y, [1, 2], dtype=torch.float64)
    after = before.copy()
    forget, retain = Rows(np.array([[1, 2], [1, 0]])), Rows(np.array([[0, 3], [2, 3]]))
    fisher.unlearn(after, forget, retain, fisher.Options(alpha=0.0, **options))
    return before, after


def headed(layer: nn.Linear) -> nn.Sequential:
    model = nn.Sequential(layer)
    model.head = "0"
    return model


def test_a_class_that_is_forgotten_whole_loses_its_row_of_the_last_layer_to_noise():
    """The notebook of Golatkar et al. 2020: mean 0 and variance 10 · 1e-4 there, whatever α; all else as it was."""
    before, after = forgotten_whole()
    noise = before.noise("fisher")
    for name, value in after.parameters.items():
        assert torch.equal(value[0][1], math.sqrt(1e-3) * noise[name][0][1])
        assert torch.equal(value[0][0], before.parameters[name][0][0])
        assert torch.equal(value[1], before.parameters[name][1]), "the second model keeps a sample of the class"


def test_becker_by_hand():
    """Σ over samples of (g + 1e-7)² at the observed label: first weights ½·(2, 0) and ½·(0, 1), times 1 or 3."""
    bank, retain = by_hand()
    alpha = 3e-6
    std = fisher.spread(bank, retain, fisher.Options(variant="becker", alpha=alpha))

    def bounded(*gradients):
        return min(math.sqrt(alpha / sum((g + 1e-7) ** 2 for g in gradients)), 1e-3)

    expected = {
        "0.weight": [[bounded(-1, 0), bounded(0, 0.5)], [bounded(3, 0), bounded(0, -1.5)]],
        "0.bias": [bounded(-0.5, 0.5), bounded(1.5, -1.5)],
        "1.weight": [[1e-3] * 2] * 2,
        "1.bias": [10 * bounded(-0.5, 0.5)] * 2,
    }
    assert expected["0.weight"][1][0] < 6e-4
    for name, spread in expected.items():
        for m in range(2):
            assert np.abs(std[name][m].numpy() / np.array(spread) - 1).max() < 1e-9, name


@pytest.mark.parametrize("variant", ["golatkar", "becker"])
@pytest.mark.parametrize("build", [mlp, conv])
def test_noise_has_this_spread_and_is_each_model_s_own(build, variant):
    bank = trained(build, SEEDS[:3], dtype=torch.float64)
    _, retain = rows(bank.seeds)
    std = fisher.spread(bank, retain, fisher.Options(variant=variant, alpha=1e-4))
    after = unlearned(bank, "fisher", variant=variant, alpha=1e-4)
    noise = bank.noise("fisher")
    for k, v in after.parameters.items():
        assert (v - bank.parameters[k] - std[k] * noise[k]).abs().max() < 1e-12
        assert std[k].shape == v.shape
    assert all(torch.equal(v, bank.buffers[k]) for k, v in after.buffers.items())
    assert same(unlearned(bank, "fisher", alpha=0), bank)


def test_convolutions_are_averaged_over_their_inputs():
    bank = trained(conv, SEEDS[:2], dtype=torch.float64)
    _, retain = rows(bank.seeds)
    information = bank.squared_gradients(retain, labels="model")["0.weight"]
    std = fisher.spread(bank, retain, fisher.Options(alpha=1e-4))["0.weight"]
    variance = (1e-4 / (information + 1e-8)).clamp(max=1e-1).mean(2, keepdim=True).expand_as(std)
    assert (std**2 - variance).abs().max() < 1e-12
    assert (information[:, :, 0] != information[:, :, 1]).all()


# ---------------------------------------------------------------- SSD


@pytest.mark.parametrize("per_sample", [True, False])
def test_ssd_by_a_plain_loop(per_sample):
    bank = trained(seeds=SEEDS[:3], dtype=torch.float64)
    forget, retain = rows(bank.seeds)
    after = unlearned(bank, "ssd", a=1.2, lam=0.9, per_sample=per_sample, batch_size=8)
    dampened = 0
    for m, seed in enumerate(bank.seeds):
        importance = []
        for samples, key in ((retain + forget, "ssd/all"), (forget, "ssd/forget")):
            order = generator(seed, key).permutation(len(samples))
            size = 1 if per_sample else 8
            parts = [samples.index[m][order[i : i + size]] for i in range(0, len(order), size)]
            total = dict.fromkeys(bank.parameters, 0)
            for index in parts:
                model = bank.extract(m)
                nn.functional.cross_entropy(model(bank.x[index].double()), bank.labels[index]).backward()
                total = {k: total[k] + v.grad**2 / len(parts) for k, v in model.named_parameters()}
            importance.append(total)
        for k, v in bank.parameters.items():
            overall, lost = importance[0][k], importance[1][k]
            factor = torch.where(lost > 1.2 * overall, (0.9 * overall / lost).clamp(max=1), 1.0)
            dampened += int((factor < 1).sum())
            assert (after.parameters[k][m] - factor * v[m]).abs().max() < 1e-12
    assert dampened > 20


@pytest.mark.parametrize("size", [1, 8])
def test_lfssd_by_a_plain_loop(size):
    """Foster et al. 2024b: |∂ mean ‖logits‖²/∂θ| of each batch in the place of squared gradients of the loss."""
    bank = trained(seeds=SEEDS[:2], dtype=torch.float64)
    forget, retain = rows(bank.seeds)
    after = unlearned(bank, "lfssd", a=1.02, lam=0.9, batch_size=size)
    dampened = 0
    for m, seed in enumerate(bank.seeds):
        importance = []
        for samples, key in ((retain + forget, "ssd/all"), (forget, "ssd/forget")):
            index = samples.index[m][generator(seed, key).permutation(len(samples))]
            parts = [index[i : i + size] for i in range(0, len(index), size)]
            total = dict.fromkeys(bank.parameters, 0)
            for part in parts:
                model = bank.extract(m)
                (model(bank.x[part].double()) ** 2).sum(1).mean().backward()
                total = {k: total[k] + v.grad.abs() / len(parts) for k, v in model.named_parameters()}
            importance.append(total)
        for k, v in bank.parameters.items():
            overall, lost = importance[0][k], importance[1][k]
            factor = torch.where(lost > 1.02 * overall, (0.9 * overall / lost).clamp(max=1), 1.0)
            dampened += int((factor < 1).sum())
            assert (after.parameters[k][m] - factor * v[m]).abs().max() < 1e-12
    assert dampened > 20


def test_lfssd_reads_no_labels():
    bank = trained(seeds=SEEDS[:2])
    second = bank.copy()
    second.labels = (bank.labels + 1) % 4
    assert same(unlearned(bank, "lfssd"), unlearned(second, "lfssd"))
    assert not same(unlearned(bank, "ssd", a=1.2), unlearned(second, "ssd", a=1.2))


def test_ssd_is_the_identity_where_its_formula_says_so():
    bank = trained(seeds=SEEDS[:3])
    forget, retain = rows(bank.seeds)
    assert not same(unlearned(bank, "ssd", a=0.5), bank)
    assert same(unlearned(bank, "ssd", a=0.5, lam=math.inf), bank)
    assert same(unlearned(bank, "ssd", a=1e9), bank)
    nothing = Rows(np.empty((3, 0), np.int64))
    # Forgetting everything: importances agree, so nothing matters more to forget than to all.
    for a in (1.001, 10):
        assert same(unlearned(bank, "ssd", forget=retain + forget, retain=nothing, a=a), bank)


def test_ssd_with_lambda_0_clears_what_it_selects():
    bank = trained(seeds=SEEDS[:3])
    after = unlearned(bank, "ssd", a=1.2, lam=0)
    changed = torch.cat([(v != bank.parameters[k]).flatten() for k, v in after.parameters.items()])
    values = torch.cat([v.flatten() for v in after.parameters.values()])
    assert 0 < changed.sum() < len(changed) / 2
    assert (values[changed] == 0).all()


# ---------------------------------------------------------------- amnesiac unlearning


@pytest.mark.parametrize("build", [mlp, conv])
def test_amnesiac_of_everything_is_the_start_and_of_nothing_the_end(build):
    bank = fresh(build, SEEDS[:3])
    start = bank.copy()
    retain, forget = masks(bank.seeds)
    all_rows = Rows.where(retain | forget)
    bank.train(all_rows, record=retain | forget)
    undone = unlearned(bank, "amnesiac", repair_epochs=0)
    for k, v in undone.parameters.items():
        assert (v - start.parameters[k]).abs().max() < 1e-6
    assert all(torch.equal(v, bank.buffers[k]) for k, v in undone.buffers.items())
    untouched = fresh(build, SEEDS[:3])
    untouched.train(all_rows, record=np.zeros_like(forget))
    assert same(unlearned(untouched, "amnesiac", repair_epochs=0), untouched)
    assert same(untouched, bank)


def test_amnesiac_without_a_record_says_what_to_set():
    bank = trained(seeds=SEEDS[:2])
    bank.updates = None
    with pytest.raises(ValueError, match=r"set recipe\.record_updates to true and train again"):
        unlearned(bank, "amnesiac")
