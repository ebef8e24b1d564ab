"""The bank: training and reading in any company, editing, and teachers."""

import numpy as np
import pytest
import torch
from torch import nn
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.streams import Order, Rows, Stream

from bank_cases import (
    CLASSES,
    RECIPE,
    SEEDS,
    conv,
    fresh,
    largest_gap,
    masks,
    mlp,
    part,
    rows,
    same,
    samples,
    state,
    tanh,
    trained,
    unlearned,
)

SHORT = Recipe(lr=0.1, momentum=0.9, weight_decay=5e-4, batch_size=8, epochs=1)


@pytest.mark.parametrize(
    ("build", "optimiser"),
    [(mlp, "sgd"), (mlp, "adam"), (mlp, "adamw"), (mlp, "rmsprop"), (tanh, "sgd"), (conv, "sgd")],
)
def test_a_model_trains_the_same_in_any_company(build, optimiser):
    recipe = RECIPE.model_copy(update={"optimiser": optimiser, "lr": 0.01})
    whole = trained(build, recipe=recipe)
    for models in ([5, 2], [2, 7, 0], [6], list(range(7, -1, -1))):
        alone = trained(build, [SEEDS[m] for m in models], recipe=recipe)
        assert same(alone, whole, slots_b=models), models
        assert np.array_equal(alone.logits(), whole.logits()[models]), models
        _, forget = masks(alone.seeds)
        norms = alone.squared_norms(Rows.where(forget))
        assert torch.equal(norms, whole.squared_norms(Rows.where(masks(SEEDS)[1]))[models]), models


@pytest.mark.parametrize(("build", "augment"), [(mlp, "none"), (conv, "none"), (conv, "crop_flip")])
def test_training_is_the_plain_loop(build, augment):
    """Against torch.optim and an nn.Module, one model at a time, on the batches that the streams announce."""
    recipe = SHORT.model_copy(update={"augment": augment})
    for backend in ("stacked", "serial"):
        bank = fresh(build, SEEDS[:3], dtype=torch.float64, backend=backend, recipe=recipe)
        start = bank.copy()
        _, retain = rows(bank.seeds)
        bank.train(retain)
        for m, seed in enumerate(bank.seeds):
            model = start.extract(m).train()
            optimiser = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)
            order = Order(retain[[m]], [seed], "train/0.0", 8, jitter=augment == "crop_flip")
            for _, (index, jitter) in zip(range(order.steps), order, strict=False):
                batch = start.read([m], index, jitter)
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(batch.x[0]), batch.labels[0]).backward()
                optimiser.step()
            for name, value in model.state_dict().items():
                assert (state(bank)[name][m].double() - value.double()).abs().max() < 1e-12, name


def test_images_are_scaled_and_floats_take_the_bank_s_precision():
    bank = fresh(conv, SEEDS[:2], dtype=torch.float64)
    batch = bank.read([0, 1], torch.tensor([[3, 4], [5, 3]]))
    assert batch.x.dtype == torch.float64
    assert torch.equal(batch.x[1, 0], torch.from_numpy(samples(conv)[0][5] / 255))
    assert fresh(mlp, SEEDS[:2], dtype=torch.float64).read([0], torch.tensor([[3]])).x.dtype == torch.float64


@pytest.mark.parametrize("build", [mlp, conv])
def test_logits_are_those_of_the_module_in_evaluation_mode(build):
    bank = trained(build, SEEDS[:3])
    index = np.array([7, 3, 50])
    x = samples(build)[0][index]
    x = torch.from_numpy(x / 255 if x.dtype == np.uint8 else x).float()
    logits = bank.logits(index, chunk=2)
    assert logits.shape == (3, 3, 4)
    assert logits.dtype == np.float32
    for m in range(3):
        with torch.no_grad():
            assert np.abs(logits[m] - bank.extract(m).eval()(x).numpy()).max() < 1e-5
    assert np.abs(bank.logits()[:, index] - logits).max() < 1e-5


def test_batch_norm_statistics_move_in_training_and_only_there():
    bank = trained(conv, SEEDS[:3])
    assert bank.buffers["1.num_batches_tracked"].tolist() == [3 * 6] * 3
    still = bank.copy()
    _, retain = rows(bank.seeds)
    still.fit(Stream(retain), optimiser=SHORT, epochs=1, purpose="p", training=False)
    assert all(torch.equal(v, bank.buffers[k]) for k, v in still.buffers.items())
    assert not torch.equal(still.parameters["0.weight"], bank.parameters["0.weight"])


