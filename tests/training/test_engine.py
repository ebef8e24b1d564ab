"""Stacked linear layers: right, and blind to a model's place in the stack."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn
from unlearning_audit.training.bank import Bank
from unlearning_audit.training.engine import Serial, Stacked, StackedChain, choose, linear_layers
from unlearning_audit.training.streams import Rows, Stream

from bank_cases import CLASSES, RECIPE, largest_gap, samples

torch.set_num_threads(1)
#: (models, batch, in, out): odd sizes, whose models do not start at a multiple of 64 bytes by themselves.
SHAPES = [
    (16, 13, 9, 10),
    (13, 5, 33, 9),
    (8, 61, 10, 3),
    (5, 3, 6, 128),
    (15, 2, 9, 100),
    (6, 64, 5, 5),
    (9, 64, 64, 10),
]


def operands(models, batch, inputs, outputs, bias=True, dtype=torch.float32):
    rng = torch.Generator().manual_seed(0)
    shapes = [(models, batch, inputs), (models, outputs, inputs), (models, outputs)][: 2 + bias]
    return [torch.randn(s, generator=rng, dtype=dtype).requires_grad_() for s in shapes]


def everything(tensors):
    """Output and all gradients of a stacked linear layer, weighted by something that is not constant."""
    x, weight, *bias = tensors
    out = StackedChain.apply(x, ("linear",), weight, bias[0] if bias else None)
    total = (out * torch.linspace(-1, 1, out[0].numel(), dtype=out.dtype).view(out.shape[1:])).sum()
    return [out.detach(), *torch.autograd.grad(total, tensors)]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_linear_is_what_autograd_says(shape, bias):
    tensors = operands(*shape, bias=bias, dtype=torch.float64)
    x, weight, *rest = tensors
    plain = torch.stack([nn.functional.linear(x[m], weight[m], rest[0][m] if rest else None) for m in range(shape[0])])
    total = (plain * torch.linspace(-1, 1, plain[0].numel(), dtype=torch.float64).view(plain.shape[1:])).sum()
    for actual, expected in zip(everything(tensors), [plain, *torch.autograd.grad(total, tensors)], strict=True):
        assert (actual - expected).abs().max() < 1e-12


@pytest.mark.parametrize("shape", SHAPES)
def test_linear_does_not_depend_on_slot_or_neighbours(shape):
    models = shape[0]
    tensors = operands(*shape)
    whole = everything(tensors)
    for slots in ([models - 1, 2], [2, models - 1, 0], [3], list(range(models - 1, -1, -1))):
        part = everything([t.detach()[slots].clone().requires_grad_() for t in tensors])
        assert all(torch.equal(p, w[slots]) for p, w in zip(part, whole, strict=True)), slots


def test_groups_cover_every_model_and_no_model_is_alone():
    engine = Stacked(nn.Linear(2, 2), width=4)
    assert engine.groups(9) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 8]]
    assert Serial(nn.Linear(2, 2)).groups(3) == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("model", "chain"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), True),
        (nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2, bias=False)), True),
        (nn.Sequential(nn.Flatten(2), nn.Linear(4, 3)), False),
        (nn.Sequential(nn.Linear(4, 3), nn.Sigmoid()), False),
        (nn.Sequential(nn.Linear(4, 3), nn.Sequential(nn.Linear(3, 2))), False),
        (nn.Linear(4, 3), False),
    ],
)
def test_chains_of_linear_layers_are_recognised(model, chain):
    assert (linear_layers(model) is not None) == chain


class Squared(nn.Sequential):
    """A chain by its layers, whose forward is another."""

    def forward(self, x):
        return super().forward(x * x)


class Plain(nn.Sequential):
    """A chain with a name of its own."""


def shared():
    act = nn.ReLU()
    return nn.Sequential(nn.Linear(6, 8), act, nn.Linear(8, 8), act, nn.Linear(8, CLASSES))


def in_place():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, CLASSES))


def squared():
    return Squared(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, CLASSES))


def plain():
    return Plain(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, CLASSES))


def repeated():
    linear = nn.Linear(6, 6)
    return nn.Sequential(linear, nn.ReLU(), linear, nn.ReLU(), nn.Linear(6, CLASSES))


def flat_inside():
    return nn.Sequential(nn.Linear(6, 8), nn.Flatten(), nn.ReLU(), nn.Linear(8, CLASSES))


def hooked():
    model = shared()
    model[0].register_forward_hook(doubled)
    return model


def doubled(layer, inputs, output):
    return 2 * output


def spectral():
    return nn.Sequential(nn.utils.parametrizations.orthogonal(nn.Linear(6, 6)), nn.ReLU(), nn.Linear(6, CLASSES))


@pytest.mark.parametrize(
    ("build", "chain"), [(shared, True), (in_place, True), (plain, True), (squared, False), (repeated, False),
                         (flat_inside, False), (hooked, False), (spectral, False)],
)  # fmt: skip
def test_what_is_trained_is_the_network_that_answers(build, chain):
    x, y = samples(build)
    ends = []
    for backend in ("stacked", "serial"):
        bank = Bank.create(build, x, y, [1, 2], backend=backend, dtype=torch.float64)
        assert (linear_layers(bank.model) is not None) == chain
        inputs = bank.scaled(bank.x).expand(2, -1, -1)
        groups = [[0, 1]] if backend == "stacked" else [[0], [1]]
        for group in groups:
            states = ({k: v[group] for k, v in state.items()} for state in (bank.parameters, bank.buffers))
            with torch.no_grad():
                answers = bank.engine.forward(*states, inputs[group])
            assert np.abs(answers.numpy() - bank.logits()[group]).max() < 1e-6
        norms = bank.squared_norms(Rows(np.tile(np.arange(5), (2, 1))))
        for m, row in itertools.product(range(2), range(5)):
            model = bank.extract(m).eval()
            nn.functional.cross_entropy(model(inputs[m, row : row + 1]), torch.from_numpy(y[row : row + 1])).backward()
            assert norms[m, row] == pytest.approx(sum(float((p.grad**2).sum()) for p in model.parameters()), rel=1e-9)
        bank.fit(Stream(Rows(np.tile(np.arange(40), (2, 1)))), optimiser=RECIPE, epochs=2, purpose="test")
        ends.append(bank)
    assert largest_gap(*ends) < 1e-9


#: Chains with elementwise layers first, in a row, and last, where nothing may be overwritten that is still needed.
CHAINS = [
    ("flatten", 12, "relu", 5, "tanh", 7, "relu", 3),
    ("tanh", 12, "tanh", "relu", 4, "relu"),
    (12, 5, "relu", "tanh", 3, "tanh"),
]


@pytest.mark.parametrize("trained", ["all", "last", "first bias", "input"])
@pytest.mark.parametrize("chain", CHAINS)
def test_gradients_of_a_chain_are_those_of_the_modules(chain, trained):
    kinds, widths = (
        {"relu": nn.ReLU, "tanh": nn.Tanh, "flatten": nn.Flatten},
        [layer for layer in chain if type(layer) is int],
    )
    pairs = iter(zip([12, *widths], widths, strict=False))
    model = nn.Sequential(*(kinds[layer]() if layer in kinds else nn.Linear(*next(pairs)) for layer in chain)).double()
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 6, 12)))
    names = [name for name, _ in model.named_parameters()]
    targets = {"all": names, "last": names[-2:], "first bias": names[1:2], "input": []}[trained]
    parameters = {k: torch.stack([v.detach() * f for f in (1, 2, -1)]) for k, v in model.named_parameters()}
    of = [x.requires_grad_()] if trained == "input" else [parameters[name].requires_grad_() for name in targets]
    weights = torch.linspace(-1, 1, 3 * 6 * widths[-1], dtype=torch.float64).view(3, 6, -1)
    reference = torch.stack(
        [torch.func.functional_call(model, {k: v[m] for k, v in parameters.items()}, (x[m],)) for m in range(3)]
    )
    out = Stacked(model).forward(parameters, {}, x)
    assert (out - reference).abs().max() < 1e-12
    actual, expected = (torch.autograd.grad((total * weights).sum(), of) for total in (out, reference))
    for a, b in zip(actual, expected, strict=True):
        assert b.abs().max() > 0
        assert (a - b).abs().max() < 1e-12


def test_the_engine_is_chosen_by_cost_unless_told():
    small = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    large = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))
    image = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(4, 2))
    kinds = [type(choose(m)) for m in (small, large, image)]
    assert kinds == [Stacked, Serial, Serial]
    assert type(choose(small, "serial")) is Serial
    assert type(choose(image, "stacked")) is Stacked


class Tied(nn.Module):
    """Input and output weights are one tensor; running statistics; a weight of the module itself."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4, bias=False)
        self.last.weight = self.first.weight
        self.shift = nn.Parameter(torch.randn(4))

    def forward(self, x, reading=None):
        hidden = self.norm(self.first(x)) + self.shift
        return hidden if reading == "hidden" else self.last(hidden)


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("reading", [None, "hidden"])
def test_a_serial_step_is_that_of_functional_call_bit_for_bit(reading, lasting):
    torch.manual_seed(0)
    model, x = Tied(), torch.randn(1, 6, 4)
    before = {name: value.clone() for name, value in model.state_dict(keep_vars=True).items()}
    gradients, statistics = [], []
    serial = Serial(model)
    for way in (serial.forward, None):
        torch.manual_seed(1)
        leaves = {k: torch.randn(1, *v.shape).requires_grad_() for k, v in model.named_parameters()}
        buffers = {k: v.clone()[None] for k, v in model.named_buffers()}
        if way and lasting:
            with serial.lasting(leaves, buffers):
                (way(leaves, buffers, x, reading) ** 2).sum().backward()
                assert all(leaf.grad is None for leaf in leaves.values())
                serial.hand_on()
        elif way:
            (way(leaves, buffers, x, reading) ** 2).sum().backward()
        else:
            single = {k: v[0] for k, v in (leaves | buffers).items()}
            (torch.func.functional_call(model, single, (x[0],), {"reading": reading}) ** 2).sum().backward()
        gradients.append([leaf.grad for leaf in leaves.values()])
        statistics.append([*buffers.values()])
    for actual, expected in zip(gradients[0] + statistics[0], gradients[1] + statistics[1], strict=True):
        assert (actual is None) == (expected is None)
        assert actual is None or torch.equal(actual, expected)
    for name, value in model.state_dict(keep_vars=True).items():  # the module has its own weights again
        assert torch.equal(value, before[name])
