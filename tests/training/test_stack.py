"""The stack: training and reading in any company, editing, and teachers."""

import numpy as np
import pytest
import torch
from torch import nn
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.streams import Rows, Stream

import stack_cases as cases
from slow_cases import slow
from stack_cases import CLASSES, RECIPE, SEEDS, conv, fresh, masks, mlp, part, rows, same, state, tanh, trained

SHORT = Recipe(lr=0.1, momentum=0.9, weight_decay=5e-4, batch_size=8, epochs=1)


@pytest.mark.parametrize(
    ("build", "optimiser"),
    [(mlp, "adamw"), (tanh, "sgd"), (conv, "sgd"), *slow((mlp, "sgd"), (mlp, "adam"), (mlp, "rmsprop"))],
)
def test_a_model_trains_the_same_in_any_company(build, optimiser):
    recipe = RECIPE.model_copy(update={"optimiser": optimiser, "lr": 0.01})
    whole = trained(build, recipe=recipe)
    for models in ([5, 2], [2, 7, 0], [6], list(range(7, -1, -1))):
        alone = trained(build, [SEEDS[m] for m in models], recipe=recipe)
        assert same(alone, whole, slots_b=models), models
        assert np.array_equal(alone.logits(), whole.logits()[models]), models
        norms = alone.squared_norms(Rows.where(masks(alone.seeds)[1]))
        assert torch.equal(norms, whole.squared_norms(Rows.where(masks(SEEDS)[1]))[models]), models


class Tied(nn.Module):
    """Two layers with one weight, 6-6-6-4."""

    head = "last"

    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, CLASSES)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.last(torch.tanh(self.second(torch.tanh(self.first(x)))))


@pytest.mark.parametrize("backend", ["stacked", "serial"])
@pytest.mark.parametrize(("build", "augment"), [(mlp, "none"), (conv, "none"), (conv, "crop_flip"), (Tied, "none")])
def test_training_is_the_plain_loop(build, augment, backend):
    recipe = SHORT.model_copy(update={"augment": augment})
    stack = fresh(build, SEEDS[:3], dtype=torch.float64, backend=backend, recipe=recipe)
    start, (_, retain) = stack.copy(), rows(stack.seeds)
    stack.train(retain)
    for m in range(3):
        after = cases.plain_training(start, m, retain).state_dict()
        for name, value in state(stack).items():
            assert (after[name].double() - value[m].double()).abs().max() < 1e-12, name


@pytest.mark.parametrize("build", [mlp, conv])
def test_logits_are_those_of_the_module_in_evaluation_mode(build):
    stack = trained(build, SEEDS[:3])
    index = np.array([7, 3, 50])
    x = cases.samples(build)[0][index]
    x = torch.from_numpy(x / 255 if x.dtype == np.uint8 else x).float()
    logits = stack.logits(index, chunk=2)
    assert (logits.shape, logits.dtype) == ((3, 3, 4), np.float32)
    for m in range(3):
        with torch.no_grad():
            assert np.abs(logits[m] - stack.extract(m).eval()(x).numpy()).max() < 1e-5
    assert np.abs(stack.logits()[:, index] - logits).max() < 1e-5


def test_noise_is_normal_and_keyed():
    stack = fresh(seeds=SEEDS[:3])
    noise = stack.noise("p")
    flat = torch.cat([v.flatten() for v in noise.values()])
    assert abs(float(flat.mean())) < 4 / len(flat) ** 0.5
    assert abs(float(flat.std()) - 1) < 4 / (2 * len(flat)) ** 0.5
    assert all(torch.equal(v, noise[k][[2, 0]]) for k, v in part(stack, [2, 0]).noise("p").items())
    assert not torch.equal(stack.noise("q")["0.weight"], noise["0.weight"])


@pytest.mark.parametrize("backend", ["stacked", "serial"])
def test_a_teacher_stays_what_the_stack_was(backend):
    stack = trained(conv, SEEDS[:3], backend=backend)
    teacher, before = stack.frozen(), stack.logits()
    stack.fit(Stream(rows(stack.seeds)[1]), optimiser=SHORT, epochs=1, purpose="p")
    for group in stack.engine.groups(3):
        answer = teacher(stack.read(group, torch.tensor([[1, 2, 3]] * len(group))))
        assert not answer.requires_grad
        assert np.abs(answer.numpy() - before[group][:, 1:4]).max() < 1e-5
    assert np.abs(stack.logits() - before).max() > 1e-3


def test_a_model_can_be_taken_out_and_put_back():
    stack = trained(conv, SEEDS[:3])
    before = stack.copy()
    module = stack.extract(1)
    with torch.no_grad():
        for value in module.state_dict().values():
            value.add_(1)
    assert same(stack, before)
    stack.insert(1, module)
    for k, v in state(stack).items():
        assert torch.equal(v, state(before)[k] + torch.tensor([0, 1, 0]).view(-1, *[1] * (v.ndim - 1))), k
    with pytest.raises(ValueError, match=r"tensor '0\.weight' has shape \(9, 6\), expected \(5, 2, 3, 3\)"):
        stack.insert(1, mlp())


@pytest.mark.parametrize("backend", ["serial", "stacked"])
def test_what_two_layers_share_is_one_tensor(backend, tmp_path):
    stack = fresh(Tied, SEEDS[:2], backend=backend, dtype=torch.float64)
    start = stack.copy()
    assert set(state(stack)) == {"first.weight", "first.bias", "second.bias", "last.weight", "last.bias"}
    stack.train(rows(stack.seeds)[1])
    assert np.array_equal(stack.logits()[1], stack.extract(1)(stack.scaled(stack.x)).detach().float().numpy())
    assert not same(cases.unlearned(stack, "classic"), stack)
    stack.write(tmp_path / "models.safetensors")
    start.load(tmp_path / "models.safetensors")
    assert same(start, stack)
    module = stack.extract(0)
    module.second.weight = nn.Parameter(2 * module.first.weight)
    with pytest.raises(ValueError, match=r"'first\.weight' and 'second\.weight' are one tensor of the model"):
        stack.insert(0, module)


def test_half_precision_multiplies_in_half_and_keeps_the_rest():
    single, half = (
        fresh(conv, backend="serial", recipe=RECIPE.model_copy(update={"precision": kind, "epochs": 1}))
        for kind in ("float32", "bfloat16")
    )
    x = single.scaled(single.x[None, :7])
    first = [{k: v[:1] for k, v in s.items()} for s in (single.parameters, single.buffers)]
    full, low = single.forward(*first, x), half.forward(*first, x)
    assert low.dtype == torch.float32
    assert 1e-5 < (full - low).norm() / full.norm() < 2e-2
    half.train(rows(half.seeds)[1])
    assert {v.dtype for v in half.parameters.values()} == {torch.float32}