def test_a_new_head_comes_from_the_model_s_own_seed():
    bank = trained(seeds=SEEDS[:3])
    assert bank.head == ["4.weight", "4.bias"]
    after, again = bank.copy(), part(bank, [2, 0])
    after.reset_head("p")
    again.reset_head("p")
    assert all(torch.equal(again.parameters[k], after.parameters[k][[2, 0]]) for k in bank.parameters)
    changed = [k for k, v in after.parameters.items() if not torch.equal(v, bank.parameters[k])]
    assert changed == bank.head
    assert not torch.equal(after.parameters["4.weight"][0], after.parameters["4.weight"][1])
    second = bank.copy()
    second.reset_head("q")
    assert not torch.equal(second.parameters["4.weight"], after.parameters["4.weight"])


def test_noise_is_normal_and_keyed():
    bank = fresh(seeds=SEEDS[:3])
    noise = bank.noise("p")
    flat = torch.cat([v.flatten() for v in noise.values()])
    assert abs(float(flat.mean())) < 4 / len(flat) ** 0.5
    assert abs(float(flat.std()) - 1) < 4 / (2 * len(flat)) ** 0.5
    assert all(torch.equal(v, noise[k][[2, 0]]) for k, v in part(bank, [2, 0]).noise("p").items())
    assert not torch.equal(bank.noise("q")["0.weight"], noise["0.weight"])


@pytest.mark.parametrize("backend", ["stacked", "serial"])
def test_a_teacher_stays_what_the_bank_was(backend):
    bank = trained(conv, SEEDS[:3], backend=backend)
    teacher, before = bank.frozen(), bank.logits()
    bank.fit(Stream(rows(bank.seeds)[1]), optimiser=SHORT, epochs=1, purpose="p")
    for group in bank.engine.groups(3):
        index = torch.tensor([[1, 2, 3]] * len(group))
        answer = teacher(bank.read(group, index))
        assert not answer.requires_grad
        assert np.abs(answer.numpy() - before[group][:, 1:4]).max() < 1e-5
    assert np.abs(bank.logits() - before).max() > 1e-3


def test_a_model_can_be_taken_out_and_put_back():
    bank = trained(conv, SEEDS[:3])
    before = bank.copy()
    module = bank.extract(1)
    with torch.no_grad():
        for value in module.state_dict().values():
            value.add_(1)
    assert same(bank, before)
    bank.insert(1, module)
    assert same(bank, before, slots_a=[0, 2], slots_b=[0, 2])
    assert all(
        torch.equal(v[1], before_v[1] + 1)
        for v, before_v in zip(state(bank).values(), state(before).values(), strict=True)
    )
    with pytest.raises(ValueError, match=r"tensor '0\.weight' is new, missing or of another shape"):
        bank.insert(1, mlp())


class Tied(nn.Module):
    """Two layers with one weight, 6-6-6-4."""

    head = "last"

    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, CLASSES)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.last(torch.tanh(self.second(torch.tanh(self.first(x)))))


@pytest.mark.parametrize("backend", ["serial", "stacked"])
def test_what_two_layers_share_is_one_tensor(backend, tmp_path):
    bank = fresh(Tied, SEEDS[:2], backend=backend, dtype=torch.float64, recipe=SHORT)
    assert set(bank.parameters) == {"first.weight", "first.bias", "second.bias", "last.weight", "last.bias"}
    assert not bank.buffers
    start, (_, retain) = bank.copy(), rows(bank.seeds)
    bank.train(retain)
    for m, seed in enumerate(bank.seeds):
        model = start.extract(m)
        optimiser = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)
        order = Order(retain[[m]], [seed], "train/0.0", 8)
        for _, (index, _) in zip(range(order.steps), order, strict=False):
            batch = start.read([m], index)
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(batch.x[0]), batch.labels[0]).backward()
            optimiser.step()
        start.insert(m, model)
    assert largest_gap(bank, start) < 1e-12
    assert np.array_equal(bank.logits()[1], bank.extract(1)(bank.scaled(bank.x)).detach().float().numpy())
    assert not same(unlearned(bank, "classic"), bank)
    bank.write(tmp_path / "models.safetensors")
    start.load(tmp_path / "models.safetensors")
    assert same(start, bank)
    module = bank.extract(0)
    module.second.weight = nn.Parameter(2 * module.first.weight)
    with pytest.raises(ValueError, match=r"'first\.weight' and 'second\.weight' are one tensor of the model"):
        bank.insert(0, module)


def test_half_precision_multiplies_in_half_and_keeps_the_rest():
    single, half = (
        fresh(conv, backend="serial", recipe=RECIPE.model_copy(update={"precision": kind, "epochs": 1}))
        for kind in ("float32", "bfloat16")
    )
    x = single.scaled(single.x[None, :7])
    first = [{k: v[:1] for k, v in s.items()} for s in (single.parameters, single.buffers)]
    full, low = single.forward(*first, x), half.forward(*first, x)
    gap = (full - low).norm() / full.norm()
    assert low.dtype == torch.float32
    assert 1e-5 < gap < 2e-2
    half.train(rows(half.seeds)[1])
    assert {v.dtype for v in half.parameters.values()} == {torch.float32}
